//! Time zones: their offsets from the bundled IANA database, and their names in English.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::options::IntlError;

/// `minutes|minutes of summer time|long name|of summer time|short name|of summer time|identifiers`. The names come from
/// the Unicode CLDR, version 48. They are those of the present rules of each zone.
const NAMES: &str = include_str!("zone_names.txt");

/// Seconds of 400 years. The calendar and the rules of time zones repeat after them.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// Instants up to here are looked up in the database, which ends with the year 9999.
const LOOKUP_MAX: i64 = 253_000_000_000;
const LOOKUP_MIN: i64 = -377_000_000_000;
/// Maximum offset in hours that a time zone may be written as.
const OFFSET_HOURS_MAX: i32 = 23;

/// How the name of a time zone is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameStyle {
    /// As in EST, or GMT+1 for zones without a common short name.
    Short,
    /// As in Eastern Standard Time.
    Long,
    /// As in GMT-5.
    ShortOffset,
    /// As in GMT-05:00.
    LongOffset,
}

/// A time zone with the identifier that programs see.
pub(super) struct Zone {
    pub(super) id: String,
    rules: TimeZone,
}

impl Zone {
    /// Returns the time zone of programs.
    pub(super) fn utc() -> Self {
        Self { id: "UTC".to_owned(), rules: TimeZone::UTC }
    }

    /// Finds a time zone by its IANA identifier in any case, or by its offset such as `+02:00`.
    ///
    /// # Errors
    /// There is no such zone.
    pub(super) fn find(name: &str) -> Result<Self, IntlError> {
        if let Some(seconds) = parse_offset(name) {
            let offset = jiff::tz::Offset::from_seconds(seconds).map_err(|_| unknown(name))?;
            let sign = if seconds < 0 { '-' } else { '+' };
            let minutes = seconds.abs() / 60;
            let id = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            return Ok(Self { id, rules: TimeZone::fixed(offset) });
        }
        let rules = TimeZoneDatabase::bundled().get(name).map_err(|_| unknown(name))?;
        let id = match rules.iana_name() {
            Some(
                "Etc/UTC" | "Etc/GMT" | "GMT" | "Etc/UCT" | "UCT" | "Etc/Zulu" | "Zulu" | "Etc/Universal"
                | "Universal",
            )
            | None => return Ok(Self::utc()),
            Some(id) => id.to_owned(),
        };
        Ok(Self { id, rules })
    }

    pub(super) fn is_utc(&self) -> bool {
        self.id == "UTC"
    }

    /// Returns the offset of local time in seconds, at a number of seconds since 1970.
    pub(super) fn offset_seconds(&self, seconds: i64) -> i32 {
        let cycles = if seconds > LOOKUP_MAX { (seconds - LOOKUP_MAX) / CYCLE_SECONDS + 1 } else { 0 };
        let within = (seconds - cycles * CYCLE_SECONDS).max(LOOKUP_MIN);
        Timestamp::from_second(within).map_or(0, |instant| self.rules.to_offset(instant).seconds())
    }

    /// Returns the name at an instant.
    ///
    /// # Errors
    /// The long name of the rules at that time is not known.
    pub(super) fn name(&self, seconds: i64, style: NameStyle) -> Result<String, IntlError> {
        let offset = self.offset_seconds(seconds);
        let (short, long) = match style {
            _ if self.is_utc() => (Some("UTC"), Some("Coordinated Universal Time")),
            NameStyle::Short | NameStyle::Long => self.names(offset),
            _ => (None, None),
        };
        let named = match style {
            NameStyle::Short => short,
            NameStyle::Long => long,
            NameStyle::ShortOffset | NameStyle::LongOffset => None,
        };
        match (named, style) {
            (Some(name), _) => Ok(name.to_owned()),
            (None, NameStyle::Short | NameStyle::ShortOffset) => Ok(offset_name(offset, false)),
            (None, _) => Ok(offset_name(offset, true)),
        }
    }

    /// Finds the short and the long name in the table, for an offset that the present rules have.
    fn names(&self, offset: i32) -> (Option<&'static str>, Option<&'static str>) {
        let has_zone =
            |line: &&str| line.rsplit('|').next().is_some_and(|ids| ids.split(' ').any(|id| id == self.id));
        let Some(line) = NAMES.lines().find(has_zone) else { return (None, None) };
        let columns: Vec<&str> = line.split('|').collect();
        let is_at =
            |column: usize| columns[column].parse::<i32>().is_ok_and(|minutes| minutes * 60 == offset);
        let some = |column: usize| Some(columns[column]).filter(|name| !name.is_empty());
        match (is_at(0), is_at(1)) {
            (true, _) => (some(4), some(2)),
            (false, true) => (some(5), some(3)),
            (false, false) => (None, None),
        }
    }
}

fn unknown(name: &str) -> IntlError {
    IntlError::Range(format!(
        "Invalid time zone specified: {name:.60}: it is an IANA name such as Europe/Prague, UTC, or an offset such as +02:00"
    ))
}

/// Parses `+02:00`, `+0200` and `+02` as seconds.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let number = |text: &str| {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<i32>().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= OFFSET_HOURS_MAX && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Writes an offset as `GMT-5` or `GMT-05:00`.
fn offset_name(offset: i32, is_long: bool) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes, seconds) = (offset.abs() / 3600, offset.abs() / 60 % 60, offset.abs() % 60);
    let tail = match (is_long || minutes > 0 || seconds > 0, seconds) {
        (false, _) => String::new(),
        (true, 0) => format!(":{minutes:02}"),
        (true, seconds) => format!(":{minutes:02}:{seconds:02}"),
    };
    if is_long { format!("GMT{sign}{hours:02}{tail}") } else { format!("GMT{sign}{hours}{tail}") }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, Zone, parse_offset};

    #[test]
    fn every_zone_of_the_table_is_in_the_database() {
        for line in NAMES.lines() {
            assert_eq!(line.split('|').count(), 7, "{line}");
            for id in line.rsplit('|').next().unwrap_or_default().split(' ') {
                assert!(Zone::find(id).is_ok(), "{id}");
            }
        }
    }

    #[test]
    fn offsets_have_three_forms() {
        for (text, expected) in [
            ("+02:00", Some(7200)),
            ("-0530", Some(-19800)),
            ("+14", Some(50_400)),
            ("+24:00", None),
            ("+2", None),
            ("+02:60", None),
            ("+é2:0", None),
            ("UTC", None),
        ] {
            assert_eq!(parse_offset(text), expected, "{text}");
        }
    }

    #[test]
    fn far_years_repeat_the_rules() {
        let zone = Zone::find("europe/prague").expect("a zone");
        assert_eq!(zone.id, "Europe/Prague");
        let july_9999 = 253_386_000_000;
        assert_eq!(zone.offset_seconds(july_9999), 7200);
        assert_eq!(zone.offset_seconds(8_640_000_000_000), 7200);
        assert_eq!(zone.offset_seconds(-8_640_000_000_000), 3464);
    }
}
