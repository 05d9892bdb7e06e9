//! The patterns of dates and times, with the letters of the Unicode CLDR: `y` year, `M` month, `d` day, `E` weekday, `H` hour
//! in any cycle, `m` minute, `s` second, `S` fraction of a second, `a` AM or PM, `z` time zone. Two letters mean two
//! digits; text is between apostrophes. The patterns are those of the CLDR, version 48.

use super::date_components::{Components, Cycle, Width};
use super::locale::Locale;
use super::options::IntlError;

/// Length of a date or time that is given by a style.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Full,
    Long,
    Medium,
    Short,
}

/// Returns the pattern of `dateStyle`.
///
/// # Errors
/// The style has words in a language that the sandbox does not have.
pub(super) fn date_style(locale: Locale, length: Length) -> Result<&'static str, IntlError> {
    Ok(match (locale, length) {
        (Locale::SvSe, Length::Short) => "y-MM-dd",
        (Locale::SvSe, _) => return Err(swedish_words()),
        (Locale::EnUs | Locale::EnCa, Length::Full) => "EEEE, MMMM d, y",
        (Locale::EnUs | Locale::EnCa, Length::Long) => "MMMM d, y",
        (Locale::EnUs | Locale::EnCa, Length::Medium) => "MMM d, y",
        (Locale::EnUs, Length::Short) => "M/d/yy",
        (Locale::EnCa, Length::Short) => "y-MM-dd",
        (Locale::EnGb, Length::Full) => "EEEE, d MMMM y",
        (Locale::EnGb, Length::Long) => "d MMMM y",
        (Locale::EnGb, Length::Medium) => "d MMM y",
        (Locale::EnGb, Length::Short) => "dd/MM/y",
    })
}

/// Returns the pattern of `timeStyle`.
pub(super) fn time_style(length: Length, cycle: Cycle) -> String {
    let hour = if cycle.has_halves() { "H" } else { "HH" };
    let half = if cycle.has_halves() { "\u{202f}a" } else { "" };
    let (seconds, zone) = match length {
        Length::Full => (":ss", " zzzz"),
        Length::Long => (":ss", " z"),
        Length::Medium => (":ss", ""),
        Length::Short => ("", ""),
    };
    format!("{hour}:mm{seconds}{half}{zone}")
}

/// Returns what is between a date and a time.
pub(super) fn separator(locale: Locale, has_long_month: bool) -> &'static str {
    match locale {
        Locale::SvSe => " ",
        _ if has_long_month => " 'at' ",
        _ => ", ",
    }
}

/// Returns the pattern of a date; `None` if there are no such components.
///
/// # Errors
/// The locale has no pattern for these components.
pub(super) fn date(locale: Locale, of: &Components) -> Result<Option<String>, IntlError> {
    let letters = |letter: &str, width: Width| letter.repeat(width.letters());
    let weekday = of.weekday.map(|width| match width {
        Width::Long => "EEEE",
        Width::Narrow => "EEEEE",
        _ => "E",
    });
    let year = of.year.map(|width| if width == Width::TwoDigits { "yy" } else { "y" });
    if locale == Locale::SvSe && (weekday.is_some() || of.month.is_some_and(Width::is_text)) {
        return Err(swedish_words());
    }
    let digits =
        |month: Width, day: Width| digits_of(locale, of.weekday.is_some(), year.is_some(), month, day);
    let start = |comma: &str| weekday.map_or_else(String::new, |weekday| format!("{weekday}{comma} "));
    Ok(Some(match (weekday, year, of.month, of.day) {
        (None, None, None, None) => return Ok(None),
        (Some(weekday), None, None, None) => weekday.to_owned(),
        (None, Some(year), None, None) => year.to_owned(),
        (None, None, Some(month), None) => letters("M", month),
        (None, None, None, Some(day)) => letters("d", day),
        (Some(weekday), None, None, Some(day)) if locale == Locale::EnUs => {
            format!("{} {weekday}", letters("d", day))
        }
        (Some(weekday), None, None, Some(day)) => format!("{weekday} {}", letters("d", day)),
        (None, Some(year), Some(month), None) => match locale {
            _ if month.is_text() => format!("{} {year}", letters("M", month)),
            Locale::EnUs => format!("{}/{year}", letters("M", month)),
            Locale::EnGb => format!("MM/{year}"),
            Locale::EnCa | Locale::SvSe => format!("{year}-MM"),
        },
        (_, year, Some(month), Some(day)) if month.is_text() => {
            let (month, day) = (letters("M", month), letters("d", day));
            let (date, comma) = match (locale, year) {
                (Locale::EnGb, None) => (format!("{day} {month}"), ""),
                (Locale::EnGb, Some(year)) => (format!("{day} {month} {year}"), ","),
                (_, None) => (format!("{month} {day}"), ","),
                (_, Some(year)) => (format!("{month} {day}, {year}"), ","),
            };
            start(comma) + &date
        }
        (_, year, Some(month), Some(day)) => {
            let (month, day) = digits(month, day);
            let (date, comma) = match (locale, year) {
                (Locale::EnUs, None) => (format!("{month}/{day}"), ","),
                (Locale::EnUs, Some(year)) => (format!("{month}/{day}/{year}"), ","),
                (Locale::EnGb, None) => (format!("{day}/{month}"), ""),
                (Locale::EnGb, Some(year)) => (format!("{day}/{month}/{year}"), ","),
                (Locale::SvSe, None) => (format!("{day}/{month}"), ""),
                (_, None) => (format!("{month}-{day}"), ","),
                (_, Some(year)) => (format!("{year}-{month}-{day}"), ","),
            };
            start(comma) + &date
        }
        _ => return Err(combination("weekday, year, month and day")),
    }))
}

