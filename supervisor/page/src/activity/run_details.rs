//! The details of one run: its program and its calls.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_audit::program_store::{ProgramComparison, ProgramRecord, compare};
use lockhouse_audit::reader::{Filter, records};
use serde_json::{Value, json};

use super::history::History;
use super::published::recorded_json;
use super::run_record::RunRecord;
use super::{Activity, interrupted};
use crate::error::{ActionError, ErrorCode};
use crate::text::{self, cut};

/// Maximum number of characters of a program that are shown.
const PROGRAM_CHARS_MAX: usize = 128 * 1024;
/// Maximum number of names of servers that are shown.
const SERVERS_MAX: usize = 100;

/// The details of a run, with its AI client.
pub(crate) struct RunDetails {
    pub(crate) client: Option<String>,
    pub(crate) json: Value,
}

impl Activity {
    /// Returns the details of a run. Calls that are no longer in memory are read from the audit log.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if neither a process nor the audit log knows the run.
    pub(crate) async fn run(&self, execution: String) -> Result<RunDetails, ActionError> {
        let not_found = || ActionError::new(ErrorCode::NotFound, "there is no such run");
        let id = uuid::Uuid::parse_str(&execution).map_err(|_| not_found())?;
        let execution = id.hyphenated().to_string();
        let (shown, known) = {
            let state = self.0.state.lock();
            (state.run(&execution), state.history.runs.get(&execution).cloned())
        };
        let known = known.filter(|run| !run.are_calls_dropped);
        let directory = match self.directory() {
            Ok(directory) => Some(Arc::<Path>::from(directory)),
            Err(_) => None,
        };
        let recorded = match (known, &directory) {
            (Some(run), _) => Some(run),
            (None, Some(directory)) => {
                let _permit = self.search_permit().await?;
                let (directory, execution) = (directory.clone(), execution.clone());
                let reading = move || read_run(&directory, &execution, id);
                tokio::task::spawn_blocking(reading).await.map_err(|error| interrupted(&error))??
            }
            (None, None) => None,
        };
        let shown = shown.or_else(|| recorded.as_ref().map(|run| recorded_json(&execution, run)));
        let shown = shown.ok_or_else(not_found)?;
        let run = recorded.unwrap_or_default();
        let program = match directory {
            Some(directory) if !run.code.is_empty() => {
                let program = (run.language.clone(), run.code.clone(), run.code_kept.clone());
                let reading = move || program_json(&directory, &program);
                tokio::task::spawn_blocking(reading).await.map_err(|error| interrupted(&error))?
            }
            _ => json!({"state": "absent", "text": null, "truncated": false, "note": null}),
        };
        let client = shown["client"].as_str().map(str::to_owned);
        let servers: Vec<String> =
            run.servers.iter().take(SERVERS_MAX).map(|name| text::name(name)).collect();
        let json = json!({
            "run": shown, "servers": servers, "policy": run.policy, "program": program,
            "calls": run.calls.iter().map(super::run_record::CallRecord::to_json).collect::<Value>(),
            "calls_left_out": run.calls_left_out(),
        });
        Ok(RunDetails { client, json })
    }
}

/// Reads the records of one run from the audit log. `None` if the log does not contain the run.
fn read_run(directory: &Path, execution: &str, id: uuid::Uuid) -> Result<Option<RunRecord>, ActionError> {
    let failed =
        |error: lockhouse_audit::reader::ReadError| ActionError::new(ErrorCode::Failed, error.to_string());
    let started = id.get_timestamp().map(|timestamp| timestamp.to_unix());
    let since = started.map(|(seconds, nanos)| Duration::new(seconds.saturating_sub(1), nanos));
    let since = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    let filter = Filter { execution: Some(execution.to_owned()), since, ..Filter::default() };
    let mut history = History::default();
    for found in records(directory, &filter).map_err(failed)? {
        let record = found.map_err(failed)?.record;
        let is_end = matches!(record.event, lockhouse_audit::AuditEvent::End { .. });
        history.add(record);
        if is_end {
            break;
        }
    }
    Ok(history.runs.remove(execution))
}

/// Returns the stored program of a run, compared with the hash in its record.
fn program_json(directory: &Path, (language, code, kept): &(String, String, Option<String>)) -> Value {
    let recorded = ProgramRecord { language, code, kept: kept.as_deref() };
    let (state, text, note) = match compare(directory, recorded) {
        Ok(ProgramComparison::Genuine(text)) => ("genuine", Some(text), None),
        Ok(ProgramComparison::Redacted(text)) => {
            ("redacted", Some(text), Some("secrets of the configuration are redacted".to_owned()))
        }
        Ok(ProgramComparison::Unverifiable(text)) => {
            ("unverifiable", Some(text), Some("the record has no hash of this text".to_owned()))
        }
        Ok(ProgramComparison::Absent) => {
            ("absent", None, Some("the program was not stored, or its retention period is over".to_owned()))
        }
        Ok(ProgramComparison::Replaced { file, found }) => {
            let note =
                format!("{} is NOT the program that ran: {found}; its text is not shown", file.display());
            ("replaced", None, Some(note))
        }
        Ok(ProgramComparison::Removed { file }) => {
            ("removed", None, Some(format!("{} has been removed", file.display())))
        }
        Err(error) => ("unreadable", None, Some(format!("the program cannot be read: {error}"))),
    };
    let shown = text.as_deref().map(|text| cut(text, PROGRAM_CHARS_MAX));
    let truncated = shown.as_ref().is_some_and(|shown| matches!(shown, std::borrow::Cow::Owned(_)));
    json!({"state": state, "text": shown, "truncated": truncated, "note": note})
}
