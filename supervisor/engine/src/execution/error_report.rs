//! Turns the end reason of a run into the status and the error of its answer. The error has the location of the code
//! and lists the calls that may have changed something.

use std::fmt::Write as _;

use lockhouse_catalog::SideEffects;
use lockhouse_gate::CallRecord;
use lockhouse_messages::RunStatus;
use lockhouse_protocol::{CallOutcome, CodeError};
use serde_json::value::RawValue;

use super::{Cancellation, EndReason, ExecutionLimits, ReachedLimit};

/// Maximum number of calls in flight that an error message lists by name. Further calls are only counted.
const LISTED_CALLS_MAX: usize = 10;
/// Maximum number of calls that may have changed something and that an error lists by name.
const LISTED_CHANGES_MAX: usize = 3;

/// Returns the status, the value and the error of a run with these limits.
/// `finished_calls` had a reply when the run ended; `calls_in_flight` had none.
pub(super) fn report(
    end_reason: EndReason,
    limits: &ExecutionLimits,
    finished_calls: &[CallRecord],
    calls_in_flight: &[CallRecord],
) -> (RunStatus, Option<Box<RawValue>>, Option<CodeError>) {
    let error_with =
        |kind: &str, message: String| CodeError { kind: kind.into(), message, ..CodeError::default() };
    let (status, error) = match end_reason {
        EndReason::Value(None) | EndReason::NoValue(_) => return (RunStatus::Ok, None, None),
        EndReason::Value(Some(json)) => match serde_json::from_slice(&json) {
            Ok(value) => return (RunStatus::Ok, Some(value), None),
            Err(error) => {
                (RunStatus::Error, error_with("ValueError", format!("the value is not JSON: {error}")))
            }
        },
        EndReason::Error(error) => (RunStatus::Error, error),
        EndReason::Timeout(location) => (
            RunStatus::Timeout,
            limit_error(limits.time_reached(), location, finished_calls, calls_in_flight),
        ),
        EndReason::Limit(limit, location) => {
            (RunStatus::Limit, limit_error(limit, location, finished_calls, calls_in_flight))
        }
        EndReason::Killed { message, .. } => (
            RunStatus::Killed,
            with_call_location(error_with("Killed", message), finished_calls, calls_in_flight),
        ),
        EndReason::ProtocolViolation(why) => (
            RunStatus::Killed,
            error_with("Killed", format!("the worker broke the protocol and was killed: {why}")),
        ),
        EndReason::Cancelled(why, location) => {
            (RunStatus::Cancelled, cancellation_error(why, location, finished_calls, calls_in_flight))
        }
    };
    (status, None, Some(error))
}

/// Returns the error of a run that reached a limit. `location` is the error that the code reported when it was stopped,
/// with the line that was executing; `None` if it could not report one.
fn limit_error(
    limit: ReachedLimit,
    location: Option<CodeError>,
    finished_calls: &[CallRecord],
    calls_in_flight: &[CallRecord],
) -> CodeError {
    let ReachedLimit { kind, message, hint, .. } = limit;
    let location = location.unwrap_or_default();
    let hint = location.hint.clone().or_else(|| Some(hint.into_owned()));
    with_call_location(
        CodeError { kind: kind.into(), message, hint, ..location },
        finished_calls,
        calls_in_flight,
    )
}

/// Returns the error of a run that was cancelled. `location` is the error that the code reported when it was stopped,
/// with the line that was executing; `None` if it could not report one.
fn cancellation_error(
    why: Cancellation,
    location: Option<CodeError>,
    finished_calls: &[CallRecord],
    calls_in_flight: &[CallRecord],
) -> CodeError {
    let (kind, message) = ("Cancelled".into(), why.message().into());
    let hint = why.hint().map(str::to_owned);
    with_call_location(
        CodeError { kind, message, hint, ..location.unwrap_or_default() },
        finished_calls,
        calls_in_flight,
    )
}

