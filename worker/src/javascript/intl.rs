//! The formats of numbers and dates, and the order of texts, behind `Intl` and the functions of locales such as
//! `toLocaleString`. `intl.js` has the classes and reads the options.
//!
//! The locales are those of [`locale`]. Everything else is an error, never a text in another format.

mod collation;
mod date_components;
mod date_format;
mod date_options;
mod date_patterns;
mod decimal;
mod locale;
mod number_format;
mod number_names;
mod number_options;
mod options;
mod time_zone;

use std::rc::Rc;

use rquickjs::{Array, Ctx, Function, Object, Result};

use collation::Collation;
use date_options::{DateOptions, Defaults};
use locale::Locale;
use number_options::{NumberOptions, Precision};
use options::{IntlError, Options};

/// A part of a formatted number or date: its type and its text.
type Part = (&'static str, String);

/// Adds the native functions of `intl.js`. Each takes the language tag, the options as texts, and the name of the function that
/// the program called. Each returns the function that formats or compares, the one that returns parts, and the resolved
/// options.
pub(super) fn add<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    let numbers = |ctx: Ctx<'js>, tag: String, options: Object<'js>, service: String| {
        number_format(&ctx, &tag, &Options::new(options, service)).map_err(|error| error.throw(&ctx))
    };
    natives.set("numberFormat", Function::new(ctx.clone(), numbers)?)?;
    let dates = |ctx: Ctx<'js>, tag: String, options: Object<'js>, service: String| {
        date_format(&ctx, &tag, &Options::new(options, service)).map_err(|error| error.throw(&ctx))
    };
    natives.set("dateFormat", Function::new(ctx.clone(), dates)?)?;
    let collations = |ctx: Ctx<'js>, tag: String, options: Object<'js>, service: String| {
        collator(&ctx, &tag, &Options::new(options, service)).map_err(|error| error.throw(&ctx))
    };
    natives.set("collator", Function::new(ctx.clone(), collations)?)?;
    let find = |ctx: Ctx<'js>, tag: String| {
        locale::find(&tag).map(|(_, tag)| tag.to_owned()).map_err(|error| error.throw(&ctx))
    };
    natives.set("findLocale", Function::new(ctx.clone(), find)?)
}

type Formatter<'js> = std::result::Result<Array<'js>, IntlError>;

fn number_format<'js>(ctx: &Ctx<'js>, tag: &str, options: &Options<'js>) -> Formatter<'js> {
    let (locale, tag) = locale::find(tag)?;
    let options = Rc::new(NumberOptions::read(options, locale, tag)?);
    let resolved = text_members(ctx, &options.resolved)?;
    resolved.set("minimumIntegerDigits", options.minimum_integer)?;
    match options.precision {
        Precision::Fraction { minimum, maximum } => {
            resolved.set("minimumFractionDigits", minimum)?;
            resolved.set("maximumFractionDigits", maximum)?;
        }
        Precision::Significant { minimum, maximum } => {
            resolved.set("minimumSignificantDigits", minimum)?;
            resolved.set("maximumSignificantDigits", maximum)?;
        }
        Precision::Compact => {
            resolved.set("minimumFractionDigits", 0)?;
            resolved.set("maximumFractionDigits", 0)?;
            resolved.set("minimumSignificantDigits", 1)?;
            resolved.set("maximumSignificantDigits", 2)?;
        }
    }
    let shared = Rc::clone(&options);
    let format = Function::new(ctx.clone(), move |text: String| join(&number_format::parts(&shared, &text)))?;
    let parts = Function::new(ctx.clone(), move |text: String| flat(number_format::parts(&options, &text)))?;
    triple(ctx, format, parts, resolved)
}

fn date_format<'js>(ctx: &Ctx<'js>, tag: &str, options: &Options<'js>) -> Formatter<'js> {
    let (locale, tag) = locale::find(tag)?;
    let defaults = match options.text("defaults")?.as_deref() {
        Some("dateAndTime") => Defaults::DateAndTime,
        Some("dateAlways") => Defaults::DateAlways,
        Some("timeAlways") => Defaults::TimeAlways,
        _ => Defaults::Date,
    };
    let options = Rc::new(DateOptions::read(options, locale, tag, defaults)?);
    let resolved = text_members(ctx, &options.resolved)?;
    let shared = Rc::clone(&options);
    let format = Function::new(ctx.clone(), move |ctx: Ctx<'js>, milliseconds: f64| {
        // V8 writes a space before AM and PM here, and the narrow one of the CLDR in the parts.
        let parts = date_format::parts(&shared, milliseconds).map_err(|error| error.throw(&ctx))?;
        Result::Ok(join(&parts).replace('\u{202f}', " "))
    })?;
    let parts = Function::new(ctx.clone(), move |ctx: Ctx<'js>, milliseconds: f64| {
        date_format::parts(&options, milliseconds).map(flat).map_err(|error| error.throw(&ctx))
    })?;
    triple(ctx, format, parts, resolved)
}

fn collator<'js>(ctx: &Ctx<'js>, tag: &str, options: &Options<'js>) -> Formatter<'js> {
    let (locale, tag) = locale::find(tag)?;
    if locale == Locale::SvSe {
        return Err(IntlError::unsupported("sv-SE for the order of texts", "it has en-US, en-GB and en-CA"));
    }
    let collation = Collation::read(options, tag)?;
    let resolved = text_members(ctx, &collation.resolved)?;
    for name in ["ignorePunctuation", "numeric"] {
        resolved.set(name, resolved.get::<_, String>(name)? == "true")?;
    }
    let compare = Function::new(ctx.clone(), move |left: String, right: String| {
        collation.compare(&left, &right) as i32
    })?;
    triple(ctx, compare.clone(), compare, resolved)
}

fn triple<'js>(
    ctx: &Ctx<'js>,
    format: Function<'js>,
    parts: Function<'js>,
    resolved: Object<'js>,
) -> Formatter<'js> {
    let made = Array::new(ctx.clone())?;
    made.set(0, format)?;
    made.set(1, parts)?;
    made.set(2, resolved)?;
    Ok(made)
}

fn text_members<'js>(ctx: &Ctx<'js>, members: &[(&'static str, String)]) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, value) in members {
        object.set(*name, value.as_str())?;
    }
    Ok(object)
}

fn join(parts: &[Part]) -> String {
    parts.iter().map(|(_, text)| text.as_str()).collect()
}

/// The types and texts of parts, in turn.
fn flat(parts: Vec<Part>) -> Vec<String> {
    parts.into_iter().flat_map(|(kind, text)| [kind.to_owned(), text]).collect()
}
