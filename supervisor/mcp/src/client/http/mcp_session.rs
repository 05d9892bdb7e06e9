//! The MCP session with an upstream server over HTTP, which the server names in the header `Mcp-Session-Id`. A server that
//! was restarted does not know the session any more; a new one is then begun, within a limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

/// The shortest time between two new sessions that replace lost ones.
/// Bound: upstream servers.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);
/// The error of a request that did not run, because the server does not know its session.
pub(super) const LOST: &str = "it does not know the MCP session any more";
/// The error of a request that may have run, although the server does not know its session.
pub(super) const LOST_IN_CALL: &str = "it refused the MCP session; whether the call took effect is not known";
/// The words, in lower case, by which the text of an error names the session.
const SESSION_WORDS: [&str; 2] = ["session", "initializ"];
/// How the texts begin, in lower case and after `bad request: `, with which servers refuse a request before they carry it
/// out, because they do not know its session. Any other text may be an echo of arguments, or the words of a tool.
const REFUSALS: [&str; 12] = [
    "invalid or missing session",
    "invalid session",
    "mcp-session-id",
    "missing session id",
    "no valid session",
    "server not initialized",
    "session expired",
    "session not found",
    "session terminated",
    "unexpected message, expect initialize",
    "unknown session",
    "received request before initialization",
];
/// The codes of errors that servers use for lost sessions. Errors of other codes with the id of the request answer it.
const SESSION_CODES: [i32; 3] = [-32_000, -32_001, -32_600];

/// What a refusal shows that means that the server does not know the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionLoss {
    /// The request did not run.
    NotRun,
    /// The request may have run.
    Unclear,
}

/// Returns whether the refusal of `request` means that the server does not know the session any more; `None` if it does
/// not. `body` is the text of the response; `request` is `None` if it has no id; `has_session` is whether the request named a session. MCP has the status 404
/// for this. Many servers use the status 400 and a JSON-RPC error that names the session, or that has no id.
pub(super) fn session_loss(
    status: StatusCode,
    body: &str,
    request: Option<i64>,
    has_session: bool,
) -> Option<SessionLoss> {
    let is_expired = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) && has_session;
    // Servers use other statuses for other refusals too, so only the text of one about the session counts.
    let is_usual = matches!(status.as_u16(), 400 | 404 | 410);
    if !(is_usual || status.is_client_error() && has_session) {
        return None;
    }
    let Ok(ErrorResponse { error, id }) = serde_json::from_str::<ErrorResponse>(body) else {
        if is_expired || refuses_session(body) {
            return Some(SessionLoss::NotRun);
        }
        return (has_session && is_usual && names_session(body)).then_some(SessionLoss::Unclear);
    };
    let (names_session, refuses_session) = (names_session(&error.message), refuses_session(&error.message));
    if id.as_ref().is_some_and(|id| is_same_id(id, request)) {
        let is_possible = SESSION_CODES.contains(&error.code) && (names_session || is_expired);
        let loss = if is_expired && refuses_session { SessionLoss::NotRun } else { SessionLoss::Unclear };
        return is_possible.then_some(loss);
    }
    if is_expired || refuses_session && SESSION_CODES.contains(&error.code) {
        return Some(SessionLoss::NotRun);
    }
    (has_session && is_usual && (id.is_none() || names_session)).then_some(SessionLoss::Unclear)
}

/// Whether an id is that of a request, also if the server has changed a number to text.
fn is_same_id(id: &Value, request: Option<i64>) -> bool {
    let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    request.is_some_and(|request| text == request.to_string())
}

/// A response that is a JSON-RPC error.
#[derive(Deserialize)]
struct ErrorResponse {
    error: RefusalError,
    id: Option<Value>,
}

#[derive(Deserialize)]
struct RefusalError {
    code: i32,
    #[serde(default)]
    message: String,
}

fn refuses_session(text: &str) -> bool {
    let text = text.trim_start().to_lowercase();
    let prefixes = ["bad request: ", "unauthorized: ", "forbidden: "];
    let text = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(&text);
    REFUSALS.iter().any(|refusal| text.starts_with(refusal))
}

