//! Serves operators: lists and ends runs and sessions, reloads the configuration, reads stored results, and shows the
//! questions about calls that require approval.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use lockhouse_access::Evidence;
use lockhouse_approvals::{Approver, Watcher, WatcherKind};
use lockhouse_audit::{Ended, LocalUser};
use lockhouse_base::principal::owner_of_name;
use lockhouse_messages::{
    AccessToken, ApprovalEvent, ApprovalInput, EndedRuns, EndedSessions, Event, FileLocation, Input,
    OperatorRequest, OperatorResponse, Response, WatcherRole,
};
use lockhouse_protocol::ResultHandle;
use lockhouse_stores::results::Results;
use tokio_util::sync::CancellationToken;

use super::OperatorPeer;
use super::exchange::EngineExchange;
use super::operator_responses::{refused, respond};
use super::{key_requests, server_requests};
use crate::execution::Cancellation;
use crate::sessions::SessionSelector;
use crate::supervisor::Supervisor;

/// The reason that an AI client gets for the end of its session after an operator ended the session.
const ENDED_BY_OPERATOR: &str = "a person ended it with `lockhouse sessions end`";
/// Maximum number of stored results in a list.
const RESULTS_LISTED_MAX: usize = 1_000;
/// Maximum bytes of a part of a stored result. As a JSON string in a line of the control socket, a byte takes up to six.
const RESULT_PART_BYTES: usize = 128 * 1024;
/// Maximum bytes of a part of a returned file in the answer to an operator.
/// Bound: values and answers.
const FILE_PART_BYTES: u64 = 1024 * 1024;

/// The refusal of requests about the hosts of a cluster.
const NO_CLUSTER: &str = "this process is not part of a cluster";
/// The refusal of a handle that no returned file has.
const NO_FILE: &str = "there is no such file";
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
        OperatorRequest::ListHosts => OperatorResponse::Hosts(supervisor.list_hosts()),
        OperatorRequest::ListElsewhere => OperatorResponse::Elsewhere(supervisor.list_elsewhere().await),
        OperatorRequest::DrainHost { undo } if supervisor.drain_host(undo, by) => {
            OperatorResponse::Hosts(supervisor.list_hosts())
        }
        OperatorRequest::LeaveCluster if supervisor.leave_cluster(by) => OperatorResponse::Stopping,
        OperatorRequest::DrainHost { .. } | OperatorRequest::LeaveCluster => refused(NO_CLUSTER.to_owned()),
        OperatorRequest::ListSessions => OperatorResponse::Sessions(supervisor.sessions().list()),
        OperatorRequest::EndSessions(ended) => end_sessions(supervisor, &ended, by),
        OperatorRequest::ListRuns => OperatorResponse::Runs(supervisor.runs().list()),
        OperatorRequest::EndRuns(ended) => end_runs(supervisor, &ended, by),
        OperatorRequest::Stop { reason } => {
            supervisor.stop(reason.as_deref(), by);
            OperatorResponse::Stopping
        }
        OperatorRequest::Reload => respond(supervisor.request_reload(by).await, OperatorResponse::Reloaded),
        OperatorRequest::FindFile(handle) => find_file(supervisor, handle).await,
        OperatorRequest::ReadFile { handle, offset } => read_file(supervisor, handle, offset).await,
        OperatorRequest::ListResults => {
            let mut results = supervisor.results().list();
            results.truncate(RESULTS_LISTED_MAX);
            OperatorResponse::Results(results)
        }
        OperatorRequest::ReadResult { handle, offset } => read_result(supervisor.results(), &handle, offset),
        OperatorRequest::ProposePolicy { text } => {
            respond(supervisor.propose_policy(text, by).await, OperatorResponse::Proposal)
        }
        OperatorRequest::ShowProposal => respond(supervisor.policy_proposal(), OperatorResponse::Proposal),
        OperatorRequest::ChallengeProposal { digest, port } => {
            respond(supervisor.challenge_proposal(&digest, port), OperatorResponse::Challenge)
        }
        OperatorRequest::AcceptProposal { digest, proof } => {
            let report = supervisor.accept_proposal(&digest, proof.as_ref(), by).await;
            respond(report, OperatorResponse::Reloaded)
        }
        OperatorRequest::ForgetUser { name } => {
            supervisor.forget_user(owner_of_name(&name));
            OperatorResponse::UserForgotten
        }
        OperatorRequest::BeginLogin { .. }
        | OperatorRequest::ContinueLogin { .. }
        | OperatorRequest::LogOut { .. }
        | OperatorRequest::SetSecret { .. }
        | OperatorRequest::ReviewDefinitions { .. }
        | OperatorRequest::ChallengeDefinitions { .. }
        | OperatorRequest::AcceptDefinitions { .. } => {
            server_requests::carry_out(supervisor, request, by).await
        }
        OperatorRequest::BeginEnrolment
        | OperatorRequest::EnrolKey(_)
        | OperatorRequest::ListKeys
        | OperatorRequest::RemoveKey(_) => key_requests::carry_out(supervisor, request, by),
    }
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
        _ => refused(NO_FILE),
    }
}

