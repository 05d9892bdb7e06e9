//! Parses the policy keys that limit calls, such as `rate` and `timeout_seconds`. A policy table for all calls, for a
//! client, for a server or for a tool may contain these keys.

use std::num::NonZeroU32;
use std::time::Duration;

use toml::de::DeTable;

use super::reader::{DocumentReader, Key, Value, integer, kind_of};
use crate::limits::{Limits, Rate, seconds};
use crate::pattern::{Pattern, PatternKind};
use crate::table::{LimitsEntry, ToolLimits};

pub(super) const LIMIT_KEYS: [&str; 5] = [
    "rate",
    "calls_per_execution",
    "argument_bytes_per_execution",
    "result_bytes_per_execution",
    "timeout_seconds",
];

pub(super) const LIMIT_KEYS_HELP: &str = "limits are `rate`, `calls_per_execution`, `argument_bytes_per_execution`, \
     `result_bytes_per_execution` and `timeout_seconds`";

const RATE_HELP: &str =
    "write rate = \"60/min\", per s, min, h or d; or rate = { calls = 60, per = \"1 min\", burst = 10 }";

/// The maximum of `per`, the period of a rate limit.
const PER_MAX: Duration = Duration::from_hours(366 * 24);

/// The maximum of `timeout_seconds`, the time limit of a call, in seconds.
const TIMEOUT_SECONDS_MAX: i64 = 24 * 60 * 60;

/// Parses the limit keys of a policy table, such as `rate`, and ignores its other keys. Returns `None` if the
/// table has no limit key.
pub(super) fn limits(reader: &mut DocumentReader<'_, '_>, table: &DeTable<'_>) -> Option<LimitsEntry> {
    let mut limits = Limits::default();
    let mut first_line = None;
    for (key, value) in table {
        let mut count = |max| count(reader, key, value, max);
        match key.get_ref().as_ref() {
            "rate" => limits.rate = rate(reader, value),
            "calls_per_execution" => {
                limits.calls_per_execution =
                    count(i64::from(u32::MAX)).and_then(|count| count.try_into().ok());
            }
            "argument_bytes_per_execution" => limits.argument_bytes_per_execution = count(i64::MAX),
            "result_bytes_per_execution" => limits.result_bytes_per_execution = count(i64::MAX),
            "timeout_seconds" => limits.timeout = count(TIMEOUT_SECONDS_MAX).map(Duration::from_secs),
            _ => continue,
        }
        let line = reader.line(&key.span());
        first_line = Some(first_line.map_or(line, |first: usize| first.min(line)));
    }
    first_line.map(|line| LimitsEntry { limits, line })
}

/// Parses a policy table that may contain only limits: `[limits]`, or a table `[servers.NAME.limits.PATTERN]`. `name`
/// is the table's name for error messages. Returns `None` when the value is not a table or has no limits.
pub(super) fn table(
    reader: &mut DocumentReader<'_, '_>,
    name: &str,
    key: &Key<'_>,
    value: &Value<'_>,
) -> Option<LimitsEntry> {
    let table = reader.table(name, key, value, LIMIT_KEYS_HELP)?;
    for key in table.keys().filter(|key| !LIMIT_KEYS.contains(&key.get_ref().as_ref())) {
        reader.unknown_key(key, "limits", LIMIT_KEYS_HELP);
    }
    limits(reader, table)
}

/// Parses `[servers.NAME.limits]`, which has one table of limits for each tool pattern. `server` is the full name of
/// the server's table, such as `servers.github`.
pub(super) fn tool_limits(
    reader: &mut DocumentReader<'_, '_>,
    server: &str,
    key: &Key<'_>,
    value: &Value<'_>,
) -> ToolLimits {
    let help = format!("name the tools: [{server}.limits.\"create_*\"], and below it rate = \"10/min\"");
    let mut all = Vec::new();
    let Some(tables) = reader.table("limits", key, value, help.as_str()) else {
        return ToolLimits::default();
    };
    for (name, value) in tables {
        if LIMIT_KEYS.contains(&name.get_ref().as_ref()) && value.get_ref().as_table().is_none() {
            let title = format!("`{}` belongs in the table above", name.get_ref());
            let help = format!("to limit all tools of the server, write it below [{server}]; {help}");
            reader.report_error(name.span(), title, "not a tool", help);
            continue;
        }
        if !reader.count_pattern(name.span()) {
            break;
        }
        let pattern = Pattern::parse(PatternKind::Tools, name.get_ref());
        if let Err(invalid) = &pattern {
            reader.report_error(name.span(), invalid.to_string(), "not a pattern", invalid.help());
        }
        let bounds = table(reader, &format!("limits.{}", name.get_ref()), name, value);
        all.extend(pattern.ok().zip(bounds));
    }
    ToolLimits::new(all)
}

fn count(reader: &mut DocumentReader<'_, '_>, key: &Key<'_>, value: &Value<'_>, max: i64) -> Option<u64> {
    let name = key.get_ref();
    let count = integer(value).filter(|count| (1..=max).contains(count));
    if count.is_none() {
        let title = format!("`{name}` must be a whole number from 1 to {max}");
        let help = "leave the key out for no limit; to forbid calls, use `deny`";
        reader.report_error(value.span(), title, "not a whole number in this range", help);
    }
    count.and_then(|count| count.try_into().ok())
}

fn rate(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Option<Rate> {
    if let Some(table) = value.get_ref().as_table() {
        return rate_table(reader, value, table);
    }
    let Some(text) = value.get_ref().as_str() else {
        let title = format!("`rate` must be a string or a table, not {}", kind_of(value));
        reader.report_error(value.span(), title, "expected a rate", RATE_HELP);
        return None;
    };
    let read = Rate::parse(text);
    if read.is_none() {
        reader.report_error(
            value.span(),
            "this is not a rate",
            "expected a rate such as \"60/min\"",
            RATE_HELP,
        );
    }
    read
}

fn rate_table(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>, table: &DeTable<'_>) -> Option<Rate> {
    let (mut calls, mut per, mut burst, mut valid) = (None, None, None, true);
    for (key, value) in table {
        match key.get_ref().as_ref() {
            name @ ("calls" | "burst") => {
                let count = count(reader, key, value, i64::from(u32::MAX))
                    .and_then(|count| u32::try_from(count).ok());
                let count = count.and_then(NonZeroU32::new);
                valid &= count.is_some();
                *(if name == "calls" { &mut calls } else { &mut burst }) = count;
            }
            "per" => {
                per = value.get_ref().as_str().and_then(duration);
                if per.is_none() {
                    let title = "`per` must be a period of at least one second";
                    let help = "write a number and s, min, h or d: per = \"10 min\"";
                    reader.report_error(value.span(), title, "not a period", help);
                    valid = false;
                }
            }
            _ => {
                reader.unknown_key(key, "a rate", RATE_HELP);
                valid = false;
            }
        }
    }
    match (calls, per) {
        (Some(calls), Some(per)) if valid => Some(Rate { calls, per, burst: burst.unwrap_or(calls) }),
        _ if valid => {
            reader.report_error(
                value.span(),
                "a rate has `calls` and `per`",
                "one of them is missing",
                RATE_HELP,
            );
            None
        }
        _ => None,
    }
}

/// Parses the period of a rate limit, such as "1m", "10 min" or "1h". Returns `None` if the text is not a period from
/// one second to [`PER_MAX`].
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    let seconds = count.parse::<u64>().ok()?.checked_mul(seconds(unit.trim())?)?;
    Some(Duration::from_secs(seconds)).filter(|per| (Duration::from_secs(1)..=PER_MAX).contains(per))
}