/// Returns month and day of a date in digits. Locales with two digits everywhere shorten one of them if the program gives
/// two digits for the other alone.
fn digits_of(
    locale: Locale,
    has_weekday: bool,
    has_year: bool,
    month: Width,
    day: Width,
) -> (&'static str, &'static str) {
    let (is_long_month, is_long_day) = (month == Width::TwoDigits, day == Width::TwoDigits);
    let plain = (if is_long_month { "MM" } else { "M" }, if is_long_day { "dd" } else { "d" });
    match locale {
        Locale::EnUs => plain,
        Locale::SvSe if !has_year => {
            if is_long_month && !is_long_day {
                ("M", "d")
            } else {
                plain
            }
        }
        _ if has_weekday || is_long_month == is_long_day => ("MM", "dd"),
        _ => plain,
    }
}

/// Returns the pattern of a time; `None` if there are no such components.
///
/// # Errors
/// The locale has no pattern for these components.
pub(super) fn time(locale: Locale, of: &Components, cycle: Cycle) -> Result<Option<String>, IntlError> {
    let fraction = of.fraction.map_or_else(String::new, |digits| {
        format!("{}{}", if locale == Locale::SvSe { "," } else { "." }, "S".repeat(digits as usize))
    });
    let is_gap = of.hour.is_some() && of.minute.is_none() && of.second.is_some();
    let has_no_seconds = of.minute.is_none() || of.second.is_none();
    if is_gap || has_no_seconds && of.fraction.is_some() {
        return Err(combination("hour, minute, second and fractionalSecondDigits"));
    }
    let time = match (of.hour, of.minute, of.second) {
        (None, None, None) => return Ok(None),
        (None, Some(_), None) => "m".to_owned(),
        (None, None, Some(_)) => "s".to_owned(),
        (None, Some(_), Some(_)) => format!("mm:ss{fraction}"),
        (Some(hour), minute, second) => {
            let half = if cycle.has_halves() { "\u{202f}a" } else { "" };
            let minutes = if minute.is_some() { ":mm" } else { "" };
            let seconds = if second.is_some() { format!(":ss{fraction}") } else { String::new() };
            let zone = if minute.is_none() && of.zone.is_some() && !cycle.has_halves() { "'h'" } else { "" };
            format!("{}{minutes}{seconds}{half}{zone}", hour_letters(locale, of, cycle, hour))
        }
    };
    Ok(Some(time))
}

/// Locales with 24 hours write one digit only for some combinations of widths.
fn hour_letters(locale: Locale, of: &Components, cycle: Cycle, hour: Width) -> &'static str {
    let is_short = match (of.minute, of.second) {
        _ if hour == Width::TwoDigits => false,
        _ if cycle.has_halves() => true,
        _ if matches!(locale, Locale::EnUs | Locale::EnCa) => false,
        (Some(_), Some(_)) if of.zone.is_some() => true,
        (Some(minute), None) => minute == Width::TwoDigits && of.zone.is_none(),
        (Some(minute), Some(second)) => minute == Width::TwoDigits && second == Width::TwoDigits,
        _ => false,
    };
    if is_short { "H" } else { "HH" }
}

fn swedish_words() -> IntlError {
    IntlError::unsupported(
        "sv-SE with names of months and days",
        "it has sv-SE for dates and times in digits; use en-US, or dateStyle short",
    )
}

/// Reports components that have no pattern together.
pub(super) fn combination(names: &str) -> IntlError {
    IntlError::unsupported(
        &format!("this combination of {names}"),
        "format the parts one by one, and put them together in the program",
    )
}