/// Returns a part of a file that a run of any AI client returned.
async fn read_file(supervisor: &Supervisor, handle: ResultHandle, offset: u64) -> OperatorResponse {
    let files = supervisor.result_files().clone();
    let part = tokio::task::spawn_blocking(move || {
        let (stored, mut file) = files.open_for_operator(&handle)?;
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.take(FILE_PART_BYTES).read_to_end(&mut content))
            .ok()?;
        let is_last = offset.saturating_add(content.len() as u64) >= stored.bytes;
        // Something has shortened the file.
        let is_whole = is_last || !content.is_empty();
        is_whole.then_some(OperatorResponse::FilePart { name: stored.name, content, is_last })
    });
    part.await.ok().flatten().unwrap_or_else(|| refused(NO_FILE))
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
    operator: &OperatorPeer,
    role: WatcherRole,
    exchange: &mut EngineExchange,
    cancellation: &CancellationToken,
) -> Option<Response> {
    let kind = WatcherKind::Socket(operator.approver());
    let mut watcher = supervisor.approvers().queue().watch(kind, role);
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
                    exchange.send(Event::Approval(take_input(supervisor, &watcher, input).await)).await;
                }
            }
            () = cancellation.cancelled() => return None,
        }
    }
}

/// Takes an answer or another role of a watcher, and returns the reply.
async fn take_input(supervisor: &Supervisor, watcher: &Watcher, input: ApprovalInput) -> ApprovalEvent {
    match input {
        ApprovalInput::SetRole(role) => {
            watcher.set_role(role);
            ApprovalEvent::Watching
        }
        ApprovalInput::Challenge(request) => match watcher.challenge(&request) {
            Ok(challenge) => ApprovalEvent::Challenge { id: request.id, challenge },
            Err(why) => ApprovalEvent::Refused { id: Some(request.id), reason: why.to_string() },
        },
        ApprovalInput::Answer(mut answer) => {
            let refused = |reason: String| ApprovalEvent::Refused { id: Some(answer.id), reason };
            let approver = match answer.token.take() {
                Some(token) => approver_with_token(supervisor, watcher, &token).await,
                None => Ok(watcher.approver()),
            };
            let taken = approver.map(|approver| watcher.answer(&answer, approver));
            match taken {
                Ok(Ok(())) => ApprovalEvent::Taken(answer.id),
                Ok(Err(why)) => refused(why.to_string()),
                Err(reason) => refused(reason),
            }
        }
    }
}

/// Verifies the token of a person who answers on the page of a service.
///
/// # Errors
/// Why it is not accepted.
async fn approver_with_token(
    supervisor: &Supervisor,
    watcher: &Watcher,
    token: &AccessToken,
) -> Result<Approver, String> {
    let Some(authenticator) = supervisor.authenticator() else {
        return Err("this process accepts no tokens".to_owned());
    };
    let verified = authenticator.authenticate(Evidence::Token(&token.0)).await;
    let principal = verified.map_err(|refusal| refusal.description().into_owned())?;
    let Approver::Owner(user) = watcher.approver() else {
        return Err("this connection is that of a person, who answers without a token".to_owned());
    };
    Ok(Approver::Person { principal, user })
}