/// Adds to an error the calls for which the program was waiting. If there are none and the error has no line, adds
/// the last call of the program instead.
fn with_call_location(
    error: CodeError,
    finished_calls: &[CallRecord],
    calls_in_flight: &[CallRecord],
) -> CodeError {
    let known = if calls_in_flight.is_empty() { finished_calls.last() } else { calls_in_flight.first() };
    let Some(CallRecord { line: Some(line), .. }) = known else { return error };
    let message = match (calls_in_flight, finished_calls.last()) {
        ([], Some(last)) if error.line.is_none() => {
            format!("{}; its last call was {}, at line {line}", error.message, last.title())
        }
        ([], _) => return error,
        ([one], _) => format!("{}; it was waiting for {}, called at line {line}", error.message, one.title()),
        _ => format!(
            "{}; it was waiting for {} calls: {}",
            error.message,
            calls_in_flight.len(),
            list_calls(calls_in_flight.iter(), false, LISTED_CALLS_MAX)
        ),
    };
    let line = error.line.or((!calls_in_flight.is_empty()).then_some(*line));
    CodeError { message, line, ..error }
}

/// Describes in one sentence which calls of a failed program may have changed something. Calls to tools that do not
/// declare whether they change anything are listed separately. Omits the calls of tools whose names say that they read.
/// Returns `None` if no call may have changed anything.
pub(super) fn describe_changes(calls: &[CallRecord]) -> Option<String> {
    let calls = || calls.iter().filter(|call| !call.is_likely_read());
    let with_changes = |changes| calls().filter(|call| call.changes == changes).collect::<Vec<_>>();
    let (declared, undeclared) = (with_changes(SideEffects::Declared), with_changes(SideEffects::Undeclared));
    let mut parts = Vec::new();
    if !declared.is_empty() {
        let summary = match declared.len() {
            1 => "1 call that may change something was already made".to_owned(),
            count => format!("{count} calls that may change something were already made"),
        };
        // At least one name of each kind.
        let shown = LISTED_CHANGES_MAX - usize::from(!undeclared.is_empty());
        parts.push(format!("{summary}: {}", list_calls(declared.iter().copied(), true, shown)));
    }
    if !undeclared.is_empty() {
        let summary = match undeclared.len() {
            1 => {
                "1 call was already made whose server does not declare whether it changes anything".to_owned()
            }
            count => {
                format!(
                    "{count} calls were already made whose servers do not declare whether they change anything"
                )
            }
        };
        let shown = LISTED_CHANGES_MAX - declared.len().min(LISTED_CHANGES_MAX - 1);
        parts.push(format!("{summary}: {}", list_calls(undeclared.iter().copied(), true, shown)));
    }
    let pronoun = if declared.len() + undeclared.len() == 1 { "it" } else { "them" };
    (!parts.is_empty()).then(|| format!("{}; do not repeat {pronoun} blindly", parts.join("; ")))
}

/// Lists calls as text with their line numbers. If `show_outcomes` is set, also shows each outcome that is not `ok`.
/// Calls with the same text are listed once, with the number of these calls. At most `listed_max` texts are listed.
fn list_calls<'a>(
    calls: impl Iterator<Item = &'a CallRecord>,
    show_outcomes: bool,
    listed_max: usize,
) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for call in calls {
        let line = call.line.map(|line| format!("line {line}"));
        let outcome = (show_outcomes && call.outcome != CallOutcome::Ok)
            .then(|| format!("outcome {}", call.outcome.as_str()));
        let notes: Vec<String> = line.into_iter().chain(outcome).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let title = format!("{}{notes}", call.title());
        match groups.iter_mut().find(|(other, _)| *other == title) {
            Some((_, count)) => *count += 1,
            None => groups.push((title, 1)),
        }
    }
    let mut text = String::new();
    for (title, count) in groups.iter().take(listed_max) {
        let times = if *count > 1 { format!("{count} × ") } else { String::new() };
        let _ = write!(text, "{}{times}{title}", if text.is_empty() { "" } else { ", " });
    }
    if groups.len() > listed_max {
        let rest: usize = groups.iter().skip(listed_max).map(|(_, count)| count).sum();
        let _ = write!(text, " and {rest} more");
    }
    text
}
