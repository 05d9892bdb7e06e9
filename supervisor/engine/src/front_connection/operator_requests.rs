//! Serves operators: lists and ends runs and sessions, reloads the configuration, reads stored results, and shows the
//! questions about calls that require approval.

use std::sync::Arc;

use lockhouse_approvals::{Watcher, WatcherKind};
use lockhouse_audit::{Ended, LocalUser};
use lockhouse_messages::{
    ApprovalEvent, ApprovalInput, EndedRuns, EndedSessions, Event, FileLocation, Input, OperatorRequest,
    OperatorResponse, Response, WatcherRole,
};
use lockhouse_protocol::ResultHandle;
use lockhouse_stores::results::Results;
use tokio_util::sync::CancellationToken;

use super::exchange::EngineExchange;
use crate::execution::Cancellation;
use crate::sessions::SessionSelector;
use crate::supervisor::Supervisor;

/// The reason that an AI client gets for the end of its session after an operator ended the session.
const ENDED_BY_OPERATOR: &str = "a person ended it with `lockhouse sessions end`";
/// Maximum number of stored results in a list.
const RESULTS_LISTED_MAX: usize = 1_000;
/// Maximum bytes of a part of a stored result. As a JSON string in a line of the control socket, a byte takes up to six.
const RESULT_PART_BYTES: usize = 128 * 1024;

/// The refusal of a handle that no stored result has.
pub(crate) const NO_RESULT: &str = "there is no such result: it has expired, or newer ones needed its space";

/// Carries a request of the operator `by` out, and returns the response.
pub(super) async fn carry_out(
    supervisor: &Supervisor,
    request: OperatorRequest,
    by: Option<LocalUser>,
) -> OperatorResponse {
    match request {
        OperatorRequest::Health => OperatorResponse::Health(supervisor.complete_health()),
        OperatorRequest::ListSessions => OperatorResponse::Sessions(supervisor.sessions().list()),
        OperatorRequest::EndSessions(ended) => end_sessions(supervisor, &ended, by),
        OperatorRequest::ListRuns => OperatorResponse::Runs(supervisor.runs().list()),
        OperatorRequest::EndRuns(ended) => end_runs(supervisor, &ended, by),
        OperatorRequest::Stop { reason } => {
            supervisor.stop(reason.as_deref(), by);
            OperatorResponse::Stopping
        }
        OperatorRequest::Reload => match supervisor.request_reload(by).await {
            Ok(report) => OperatorResponse::Reloaded(report),
            Err(unavailable) => refused(unavailable.to_string()),
        },
        OperatorRequest::FindFile(handle) => find_file(supervisor, handle).await,
        OperatorRequest::ListResults => {
            let mut results = supervisor.results().list();
            results.truncate(RESULTS_LISTED_MAX);
            OperatorResponse::Results(results)
        }
        OperatorRequest::ReadResult { handle, offset } => read_result(supervisor.results(), &handle, offset),
    }
}

fn refused(reason: impl Into<String>) -> OperatorResponse {
    OperatorResponse::Refused { reason: reason.into() }
}

fn end_runs(supervisor: &Supervisor, ended: &EndedRuns, by: Option<LocalUser>) -> OperatorResponse {
    let execution = match ended {
        EndedRuns::All => None,
        EndedRuns::One(execution) => Some(execution.as_str()),
    };
    let ended = supervisor.runs().end(execution, &Cancellation::Person);
    for execution in &ended {
        supervisor.record_termination(Ended::Run(execution), by);
    }
    OperatorResponse::EndedRuns(ended)
}

fn end_sessions(supervisor: &Supervisor, ended: &EndedSessions, by: Option<LocalUser>) -> OperatorResponse {
    let selector = match ended {
        EndedSessions::All => SessionSelector::All,
        EndedSessions::Named(name) => SessionSelector::Named(name),
        EndedSessions::Numbered(id) => SessionSelector::Numbered(*id),
    };
    match supervisor.sessions().end(selector, ENDED_BY_OPERATOR) {
        Ok(names) => {
            for name in &names {
                supervisor.record_termination(Ended::Session(name), by);
            }
            OperatorResponse::EndedSessions(names)
        }
        Err(count) => refused(format!(
            "{count} clients have a session with this name; end one of them by its ID from the list"
        )),
    }
}

async fn find_file(supervisor: &Supervisor, handle: ResultHandle) -> OperatorResponse {
    let files = supervisor.result_files().clone();
    let found = tokio::task::spawn_blocking(move || files.locate_for_operator(&handle));
    match found.await {
        Ok(Some((stored, path))) => OperatorResponse::File(FileLocation { name: stored.name, path }),
        _ => refused("there is no such file"),
    }
}

/// Returns a part of a stored result.
fn read_result(results: &Results, handle: &ResultHandle, offset: u64) -> OperatorResponse {
    let found = results.get_for_operator(handle);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let Some(rest) = found.as_deref().and_then(|json| json.get(offset..)) else {
        return refused(NO_RESULT);
    };
    let end = rest.floor_char_boundary(RESULT_PART_BYTES);
    OperatorResponse::ResultPart { text: rest[..end].to_owned(), is_last: end == rest.len() }
}

/// Sends an operator the questions about calls that require approval, and takes the answers, until the front closes the
/// exchange or `cancellation` is cancelled.
pub(super) async fn watch_approvals(
    supervisor: &Arc<Supervisor>,
    user: Option<LocalUser>,
    role: WatcherRole,
    exchange: &mut EngineExchange,
    cancellation: &CancellationToken,
) -> Option<Response> {
    let mut watcher = supervisor.approvers().queue().watch(WatcherKind::Socket(user), role);
    exchange.send(Event::Approval(ApprovalEvent::Watching)).await;
    let credit = exchange.credit();
    loop {
        // Nothing is lost if another branch is first: the watcher keeps its messages.
        let next = async {
            credit.available().await;
            watcher.next().await
        };
        tokio::select! {
            event = next => match event {
                Some(event) => exchange.send(Event::Approval(ApprovalEvent::clone(&event))).await,
                None => return Some(Response::Unavailable("too many questions wait to be read".to_owned())),
            },
            input = exchange.input() => {
                if let Input::Approval(input) = input? {
                    exchange.send(Event::Approval(take_input(&watcher, input))).await;
                }
            }
            () = cancellation.cancelled() => return None,
        }
    }
}

/// Takes an answer or another role of a watcher, and returns the reply.
fn take_input(watcher: &Watcher, input: ApprovalInput) -> ApprovalEvent {
    match input {
        ApprovalInput::SetRole(role) => {
            watcher.set_role(role);
            ApprovalEvent::Watching
        }
        ApprovalInput::Answer(answer) => match watcher.answer(&answer) {
            Ok(()) => ApprovalEvent::Taken(answer.id),
            Err(why) => ApprovalEvent::Refused { id: Some(answer.id), reason: why.to_string() },
        },
    }
}