fn names_session(text: &str) -> bool {
    let text = text.to_lowercase();
    SESSION_WORDS.iter().any(|word| text.contains(word))
}

/// Limits how often a lost session of one server is replaced by a new one. Clones share the limit.
#[derive(Clone, Debug, Default)]
pub struct SessionRenewals(Arc<Mutex<Option<Instant>>>);

impl SessionRenewals {
    /// Returns whether a new session may be begun at the time `now`, and counts it if so.
    pub(super) fn admit(&self, now: Instant) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| now.duration_since(last) >= RENEWAL_INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::SessionLoss::{NotRun, Unclear};
    use super::*;

    #[test]
    fn refusals_that_mean_a_lost_session_are_told_from_answers() {
        let error = |id: &str, code: i32, message: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#)
        };
        let no_session = "Bad Request: No valid session ID provided";
        let absent = format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32000,"message":"{no_session}"}}}}"#);
        for (status, body, in_session, without) in [
            // What MCP defines, and what its SDKs send.
            (404, String::new(), Some(NotRun), None),
            (404, error("null", -32_001, "Session not found"), Some(NotRun), Some(NotRun)),
            (404, error("\"server-error\"", -32_600, "Session not found"), Some(NotRun), Some(NotRun)),
            (400, error("null", -32_000, no_session), Some(NotRun), Some(NotRun)),
            (400, absent, Some(NotRun), Some(NotRun)),
            (
                400,
                error("\"server-error\"", -32_600, "Bad Request: Missing session ID"),
                Some(NotRun),
                Some(NotRun),
            ),
            (400, error("null", -32_000, "Bad Request: Server not initialized"), Some(NotRun), Some(NotRun)),
            (400, no_session.to_owned(), Some(NotRun), Some(NotRun)),
            (410, "session terminated".to_owned(), Some(NotRun), Some(NotRun)),
            (410, "Gone".to_owned(), Some(NotRun), None),
            (401, "Unauthorized: Session not found".to_owned(), Some(NotRun), None),
            (403, "Session not found or expired".to_owned(), Some(NotRun), None),
            (422, "Unexpected message, expect initialize request".to_owned(), Some(NotRun), None),
            (409, error("null", -32_000, "Session not found"), Some(NotRun), None),
            (403, error("null", -32_000, "forbidden"), None, None),
            // The server has read the id, so the request may have run.
            (400, error("7", -32_000, no_session), Some(Unclear), Some(Unclear)),
            (404, error("7", -32_001, "Session not found"), Some(NotRun), Some(Unclear)),
            (404, error("7", -32_000, "gone"), Some(Unclear), None),
            (400, error("null", -32_000, "no"), Some(Unclear), None),
            (400, error("\"7\"", -32_000, no_session), Some(Unclear), Some(Unclear)),
            // Words of a tool, and echoes of arguments: the request may have run.
            (400, r#"{"error":"sent, but the browser session was closed"}"#.to_owned(), Some(Unclear), None),
            (400, error("null", -32_000, "session_id=4: paid"), Some(Unclear), None),
            (400, error("null", -1, "Session not found"), Some(Unclear), None),
            // Answers to the request.
            (400, error("7", -32_602, "no such session"), None, None),
            (404, error("7", -32_601, "no such method"), None, None),
            (400, error("7", -32_000, "no"), None, None),
            (400, "bad request".to_owned(), None, None),
            (500, error("null", -32_000, no_session), None, None),
            (401, "your session has expired".to_owned(), None, None),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let loss = |has_session| session_loss(status, &body, Some(7), has_session);
            assert_eq!([loss(true), loss(false)], [in_session, without], "{status} {body}");
        }
    }

    #[test]
    fn one_new_session_is_admitted_in_ten_seconds() {
        let (renewals, now) = (SessionRenewals::default(), Instant::now());
        for (seconds, expected) in
            [(0.0, true), (0.0, false), (9.9, false), (10.0, true), (19.9, false), (20.0, true)]
        {
            assert_eq!(renewals.clone().admit(now + Duration::from_secs_f64(seconds)), expected, "{seconds}");
        }
    }
}
