//! The options of `Intl.DateTimeFormat`.

use super::date_components::{Components, Cycle, Width};
use super::date_patterns::{self, Length};
use super::locale::Locale;
use super::options::{IntlError, Options};
use super::time_zone::{NameStyle, Zone};

/// Which components a function writes if the program names none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Defaults {
    /// `Intl.DateTimeFormat`: the date.
    Date,
    /// `toLocaleString`: date and time.
    DateAndTime,
    /// `toLocaleDateString`: the date, unless a component of it is named.
    DateAlways,
    /// `toLocaleTimeString`: the time, unless a component of it is named.
    TimeAlways,
}

/// A resolved format of dates and times.
pub(super) struct DateOptions {
    pub(super) locale: Locale,
    /// See `date_patterns`.
    pub(super) pattern: String,
    pub(super) cycle: Cycle,
    pub(super) zone: Zone,
    pub(super) zone_name: NameStyle,
    /// The members of `resolvedOptions()`.
    pub(super) resolved: Vec<(&'static str, String)>,
}

const WIDTHS: [(&str, Width); 5] = [
    ("numeric", Width::Numeric),
    ("2-digit", Width::TwoDigits),
    ("long", Width::Long),
    ("short", Width::Short),
    ("narrow", Width::Narrow),
];
const LENGTHS: [(&str, Length); 4] =
    [("full", Length::Full), ("long", Length::Long), ("medium", Length::Medium), ("short", Length::Short)];

impl DateOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// An option is invalid or not supported for the locale.
    pub(super) fn read(
        options: &Options<'_>,
        locale: Locale,
        tag: &str,
        defaults: Defaults,
    ) -> Result<Self, IntlError> {
        options.only("calendar", "gregory")?;
        options.only("numberingSystem", "latn")?;
        if options.has("era")? || options.has("dayPeriod")? {
            let what = if options.has("era")? { "era" } else { "dayPeriod" };
            return Err(IntlError::unsupported(what, "leave it out, and add the word in the program"));
        }
        let zone = options.text("timeZone")?.map_or_else(|| Ok(Zone::utc()), |name| Zone::find(&name))?;
        let mut resolved = vec![
            ("locale", tag.to_owned()),
            ("calendar", "gregory".to_owned()),
            ("numberingSystem", "latn".to_owned()),
            ("timeZone", zone.id.clone()),
        ];
        let mut components = read_components(options, &mut resolved)?;
        let date_length = options.choice("dateStyle", &LENGTHS)?;
        let time_length = options.choice("timeStyle", &LENGTHS)?;
        let has_hour = |components: &Components| components.hour.is_some() || time_length.is_some();
        let pattern;
        let cycle;
        if date_length.is_some() || time_length.is_some() {
            check_styles(options, defaults, date_length.is_some(), time_length.is_some(), &components)?;
            resolved.extend(date_length.map(|(name, _)| ("dateStyle", name.to_owned())));
            resolved.extend(time_length.map(|(name, _)| ("timeStyle", name.to_owned())));
            cycle = read_cycle(options, locale, time_length.is_some())?;
            pattern = style_pattern(
                locale,
                date_length.map(|(_, length)| length),
                time_length.map(|(_, length)| length),
                cycle,
            )?;
            let is_long = time_length.is_some_and(|(_, length)| length == Length::Full);
            components.zone = Some(if is_long { NameStyle::Long } else { NameStyle::Short });
        } else {
            add_defaults(&mut components, defaults, &mut resolved);
            cycle = read_cycle(options, locale, has_hour(&components))?;
            pattern = component_pattern(locale, &components, cycle)?;
        }
        if has_hour(&components) {
            resolved.push(("hourCycle", cycle.name().to_owned()));
        }
        let zone_name = components.zone.unwrap_or(NameStyle::Short);
        let has_name = match locale {
            Locale::EnUs => true,
            Locale::SvSe => zone.is_utc() && zone_name == NameStyle::Short,
            _ => zone.is_utc() && matches!(zone_name, NameStyle::Short | NameStyle::Long),
        };
        if pattern.contains('z') && !has_name {
            return Err(IntlError::unsupported(
                &format!("this name of the time zone {} in {tag}", zone.id),
                "it has en-US; use it, or write the offset in the program",
            ));
        }
        Ok(Self { locale, pattern, cycle, zone, zone_name, resolved })
    }
}

fn read_components(
    options: &Options<'_>,
    resolved: &mut Vec<(&'static str, String)>,
) -> Result<Components, IntlError> {
    let mut width =
        |name: &'static str, choices: &[(&'static str, Width)]| -> Result<Option<Width>, IntlError> {
            let found = options.choice(name, choices)?;
            resolved.extend(found.map(|(value, _)| (name, value.to_owned())));
            Ok(found.map(|(_, width)| width))
        };
    let mut components = Components {
        weekday: width("weekday", &WIDTHS[2..])?,
        year: width("year", &WIDTHS[..2])?,
        month: width("month", &WIDTHS)?,
        day: width("day", &WIDTHS[..2])?,
        hour: width("hour", &WIDTHS[..2])?,
        minute: width("minute", &WIDTHS[..2])?,
        second: width("second", &WIDTHS[..2])?,
        ..Components::default()
    };
    components.fraction = options.integer("fractionalSecondDigits", (1, 3))?;
    let names = [
        ("short", NameStyle::Short),
        ("long", NameStyle::Long),
        ("shortOffset", NameStyle::ShortOffset),
        ("longOffset", NameStyle::LongOffset),
    ];
    let name = options.choice("timeZoneName", &names)?;
    components.zone = name.map(|(_, style)| style);
    resolved.extend(components.fraction.map(|digits| ("fractionalSecondDigits", digits.to_string())));
    resolved.extend(name.map(|(name, _)| ("timeZoneName", name.to_owned())));
    Ok(components)
}

