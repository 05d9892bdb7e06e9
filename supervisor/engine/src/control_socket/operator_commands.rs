//! Requests of operators over the control socket, such as listing or ending sessions. Each connection sends one
//! request and gets one response.

use std::path::PathBuf;

use crate::active_runs::RunListing;
use crate::sessions::{SessionListing, SessionSelector};
use crate::supervisor::{ReloadReport, Supervisor};
use lockhouse_gate::results::{ResultListing, Results};
use lockhouse_protocol::ResultHandle;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reason that an AI client gets for the end of its session after an operator ended the session.
const ENDED_BY_OPERATOR: &str = "a person ended it with `lockhouse sessions end`";

/// Maximum number of stored results in a list. A line of the control socket has space for them.
const RESULTS_LISTED_MAX: usize = 1_000;
/// Maximum bytes of a part of a stored result. As a JSON string in a line of the control socket, a byte takes up to six.
const RESULT_PART_BYTES: usize = 128 * 1024;

/// A request of an operator over the control socket: what the supervisor must do. A `u32` in a variant is the version
/// of the control protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorRequest {
    ListSessions(u32),
    /// End the session with this name. The request is refused if several AI clients have a session with the name.
    EndSession(String),
    /// End the session with this ID, as the list of sessions shows it.
    EndSessionWithId(u64),
    /// End all sessions of all AI clients.
    EndSessions(u32),
    Health(u32),
    ListRuns(u32),
    /// End the run with this execution ID.
    EndRun(String),
    /// End all active runs.
    EndRuns(u32),
    /// Reload the configuration, as on SIGHUP.
    Reload(u32),
    /// Find the file with this handle that a run of any AI client returned.
    FindFile(String),
    /// List the stored results of all AI clients.
    ListResults(u32),
    /// Return a part of a stored result, which begins at this byte of its JSON.
    ReadResult {
        handle: String,
        offset: usize,
    },
}

/// The response to a request of an operator over the control socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorResponse {
    Sessions(Vec<SessionListing>),
    /// The names of the sessions that were ended. Their active runs are being stopped.
    Ended(Vec<String>),
    /// The health of the process, as `/health` reports it.
    Health(Value),
    Runs(Vec<RunListing>),
    /// The execution IDs of the runs that are being stopped.
    EndedRuns(Vec<String>),
    Reloaded(ReloadReport),
    File(FileLocation),
    Results(Vec<ResultListing>),
    /// A part of the JSON of a stored result.
    ResultPart {
        text: String,
        /// Whether the result ends with this part.
        is_last: bool,
    },
    /// The supervisor refused the request, and nothing changed.
    Refused {
        reason: String,
    },
}

/// A file that a run returned. The operator is of the same user as the process, or root, and reads the file itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLocation {
    pub name: String,
    pub path: PathBuf,
}

async fn find_file(supervisor: &Supervisor, handle: &str) -> OperatorResponse {
    let refused = |reason: &str| OperatorResponse::Refused { reason: reason.to_owned() };
    let Ok(handle) = ResultHandle::new(handle) else { return refused("this is no handle") };
    let files = supervisor.result_files().clone();
    let found = tokio::task::spawn_blocking(move || files.locate_for_operator(&handle));
    match found.await {
        Ok(Some((stored, path))) => OperatorResponse::File(FileLocation { name: stored.name, path }),
        _ => refused("there is no such file"),
    }
}

/// Executes an operator's request, such as ending a session, and returns the response.
pub(super) async fn carry_out(request: &OperatorRequest, supervisor: &Supervisor) -> OperatorResponse {
    let (sessions, runs) = (supervisor.sessions(), supervisor.active_runs());
    match request {
        OperatorRequest::Health(_) => {
            OperatorResponse::Health(serde_json::to_value(supervisor.health()).unwrap_or_default())
        }
        OperatorRequest::ListSessions(_) => OperatorResponse::Sessions(sessions.list()),
        OperatorRequest::EndSession(name) => {
            ended_response(sessions.end(SessionSelector::Named(name), ENDED_BY_OPERATOR))
        }
        OperatorRequest::EndSessionWithId(id) => {
            ended_response(sessions.end(SessionSelector::Numbered(*id), ENDED_BY_OPERATOR))
        }
        OperatorRequest::ListRuns(_) => OperatorResponse::Runs(runs.list()),
        OperatorRequest::EndRun(execution) => OperatorResponse::EndedRuns(runs.end(Some(execution))),
        OperatorRequest::EndRuns(_) => OperatorResponse::EndedRuns(runs.end(None)),
        OperatorRequest::Reload(_) => match supervisor.request_reload().await {
            Ok(report) => OperatorResponse::Reloaded(report),
            Err(unavailable) => OperatorResponse::Refused { reason: unavailable.to_string() },
        },
        OperatorRequest::FindFile(handle) => find_file(supervisor, handle).await,
        OperatorRequest::ListResults(_) => {
            let mut results = supervisor.results().list();
            results.truncate(RESULTS_LISTED_MAX);
            OperatorResponse::Results(results)
        }
        OperatorRequest::ReadResult { handle, offset } => read_result(supervisor.results(), handle, *offset),
        OperatorRequest::EndSessions(_) => {
            ended_response(sessions.end(SessionSelector::All, ENDED_BY_OPERATOR))
        }
    }
}

/// Returns a part of a stored result that fits into one line of the control socket.
fn read_result(results: &Results, handle: &str, offset: usize) -> OperatorResponse {
    let found = ResultHandle::new(handle).ok().and_then(|handle| results.get_for_operator(&handle));
    let Some(rest) = found.as_deref().and_then(|json| json.get(offset..)) else {
        let reason = "there is no such result: it has expired, or newer ones needed its space".to_owned();
        return OperatorResponse::Refused { reason };
    };
    let end = rest.floor_char_boundary(RESULT_PART_BYTES);
    OperatorResponse::ResultPart { text: rest[..end].to_owned(), is_last: end == rest.len() }
}

fn ended_response(ended: Result<Vec<String>, usize>) -> OperatorResponse {
    match ended {
        Ok(names) => OperatorResponse::Ended(names),
        Err(count) => {
            let reason = format!(
                "{count} clients have a session with this name; end one of them by its ID from the list"
            );
            OperatorResponse::Refused { reason }
        }
    }
}
