//! The options of `Intl.NumberFormat`.

use super::decimal::RoundingMode;
use super::locale::Locale;
use super::number_names::{self, CurrencyDisplay, UnitDisplay};
use super::options::{IntlError, Options};

/// Maximum number of digits after the decimal point, as in ECMA-402.
const FRACTION_DIGITS_MAX: u32 = 100;
/// Maximum number of significant digits and of integer digits, as in ECMA-402.
const DIGITS_MAX: u32 = 21;

/// What a number is written as.
pub(super) enum Style {
    Decimal,
    Percent,
    Currency {
        /// The currency's code in capital letters.
        code: String,
        display: CurrencyDisplay,
        is_accounting: bool,
    },
    Unit {
        unit: String,
        display: UnitDisplay,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Standard,
    Scientific,
    Engineering,
    /// With K, M, B and T.
    CompactShort,
    /// With thousand, million, billion and trillion.
    CompactLong,
}

impl Notation {
    pub(super) fn is_compact(self) -> bool {
        matches!(self, Self::CompactShort | Self::CompactLong)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SignDisplay {
    Auto,
    Always,
    Never,
    ExceptZero,
    Negative,
}

/// The digits that a number is rounded to.
#[derive(Clone, Copy)]
pub(super) enum Precision {
    Fraction {
        minimum: u32,
        maximum: u32,
    },
    Significant {
        minimum: u32,
        maximum: u32,
    },
    /// Two significant digits, but all digits before the decimal point.
    Compact,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    Never,
    /// From four digits on.
    Always,
    /// From five digits on.
    Min2,
}

/// All options of a number format.
pub(super) struct NumberOptions {
    pub(super) locale: Locale,
    pub(super) style: Style,
    pub(super) notation: Notation,
    pub(super) sign: SignDisplay,
    pub(super) minimum_integer: u32,
    pub(super) precision: Precision,
    pub(super) mode: RoundingMode,
    pub(super) strips_zeros_of_integers: bool,
    pub(super) grouping: Grouping,
    /// The members of `resolvedOptions()` with text values.
    pub(super) resolved: Vec<(&'static str, String)>,
}

impl NumberOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// An option is invalid or not supported for the locale.
    pub(super) fn read(options: &Options<'_>, locale: Locale, tag: &str) -> Result<Self, IntlError> {
        if locale == Locale::SvSe {
            return Err(IntlError::unsupported(
                &format!("{tag} for numbers"),
                "numbers have en-US, en-GB and en-CA",
            ));
        }
        options.only("numberingSystem", "latn")?;
        options.only("roundingIncrement", "1")?;
        options.only("roundingPriority", "auto")?;
        let mut resolved = vec![("locale", tag.to_owned()), ("numberingSystem", "latn".to_owned())];
        let style = read_style(options, locale, &mut resolved)?;
        let notation = read_notation(options, locale, &style, &mut resolved)?;
        let (minimum_integer, precision) = read_digits(options, &style, notation)?;
        let (name, sign) = options.choice("signDisplay", &SIGNS)?.unwrap_or(SIGNS[0]);
        resolved.push(("signDisplay", name.to_owned()));
        let (name, mode) =
            options.choice("roundingMode", &MODES)?.unwrap_or(("halfExpand", RoundingMode::HalfExpand));
        resolved.push(("roundingMode", name.to_owned()));
        resolved.push((
            "roundingPriority",
            if matches!(precision, Precision::Compact) { "morePrecision" } else { "auto" }.to_owned(),
        ));
        let (name, strips_zeros_of_integers) = options
            .choice("trailingZeroDisplay", &[("auto", false), ("stripIfInteger", true)])?
            .unwrap_or(("auto", false));
        resolved.push(("trailingZeroDisplay", name.to_owned()));
        let (name, grouping) = read_grouping(options, notation)?;
        resolved.push(("useGrouping", name.to_owned()));
        Ok(Self {
            locale,
            style,
            notation,
            sign,
            minimum_integer,
            precision,
            mode,
            strips_zeros_of_integers,
            grouping,
            resolved,
        })
    }
}

const SIGNS: [(&str, SignDisplay); 5] = [
    ("auto", SignDisplay::Auto),
    ("always", SignDisplay::Always),
    ("never", SignDisplay::Never),
    ("exceptZero", SignDisplay::ExceptZero),
    ("negative", SignDisplay::Negative),
];

const MODES: [(&str, RoundingMode); 9] = [
    ("ceil", RoundingMode::Ceil),
    ("floor", RoundingMode::Floor),
    ("expand", RoundingMode::Expand),
    ("trunc", RoundingMode::Trunc),
    ("halfCeil", RoundingMode::HalfCeil),
    ("halfFloor", RoundingMode::HalfFloor),
    ("halfExpand", RoundingMode::HalfExpand),
    ("halfTrunc", RoundingMode::HalfTrunc),
    ("halfEven", RoundingMode::HalfEven),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum StyleName {
    Decimal,
    Percent,
    Currency,
    Unit,
}

fn read_style(
    options: &Options<'_>,
    locale: Locale,
    resolved: &mut Vec<(&'static str, String)>,
) -> Result<Style, IntlError> {
    let names = [
        ("decimal", StyleName::Decimal),
        ("percent", StyleName::Percent),
        ("currency", StyleName::Currency),
        ("unit", StyleName::Unit),
    ];
    let (name, style) = options.choice("style", &names)?.unwrap_or(names[0]);
    resolved.push(("style", name.to_owned()));
    let currency = read_currency(options)?;
    let unit = options.text("unit")?;
    match style {
        StyleName::Decimal => Ok(Style::Decimal),
        StyleName::Percent => Ok(Style::Percent),
        StyleName::Currency => {
            let code = currency
                .ok_or_else(|| IntlError::Type("Currency code is required with currency style.".into()))?;
            let displays = [
                ("symbol", CurrencyDisplay::Symbol),
                ("narrowSymbol", CurrencyDisplay::NarrowSymbol),
                ("code", CurrencyDisplay::Code),
                ("name", CurrencyDisplay::Name),
            ];
            let (name, display) = options.choice("currencyDisplay", &displays)?.unwrap_or(displays[0]);
            if display == CurrencyDisplay::Name && locale != Locale::EnUs {
                return Err(IntlError::unsupported(
                    "currencyDisplay name",
                    "it has en-US; use it, or the code",
                ));
            }
            let signs = [("standard", false), ("accounting", true)];
            let (sign, is_accounting) = options.choice("currencySign", &signs)?.unwrap_or(signs[0]);
            resolved.push(("currency", code.clone()));
            resolved.push(("currencyDisplay", name.to_owned()));
            resolved.push(("currencySign", sign.to_owned()));
            Ok(Style::Currency { code, display, is_accounting })
        }
        StyleName::Unit => {
            let unit = unit.ok_or_else(|| {
                IntlError::Type(format!("unit is required with unit style in {}", options.service()))
            })?;
            if locale != Locale::EnUs {
                return Err(IntlError::unsupported("style unit", "it has en-US"));
            }
            if !number_names::has_unit(&unit) {
                let supported =
                    "units are the single ones of ECMA-402 and common rates, such as kilometer-per-hour";
                return Err(IntlError::unsupported(&format!("the unit {unit:.40}"), supported));
            }
            let displays =
                [("short", UnitDisplay::Short), ("long", UnitDisplay::Long), ("narrow", UnitDisplay::Narrow)];
            let (name, display) = options.choice("unitDisplay", &displays)?.unwrap_or(displays[0]);
            resolved.push(("unit", unit.clone()));
            resolved.push(("unitDisplay", name.to_owned()));
            Ok(Style::Unit { unit, display })
        }
    }
}

fn read_currency(options: &Options<'_>) -> Result<Option<String>, IntlError> {
    let Some(code) = options.text("currency")? else { return Ok(None) };
    if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Ok(Some(code.to_ascii_uppercase()));
    }
    Err(IntlError::Range(format!("Invalid currency code : {code:.40}")))
}

fn read_notation(
    options: &Options<'_>,
    locale: Locale,
    style: &Style,
    resolved: &mut Vec<(&'static str, String)>,
) -> Result<Notation, IntlError> {
    let names = [
        ("standard", Notation::Standard),
        ("scientific", Notation::Scientific),
        ("engineering", Notation::Engineering),
        ("compact", Notation::CompactShort),
    ];
    let (name, notation) = options.choice("notation", &names)?.unwrap_or(names[0]);
    resolved.push(("notation", name.to_owned()));
    let displays = [("short", Notation::CompactShort), ("long", Notation::CompactLong)];
    let (display, compact) = options.choice("compactDisplay", &displays)?.unwrap_or(displays[0]);
    let has_name = matches!(style, Style::Currency { display: CurrencyDisplay::Name, .. });
    let is_plain = matches!(style, Style::Decimal)
        || notation == Notation::CompactShort && matches!(style, Style::Currency { .. }) && !has_name;
    if notation != Notation::Standard && !(is_plain && locale == Locale::EnUs) {
        let supported = "it has en-US with style decimal, and for compact with style currency too";
        return Err(IntlError::unsupported(
            &format!("notation {name} with this style and locale"),
            supported,
        ));
    }
    if notation != Notation::CompactShort {
        return Ok(notation);
    }
    resolved.push(("compactDisplay", display.to_owned()));
    // Amounts of money have the short form in both cases.
    Ok(if matches!(style, Style::Decimal) { compact } else { notation })
}

fn read_digits(
    options: &Options<'_>,
    style: &Style,
    notation: Notation,
) -> Result<(u32, Precision), IntlError> {
    let minimum_integer = options.integer("minimumIntegerDigits", (1, DIGITS_MAX))?.unwrap_or(1);
    let minimum = options.integer("minimumFractionDigits", (0, FRACTION_DIGITS_MAX))?;
    let maximum = options.integer("maximumFractionDigits", (0, FRACTION_DIGITS_MAX))?;
    if options.has("minimumSignificantDigits")? || options.has("maximumSignificantDigits")? {
        let minimum = options.integer("minimumSignificantDigits", (1, DIGITS_MAX))?.unwrap_or(1);
        let maximum =
            options.integer("maximumSignificantDigits", (minimum, DIGITS_MAX))?.unwrap_or(DIGITS_MAX);
        return Ok((minimum_integer, Precision::Significant { minimum, maximum }));
    }
    if notation.is_compact() && minimum.is_none() && maximum.is_none() {
        return Ok((minimum_integer, Precision::Compact));
    }
    let (usual_minimum, usual_maximum) = match style {
        Style::Currency { code, .. } => {
            let digits = number_names::fraction_digits(code);
            (digits, digits)
        }
        Style::Percent => (0, 0),
        _ => (0, 3),
    };
    let (minimum, maximum) = match (minimum, maximum) {
        (Some(minimum), Some(maximum)) if minimum > maximum => {
            let words = format!(
                "maximumFractionDigits value is out of range: it is less than minimumFractionDigits, {minimum}"
            );
            return Err(IntlError::Range(words));
        }
        (Some(minimum), maximum) => (minimum, maximum.unwrap_or(usual_maximum.max(minimum))),
        (None, maximum) => {
            let maximum = maximum.unwrap_or(usual_maximum);
            (usual_minimum.min(maximum), maximum)
        }
    };
    Ok((minimum_integer, Precision::Fraction { minimum, maximum }))
}

fn read_grouping(options: &Options<'_>, notation: Notation) -> Result<(&'static str, Grouping), IntlError> {
    let usual = if notation.is_compact() { ("min2", Grouping::Min2) } else { ("auto", Grouping::Always) };
    // The JavaScript part writes the booleans as `always` and `never`; the texts are the default, as in ECMA-402.
    let choices = [
        ("auto", Grouping::Always),
        ("always", Grouping::Always),
        ("min2", Grouping::Min2),
        ("never", Grouping::Never),
        ("true", usual.1),
        ("false", usual.1),
    ];
    Ok(match options.choice("useGrouping", &choices)? {
        None | Some(("true" | "false", _)) => usual,
        Some(given) => given,
    })
}
