//! How an ending is told: status and error, with what the calls of the program say of where it was and of what is done already.

use std::fmt::Write as _;

use lockhouse_catalog::Changes;
use lockhouse_gate::CallRecord;
use lockhouse_protocol::CodeError;
use serde_json::value::RawValue;

use super::{Cancellation, Ending, Limit, Status};

/// Calls that are named; the rest are counted.
const NAMED_MAX: usize = 10;

/// Status, value and error of an ending. `waiting` are the calls that were under way, `over` the others.
pub(super) fn told(
    ending: Ending,
    wall_limit: f32,
    over: &[CallRecord],
    waiting: &[CallRecord],
) -> (Status, Option<Box<RawValue>>, Option<CodeError>) {
    let words =
        |kind: &str, message: String| CodeError { kind: kind.into(), message, ..CodeError::default() };
    let (status, error) = match ending {
        Ending::Value(None) => return (Status::Ok, None, None),
        Ending::Value(Some(json)) => match serde_json::from_slice(&json) {
            Ok(value) => return (Status::Ok, Some(value), None),
            Err(error) => (Status::Error, words("ValueError", format!("the value is not JSON: {error}"))),
        },
        Ending::Error(error) => (Status::Error, error),
        Ending::Timeout(place) => {
            let limit = Limit::time(format!("the code did not end within {wall_limit} s"));
            (Status::Timeout, stopped(limit, place, over, waiting))
        }
        Ending::Limit(limit, place) => (Status::Limit, stopped(limit, place, over, waiting)),
        Ending::Killed { words: message, .. } => {
            (Status::Killed, placed(words("Killed", message), over, waiting))
        }
        Ending::Broken(why) => {
            (Status::Killed, words("Killed", format!("the worker broke the protocol and was killed: {why}")))
        }
        Ending::Cancelled(why, place) => (Status::Cancelled, cancelled(why, place, over, waiting)),
    };
    (status, None, Some(error))
}

/// The error of a program that was stopped at a limit.
fn stopped(limit: Limit, place: Option<CodeError>, over: &[CallRecord], waiting: &[CallRecord]) -> CodeError {
    let Limit { kind, message, hint, .. } = limit;
    let place = place.unwrap_or_default();
    let hint = place.hint.clone().or_else(|| Some(hint.into()));
    placed(CodeError { kind: kind.into(), message, hint, ..place }, over, waiting)
}

/// The error of a program that was ended from outside.
fn cancelled(
    why: Cancellation,
    place: Option<CodeError>,
    over: &[CallRecord],
    waiting: &[CallRecord],
) -> CodeError {
    let (kind, message) = ("Cancelled".into(), why.message().into());
    let hint = why.hint().map(str::to_owned);
    placed(CodeError { kind, message, hint, ..place.unwrap_or_default() }, over, waiting)
}

/// The same with what calls say of where the program was: what it waited for, or, where nothing else is known, what it had called
/// last.
fn placed(error: CodeError, over: &[CallRecord], waiting: &[CallRecord]) -> CodeError {
    let known = if waiting.is_empty() { over.last() } else { waiting.first() };
    let Some(CallRecord { line: Some(line), .. }) = known else { return error };
    let message = match (waiting, over.last()) {
        ([], Some(last)) if error.line.is_none() => {
            format!("{}; its last call was {}, at line {line}", error.message, last.title())
        }
        ([], _) => return error,
        ([one], _) => format!("{}; it was waiting for {}, called at line {line}", error.message, one.title()),
        _ => format!(
            "{}; it was waiting for {} calls: {}",
            error.message,
            waiting.len(),
            named(waiting.iter(), false)
        ),
    };
    let line = error.line.or((!waiting.is_empty()).then_some(*line));
    CodeError { message, line, ..error }
}

/// For a program that failed: which of its calls may have changed something, in a sentence. Where a server does not declare
/// whether its tool changes anything, the sentence says so.
pub(super) fn changed(calls: &[CallRecord]) -> Option<String> {
    let of = |changes| calls.iter().filter(|call| call.changes == changes).collect::<Vec<_>>();
    let (declared, undeclared) = (of(Changes::Something), of(Changes::Undeclared));
    let mut parts = Vec::new();
    if !declared.is_empty() {
        let words = match declared.len() {
            1 => "1 call that may change something was already made".to_owned(),
            count => format!("{count} calls that may change something were already made"),
        };
        parts.push(format!("{words}: {}", named(declared.iter().copied(), true)));
    }
    if !undeclared.is_empty() {
        let words = match undeclared.len() {
            1 => {
                "1 call was already made whose server does not declare whether it changes anything".to_owned()
            }
            count => {
                format!(
                    "{count} calls were already made whose servers do not declare whether they change anything"
                )
            }
        };
        parts.push(format!("{words}: {}", named(undeclared.iter().copied(), true)));
    }
    let them = if declared.len() + undeclared.len() == 1 { "it" } else { "them" };
    (!parts.is_empty()).then(|| format!("{}; do not repeat {them} blindly", parts.join("; ")))
}

/// Calls with their lines, and, of those that are over, their outcomes where those are not as wished; what is alike is told once.
fn named<'a>(calls: impl Iterator<Item = &'a CallRecord>, are_over: bool) -> String {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for call in calls {
        let line = call.line.map(|line| format!("line {line}"));
        let outcome = (are_over && call.outcome != "ok").then(|| format!("outcome {}", call.outcome));
        let notes: Vec<String> = line.into_iter().chain(outcome).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let title = format!("{}{notes}", call.title());
        match groups.iter_mut().find(|(other, _)| *other == title) {
            Some((_, count)) => *count += 1,
            None => groups.push((title, 1)),
        }
    }
    let mut text = String::new();
    for (title, count) in groups.iter().take(NAMED_MAX) {
        let times = if *count > 1 { format!("{count} × ") } else { String::new() };
        let _ = write!(text, "{}{times}{title}", if text.is_empty() { "" } else { ", " });
    }
    if groups.len() > NAMED_MAX {
        let rest: usize = groups.iter().skip(NAMED_MAX).map(|(_, count)| count).sum();
        let _ = write!(text, " and {rest} more");
    }
    text
}
