//! Writes dates and times as `Intl.DateTimeFormat` does.

use super::Part;
use super::date_components::Cycle;
use super::date_options::DateOptions;
use super::locale::Locale;
use super::options::IntlError;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Beginning with 1 January 1970.
const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
/// Maximum distance from 1970 in milliseconds, as in ECMA-262.
const MILLISECONDS_MAX: f64 = 8.64e15;
const DAY_SECONDS: i64 = 86_400;

/// A local date and time.
struct Civil {
    year: i64,
    /// From 1.
    month: usize,
    day: i64,
    /// From 0 for Thursday.
    weekday: usize,
    second_of_day: i64,
    millisecond: i64,
}

impl Civil {
    /// Converts milliseconds of local time since 1970.
    fn new(local_milliseconds: i64) -> Self {
        let seconds = local_milliseconds.div_euclid(1000);
        let days = seconds.div_euclid(DAY_SECONDS);
        // Counted from 1 March of the year 0, so that a leap day is the last day of a year.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: month as usize,
            day,
            weekday: days.rem_euclid(7) as usize,
            second_of_day: seconds.rem_euclid(DAY_SECONDS),
            millisecond: local_milliseconds.rem_euclid(1000),
        }
    }
}

/// Splits the text of an instant into the parts of `formatToParts`. `milliseconds` are those since 1970.
///
/// # Errors
/// The instant is no valid date.
pub(super) fn parts(options: &DateOptions, milliseconds: f64) -> Result<Vec<Part>, IntlError> {
    if milliseconds.is_nan() || milliseconds.abs() > MILLISECONDS_MAX {
        return Err(IntlError::Range("Invalid time value".into()));
    }
    let milliseconds = milliseconds as i64;
    let seconds = milliseconds.div_euclid(1000);
    let civil = Civil::new(milliseconds + i64::from(options.zone.offset_seconds(seconds)) * 1000);
    let mut parts: Vec<Part> = Vec::new();
    let mut rest = options.pattern.as_str();
    while let Some(letter) = rest.chars().next() {
        let count = rest.chars().take_while(|other| *other == letter).count();
        if letter == '\'' {
            let end = rest[1..].find('\'').map_or(rest.len(), |end| end + 1);
            push_literal(&mut parts, &rest[1..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
            continue;
        }
        match field(options, &civil, seconds, letter, count)? {
            Some(part) => parts.push(part),
            None => push_literal(&mut parts, &rest[..count * letter.len_utf8()]),
        }
        rest = &rest[count * letter.len_utf8()..];
    }
    Ok(parts)
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(("literal", before)) => before.push_str(text),
        _ => parts.push(("literal", text.to_owned())),
    }
}

/// Writes the field of a letter of the pattern; `None` if the letter is text.
fn field(
    options: &DateOptions,
    civil: &Civil,
    seconds: i64,
    letter: char,
    count: usize,
) -> Result<Option<Part>, IntlError> {
    let number = |value: i64| if count == 2 { format!("{value:02}") } else { value.to_string() };
    // Years before 1 are counted backwards.
    let year = if civil.year > 0 { civil.year } else { 1 - civil.year };
    Ok(Some(match letter {
        'y' if count == 2 => ("year", format!("{:02}", year % 100)),
        'y' => ("year", year.to_string()),
        'M' if count > 2 => ("month", shortened(MONTHS[civil.month - 1], count, options.locale)),
        'M' => ("month", number(civil.month as i64)),
        'd' => ("day", number(civil.day)),
        'E' => ("weekday", shortened(WEEKDAYS[civil.weekday], count, Locale::EnUs)),
        'H' => ("hour", number(hour(options.cycle, civil.second_of_day / 3600))),
        'm' => ("minute", number(civil.second_of_day / 60 % 60)),
        's' => ("second", number(civil.second_of_day % 60)),
        'S' => ("fractionalSecond", format!("{:03}", civil.millisecond)[..count.min(3)].to_owned()),
        'a' => {
            let is_afternoon = civil.second_of_day >= DAY_SECONDS / 2;
            let names = if options.locale == Locale::EnCa { ["a.m.", "p.m."] } else { ["AM", "PM"] };
            ("dayPeriod", names[usize::from(is_afternoon)].to_owned())
        }
        'z' => ("timeZoneName", options.zone.name(seconds, options.zone_name)?),
        _ => return Ok(None),
    }))
}

fn hour(cycle: Cycle, hour: i64) -> i64 {
    match cycle {
        Cycle::H11 => hour % 12,
        Cycle::H12 => (hour + 11) % 12 + 1,
        Cycle::H23 => hour,
        Cycle::H24 => (hour + 23) % 24 + 1,
    }
}

/// Shortens the name of a month or weekday to three letters, or to one.
fn shortened(name: &str, count: usize, locale: Locale) -> String {
    match count {
        4 => name.to_owned(),
        5 => name[..1].to_owned(),
        // The only name that is abbreviated otherwise.
        _ if locale == Locale::EnGb && name == "September" => "Sept".to_owned(),
        _ => name[..3].to_owned(),
    }
}
