//! Searches the audit log, the latest records first, a page of them at a time.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use lockhouse_audit::AuditEvent;
use lockhouse_audit::reader::{Filter, LocatedRecord, ReadError, records};
use lockhouse_base::representable_time::ago;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Activity, interrupted};
use crate::error::{ActionError, ErrorCode};

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 200;
/// The period that is searched if the query does not say since when.
const PERIOD_DEFAULT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The period that is searched first. Each further period is longer by [`PERIOD_FACTOR`], until there are enough records.
const FIRST_PERIOD: Duration = Duration::from_secs(60 * 60);
const PERIOD_FACTOR: u32 = 4;
/// Time after which a search ends with what it has found.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum bytes of a record that is returned whole.
const RECORD_BYTES_MAX: usize = 32 * 1024;

/// A search of the audit log: the parameters of the request. An empty text means no restriction.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuditQuery {
    event: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    pub(crate) client: Option<String>,
    outcome: Option<String>,
    decision: Option<String>,
    execution: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// The cursor of an earlier response: only records before it match.
    before: Option<String>,
    limit: Option<usize>,
}

/// The position of a record in the order of all records.
type Position = (String, String, u64);

struct Search {
    filter: Filter,
    since: SystemTime,
    until: SystemTime,
    before: Option<Position>,
    limit: usize,
}

struct Found {
    /// The records, oldest first.
    records: VecDeque<LocatedRecord>,
    is_complete: bool,
    has_more: bool,
}

impl Activity {
    /// Returns a page of the records that match the query.
    ///
    /// # Errors
    /// [`ErrorCode::Invalid`] if a parameter is invalid; [`ErrorCode::Failed`] if the log cannot be read.
    pub(crate) async fn query(&self, query: AuditQuery) -> Result<Value, ActionError> {
        let search = query.into_search()?;
        let directory = self.directory()?.to_owned();
        let _permit = self.search_permit().await?;
        let searching = move || search.find(&directory);
        let found = tokio::task::spawn_blocking(searching).await.map_err(|error| interrupted(&error))??;
        let next = found.records.front().filter(|_| found.has_more).map(|record| cursor(&position(record)));
        let rows = found.records.iter().rev().map(record_json);
        Ok(json!({"records": rows.collect::<Value>(), "next": next, "complete": found.is_complete}))
    }
}

impl AuditQuery {
    fn into_search(self) -> Result<Search, ActionError> {
        let invalid = |message: &str| ActionError::new(ErrorCode::Invalid, message);
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let time = |text: Option<String>| {
            let message =
                "a time must be an age such as 7d or 2h, a date such as 2026-01-31, or a time as in the log";
            given(text).map(|text| parse_time(&text).ok_or_else(|| invalid(message))).transpose()
        };
        let now = SystemTime::now();
        let since = time(self.since)?;
        let until = time(self.until)?;
        let before =
            given(self.before).map(|text| parse_cursor(&text).ok_or_else(|| invalid("`before` is invalid")));
        let filter = Filter {
            event: given(self.event),
            server: given(self.server),
            tool: given(self.tool),
            client: given(self.client),
            outcome: given(self.outcome),
            decision: given(self.decision),
            execution: given(self.execution).map(|text| text.to_lowercase()),
            since: None,
            until: None,
        };
        let since = since.or_else(|| now.checked_sub(PERIOD_DEFAULT)).unwrap_or(SystemTime::UNIX_EPOCH);
        let limit = self.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX);
        // Records of a process whose clock was ahead are found too.
        let until = until.unwrap_or(now + Duration::from_secs(24 * 60 * 60));
        Ok(Search { filter, since, until, before: before.transpose()?, limit })
    }
}

impl Search {
    /// Searches longer and longer periods, beginning with the latest, until there are enough records.
    fn find(&self, directory: &Path) -> Result<Found, ActionError> {
        let deadline = Instant::now() + SEARCH_TIME_MAX;
        let before = self.before.as_ref().and_then(|(time, ..)| humantime::parse_rfc3339(time).ok());
        let mut end = before.map_or(self.until, |before| self.until.min(before));
        let mut period = FIRST_PERIOD;
        let mut found = Found { records: VecDeque::new(), is_complete: true, has_more: false };
        loop {
            let start = end.checked_sub(period).unwrap_or(SystemTime::UNIX_EPOCH).max(self.since);
            let Some(earlier) = self.find_in(directory, start, end, &found, deadline)? else {
                found.is_complete = false;
                return Ok(found);
            };
            for record in earlier.into_iter().rev() {
                found.records.push_front(record);
            }
            if found.records.len() > self.limit {
                found.has_more = true;
                found.records.drain(..found.records.len() - self.limit);
                return Ok(found);
            }
            if start <= self.since {
                return Ok(found);
            }
            (end, period) = (start, period.saturating_mul(PERIOD_FACTOR));
        }
    }

    /// Returns the latest records of a period, oldest first: one more than are still wanted. `None` if the time for the
    /// search is over.
    fn find_in(
        &self,
        directory: &Path,
        start: SystemTime,
        end: SystemTime,
        found: &Found,
        deadline: Instant,
    ) -> Result<Option<VecDeque<LocatedRecord>>, ActionError> {
        let failed = |error: ReadError| ActionError::new(ErrorCode::Failed, error.to_string());
        let filter = Filter { since: Some(start), until: Some(end), ..self.filter.clone() };
        let known = found.records.front().map(position).or_else(|| self.before.clone());
        let wanted = self.limit + 1 - found.records.len();
        let mut latest = VecDeque::new();
        let matching = match records(directory, &filter) {
            // No log exists before the first run.
            Err(error) if error.source.kind() == ErrorKind::NotFound => return Ok(Some(latest)),
            matching => matching.map_err(failed)?,
        };
        for (count, record) in matching.enumerate() {
            let record = record.map_err(failed)?;
            if count % 256 == 0 && Instant::now() > deadline {
                return Ok(None);
            }
            let is_known = known.as_ref().is_some_and(|known| position(&record) >= *known);
            if is_known || matches!(record.record.event, AuditEvent::Chain) {
                continue;
            }
            if latest.len() == wanted {
                latest.pop_front();
            }
            latest.push_back(record);
        }
        Ok(Some(latest))
    }
}

fn position(record: &LocatedRecord) -> Position {
    (record.record.time.clone(), record.segment.as_str().to_owned(), record.record.seq)
}

fn cursor((time, segment, seq): &Position) -> String {
    format!("{time}|{segment}|{seq}")
}

fn parse_cursor(text: &str) -> Option<Position> {
    let (time, rest) = text.split_once('|')?;
    let (segment, seq) = rest.split_once('|')?;
    humantime::parse_rfc3339(time).ok()?;
    Some((time.to_owned(), segment.to_owned(), seq.parse().ok()?))
}

fn parse_time(text: &str) -> Option<SystemTime> {
    if let Ok(age) = humantime::parse_duration(text) {
        return Some(ago(age));
    }
    let moment = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    humantime::parse_rfc3339(&moment).ok()
}

fn record_json(found: &LocatedRecord) -> Value {
    let whole = Some(&found.text).filter(|text| text.len() <= RECORD_BYTES_MAX);
    let record = whole.and_then(|text| serde_json::from_str(text).ok());
    let record =
        record.unwrap_or_else(|| json!({"seq": found.record.seq, "time": found.record.time, "cut": true}));
    json!({"segment": found.segment.as_str(), "record": record})
}