/// Rejects styles together with components, and those that the function does not take.
fn check_styles(
    options: &Options<'_>,
    defaults: Defaults,
    has_date_style: bool,
    has_time_style: bool,
    components: &Components,
) -> Result<(), IntlError> {
    let of = |name: &str| {
        IntlError::Type(format!("Invalid option : {name} for {}: use toLocaleString", options.service()))
    };
    if defaults == Defaults::TimeAlways && has_date_style {
        return Err(of("dateStyle"));
    }
    if defaults == Defaults::DateAlways && has_time_style {
        return Err(of("timeStyle"));
    }
    if components.has_date() || components.has_time() || components.zone.is_some() {
        let style = if has_date_style { "dateStyle" } else { "timeStyle" };
        let names = [
            "weekday",
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "fractionalSecondDigits",
            "timeZoneName",
        ];
        let mut given = names.into_iter().filter(|name| options.has(name).unwrap_or(false));
        let name = given.next().unwrap_or_default();
        return Err(IntlError::Type(format!("Can't set option {name} when {style} is used")));
    }
    Ok(())
}

fn add_defaults(components: &mut Components, defaults: Defaults, resolved: &mut Vec<(&'static str, String)>) {
    let (has_date, has_time) = (components.has_date(), components.has_time());
    let is_date_added = match defaults {
        Defaults::DateAlways => !has_date,
        Defaults::Date | Defaults::DateAndTime => !has_date && !has_time,
        Defaults::TimeAlways => false,
    };
    let is_time_added = match defaults {
        Defaults::TimeAlways => !has_time,
        Defaults::DateAndTime => !has_date && !has_time,
        Defaults::Date | Defaults::DateAlways => false,
    };
    if is_date_added {
        components.add_date();
        resolved.extend(["year", "month", "day"].map(|name| (name, "numeric".to_owned())));
    }
    if is_time_added {
        components.add_time();
        resolved.extend(["hour", "minute", "second"].map(|name| (name, "numeric".to_owned())));
    }
}

/// Returns how hours are counted. Node.js 20 counts from 1 to 24 for en-US and en-CA with `hour12: false`.
fn read_cycle(options: &Options<'_>, locale: Locale, has_hour: bool) -> Result<Cycle, IntlError> {
    let is_american = matches!(locale, Locale::EnUs | Locale::EnCa);
    let cycles = [("h11", Cycle::H11), ("h12", Cycle::H12), ("h23", Cycle::H23), ("h24", Cycle::H24)];
    let named = options.choice("hourCycle", &cycles)?.map(|(_, cycle)| cycle);
    let usual = if is_american { Cycle::H12 } else { Cycle::H23 };
    let hour12 = options.text("hour12")?;
    if !has_hour {
        return Ok(usual);
    }
    let cycle = match (hour12.as_deref(), named) {
        (Some("true"), _) if is_american => Cycle::H12,
        (Some("true"), _) => Cycle::H11,
        (Some(_), _) if is_american => Cycle::H24,
        (Some(_), _) => Cycle::H23,
        (None, Some(named)) => named,
        (None, None) => usual,
    };
    if !is_american && cycle != Cycle::H23 {
        let words = "it has 24 hours, which are the default there; use en-US for AM and PM";
        return Err(IntlError::unsupported("another way of counting hours in en-GB and sv-SE", words));
    }
    Ok(cycle)
}

fn style_pattern(
    locale: Locale,
    date: Option<Length>,
    time: Option<Length>,
    cycle: Cycle,
) -> Result<String, IntlError> {
    let has_long_month = matches!(date, Some(Length::Full | Length::Long));
    let date = date.map(|length| date_patterns::date_style(locale, length)).transpose()?;
    let time = time.map(|length| date_patterns::time_style(length, cycle));
    Ok(match (date, time) {
        (Some(date), Some(time)) => {
            format!("{date}{}{time}", date_patterns::separator(locale, has_long_month))
        }
        (date, time) => date.map(str::to_owned).or(time).unwrap_or_default(),
    })
}

fn component_pattern(locale: Locale, components: &Components, cycle: Cycle) -> Result<String, IntlError> {
    let date = date_patterns::date(locale, components)?;
    let time = date_patterns::time(locale, components, cycle)?;
    let is_weekday_alone = components.weekday.is_some()
        && components.year.is_none()
        && components.month.is_none()
        && components.day.is_none();
    let has_common_parts = components.hour.is_some()
        && components.minute.is_some()
        && components.zone.is_none()
        && components.fraction.is_none()
        && components.weekday != Some(Width::Narrow);
    if is_weekday_alone && time.is_some() && !has_common_parts {
        return Err(date_patterns::combination("a weekday and a time"));
    }
    let separator = match is_weekday_alone && time.is_some() {
        true => " ",
        false => date_patterns::separator(locale, components.month == Some(Width::Long)),
    };
    let zone = components.zone.map(|_| "z");
    Ok(match (date, time, zone) {
        (Some(date), Some(time), Some(zone)) => format!("{date}{separator}{time} {zone}"),
        (Some(date), Some(time), None) => format!("{date}{separator}{time}"),
        (Some(date), None, Some(zone)) => format!("{date}{separator}{zone}"),
        (None, Some(time), Some(zone)) => format!("{time} {zone}"),
        (Some(only), None, None) | (None, Some(only), None) => only,
        (None, None, zone) => zone.unwrap_or_default().to_owned(),
    })
}
