//! Time zones: their offsets from the bundled IANA database, and their names in English.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::options::IntlError;

/// `minutes|minutes of summer time|long name|of summer time|short name|of summer time|identifiers`. The names come from
/// the Unicode CLDR, version 48, and are those of the present rules of each zone. `ID@YEAR` had other long names before
/// that year, `ID@YEAR@YEAR` other short names too.
const NAMES: &str = include_str!("zone_names.txt");

/// Seconds of 400 years. The calendar and the rules of time zones repeat after them.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// At least the seconds of a year, so that a year begins before this many for each since 1970.
const YEAR_SECONDS: i64 = 31_557_600;
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
                | "Universal" | "GMT0" | "GMT+0" | "GMT-0",
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
    /// The zone had another name at that time, which is not known.
    pub(super) fn name(&self, seconds: i64, style: NameStyle) -> Result<String, IntlError> {
        let offset = self.offset_seconds(seconds);
        let is_long = matches!(style, NameStyle::Long | NameStyle::LongOffset);
        let name = match style {
            NameStyle::ShortOffset | NameStyle::LongOffset => None,
            NameStyle::Short if self.is_utc() => Some("UTC"),
            NameStyle::Long if self.is_utc() => Some("Coordinated Universal Time"),
            NameStyle::Short | NameStyle::Long => self.table_name(seconds, offset, is_long)?,
        };
        Ok(name.map_or_else(|| offset_name(offset, is_long), str::to_owned))
    }

    /// Finds the name in the table; `None` if the offset is the name.
    fn table_name(
        &self,
        seconds: i64,
        offset: i32,
        is_long: bool,
    ) -> Result<Option<&'static str>, IntlError> {
        let find = |line: &'static str| {
            let (names, ids) = line.rsplit_once('|')?;
            let entry = ids.split(' ').find(|entry| entry.split('@').next() == Some(self.id.as_str()))?;
            Some((names, entry))
        };
        let Some((names, entry)) = NAMES.lines().find_map(find) else { return Ok(None) };
        let since_year = entry.split('@').nth(if is_long { 1 } else { 2 }).and_then(|year| year.parse().ok());
        if since_year.is_some_and(|year: i64| seconds < (year - 1970) * YEAR_SECONDS) {
            let what = format!("the name of the time zone {} at that time", self.id);
            return Err(IntlError::unsupported(
                &what,
                "it has timeZoneName shortOffset and longOffset; use one of them",
            ));
        }
        let columns: Vec<&str> = names.split('|').collect();
        let is_at =
            |column: usize| columns[column].parse::<i32>().is_ok_and(|minutes| minutes * 60 == offset);
        let column = match (is_at(0), is_at(1)) {
            // The CLDR has no names for the years before 1970.
            _ if seconds < 0 => return Ok(None),
            (true, _) => 2,
            (false, true) => 3,
            (false, false) => return Ok(None),
        };
        Ok(Some(columns[if is_long { column } else { column + 2 }]).filter(|name| !name.is_empty()))
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
            for entry in line.rsplit('|').next().unwrap_or_default().split(' ') {
                let id = entry.split('@').next().unwrap_or_default();
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
