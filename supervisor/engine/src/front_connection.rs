//! The engine's end of the connection to one front. Each request of the front is served by a task and opens an exchange
//! of messages, which ends with the response.

mod admission;
mod call_requests;
mod change_notifications;
mod code_requests;
mod exchange;
mod forwarding;
mod front_reports;
mod grants;
mod key_requests;
mod operator_requests;
mod operator_responses;
mod search_requests;
mod served_requests;
mod server_requests;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use lockhouse_base::principal::Principal;
use lockhouse_link::{EngineClient, EngineEndpoint, FrontEndpoint, Waiting};
use lockhouse_messages::{
    AccessRefusal, Caller, Credential, ExchangeId, LifecycleState, Request, RequestHead, RequestId, Response,
    Role, ToEngine, ToFront,
};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::cluster::ForwardedCaller;
use crate::runs::RequestDigest;
use crate::supervisor::Supervisor;
use admission::RemoteAdmission;
use exchange::{OpenExchanges, TooManyInputs};
use forwarding::Elsewhere;
use front_reports::FrontReports;
use grants::{AccessGrant, Grants};
pub(crate) use grants::{FrontKind, HttpFront, OperatorPeer};
pub(crate) use operator_requests::NO_RESULT;
use served_requests::RequestServer;

/// The engine's end of the connection to one front.
pub(crate) struct FrontConnection {
    supervisor: Arc<Supervisor>,
    front: Weak<dyn FrontEndpoint>,
    open_exchanges: OpenExchanges,
    grants: Arc<Grants>,
    /// Whether the front is in another process, so that its open exchanges are limited and delay a drain.
    is_remote: bool,
    reports: FrontReports,
    /// The token that is cancelled when the front disconnects. The cancellation ends all requests of the front.
    closed: CancellationToken,
}

/// Connects a front in the same process to the engine, and returns the front's end of the connection. The front serves
/// one AI client over standard input and output. When `closing` is cancelled, the engine cancels all requests of this
/// front.
pub fn connect(supervisor: &Arc<Supervisor>, closing: CancellationToken) -> EngineClient {
    connect_local(supervisor, FrontKind::Client(Principal::for_new_connection()), closing)
}

/// Connects an operator in the same process, for an adapter of another protocol.
pub(crate) fn connect_operator(
    supervisor: &Arc<Supervisor>,
    operator: OperatorPeer,
    closing: CancellationToken,
) -> EngineClient {
    connect_local(supervisor, FrontKind::Operator(operator), closing)
}

fn connect_local(supervisor: &Arc<Supervisor>, kind: FrontKind, closing: CancellationToken) -> EngineClient {
    EngineClient::connect(|front| FrontConnection::new(supervisor.clone(), front, kind, false), closing)
}

impl FrontConnection {
    fn new(
        supervisor: Arc<Supervisor>,
        front: Weak<dyn FrontEndpoint>,
        kind: FrontKind,
        is_remote: bool,
    ) -> Arc<Self> {
        let (open_exchanges, closed) = (OpenExchanges::default(), CancellationToken::new());
        let grants = Grants::new(kind, front.clone());
        let reports = FrontReports::default();
        Arc::new(Self { supervisor, front, open_exchanges, grants, is_remote, reports, closed })
    }

    /// Connects a front or an operator's command in another process.
    pub(crate) fn remote(
        supervisor: &Arc<Supervisor>,
        front: Weak<dyn FrontEndpoint>,
        kind: FrontKind,
    ) -> Arc<Self> {
        Self::new(supervisor.clone(), front, kind, true)
    }

    /// Sends the front the settings that concern it, now and when they change.
    fn send_settings(&self) {
        self.supervisor.add_front(self.front.clone(), self.grants.is_http());
        self.report_lifecycle();
        let (supervisor, closed) = (self.supervisor.clone(), self.closed.clone());
        tokio::spawn(async move {
            closed.run_until_cancelled(supervisor.report_missing_protections()).await;
        });
    }

    /// Tells the front the state of this process's lifecycle, now and when it changes.
    fn report_lifecycle(&self) {
        let lifecycle = self.supervisor.lifecycle().clone();
        let (front, closed) = (self.front.clone(), self.closed.clone());
        let send = move |state| {
            if let Some(front) = front.upgrade() {
                front.notify(ToFront::Lifecycle(state));
            }
        };
        if !lifecycle.draining().is_cancelled() {
            send(LifecycleState::Serving);
        }
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = lifecycle.draining().cancelled() => {}
                () = closed.cancelled() => return,
            }
            send(LifecycleState::Draining { time_left: lifecycle.drain_time_left() });
            tokio::select! {
                biased;
                () = lifecycle.closing().cancelled() => send(LifecycleState::Closing),
                () = closed.cancelled() => {}
            }
        });
    }

    /// Takes a message of a front in another process, which needs `bytes` of memory. Returns a future if the response to
    /// the message waits for room in the queue of the connection: nothing more should be read from the front until then.
    pub(crate) fn receive_from_process(&self, message: ToEngine, bytes: usize) -> Option<Waiting> {
        match message {
            ToEngine::Request(id, head, request) => self.start_exchange(id, *head, *request, bytes),
            ToEngine::Input(id, input) => match self.open_exchanges.input(id, input, bytes) {
                Ok(()) => None,
                Err(TooManyInputs) => {
                    let reason = "too many answers and questions about this request wait";
                    self.respond(id, Response::Unavailable(reason.to_owned()))
                }
            },
            other => {
                self.receive_report(other);
                None
            }
        }
    }

    fn start_exchange(
        &self,
        id: ExchangeId,
        head: RequestHead,
        request: Request,
        bytes: usize,
    ) -> Option<Waiting> {
        self.grants.count_request();
        let RequestHead { id: request_id, is_chosen, caller, deadline, span } = head;
        let request_id = ChosenId { id: request_id, is_chosen };
        // Before it counts as in flight, which a drain waits for.
        if let Some(refusal) = self.refuse_while_draining(&request) {
            return self.respond(id, refusal);
        }
        let admission = match self.is_remote.then(|| self.admit(id, &request, bytes)) {
            None => RemoteAdmission::default(),
            Some(Ok(admission)) => admission,
            Some(Err(reason)) => return self.respond(id, Response::Unavailable(reason.to_owned())),
        };
        if let Request::Authenticate(credential) = request {
            return self.authenticate(id, credential, deadline, admission);
        }
        let elsewhere = self.supervisor.cluster().map(|cluster| Elsewhere {
            supervisor: self.supervisor.clone(),
            cluster: cluster.clone(),
            caller: self.forwarded_caller(&caller),
            is_from_host: self.grants.is_host(),
        });
        // The one place that decides whether a request is served.
        let client = match self.client(caller, request.role()) {
            Ok(_) if !self.may_send(&request) => {
                let role = request.role().unwrap_or(Role::Operate);
                return self.respond(id, Response::Refused(AccessRefusal::MissingRole(role)));
            }
            Ok(client) => client,
            Err(refusal) => return self.respond(id, Response::Refused(refusal)),
        };
        if let (Request::SharedState, Some(host)) = (&request, self.grants.host()) {
            return self.respond(id, self.supervisor.shared_state_for(host));
        }
        let mut exchange = self.open_exchanges.open(id, self.front.clone(), deadline);
        let span = self.reports.span(span);
        let (supervisor, life) = (self.supervisor.clone(), self.life());
        let operator = self.grants.operator().cloned();
        let server = RequestServer { supervisor, client, operator, id: request_id, life };
        let serving = async move {
            let serving = server.serve(elsewhere, request, &mut exchange);
            let response = match deadline {
                Some(deadline) => tokio::time::timeout(deadline, serving).await,
                None => Ok(serving.await),
            };
            match response {
                Ok(Some(response)) => exchange.end(response).await,
                // The exchange reports it when it is dropped.
                Ok(None) | Err(_) => drop(exchange),
            }
            drop(admission);
        };
        tokio::spawn(serving.instrument(span));
        None
    }

    /// Verifies a credential that the front passes on, and responds. Only if keys must be fetched for that, a task waits
    /// for them.
    fn authenticate(
        &self,
        id: ExchangeId,
        credential: Credential,
        deadline: Option<Duration>,
        admission: RemoteAdmission,
    ) -> Option<Waiting> {
        let (supervisor, grants) = (self.supervisor.clone(), self.grants.clone());
        let mut verifying = Box::pin(async move {
            let policy = supervisor.gate().policy();
            let verified = grants.authenticate(supervisor.authenticator(), &credential, &policy).await;
            // A request without a credential is the first step of a client that looks for the way to log in.
            if !matches!(credential, Credential::None | Credential::Connection) {
                match &verified {
                    Ok(AccessGrant { access, is_new: true }) => supervisor.record_accepted_credential(access),
                    Ok(_) => {}
                    Err(refusal) => supervisor.record_refused_credential(refusal),
                }
            }
            if let (Ok(AccessGrant { access, .. }), Some(token)) = (&verified, credential.token()) {
                supervisor.note_token(access, token);
            }
            verified.map(|authenticated| Box::new(authenticated.access))
        });
        if let Some(verified) = (&mut verifying).now_or_never() {
            return self.respond(id, Response::Access(verified));
        }
        let mut exchange = self.open_exchanges.open(id, self.front.clone(), deadline);
        let serving = async move {
            let verified = tokio::select! {
                verified = verifying => Some(verified),
                () = exchange.closed() => None,
            };
            if let Some(verified) = verified {
                exchange.end(Response::Access(verified)).await;
            }
            drop(admission);
        };
        tokio::spawn(serving.in_current_span());
        None
    }

    /// Returns what a request learns of the end of the front.
    fn life(&self) -> FrontLife {
        let runs = match self.grants.is_http() || self.grants.is_host() {
            true => self.supervisor.lifecycle().closing(),
            false => &self.closed,
        };
        FrontLife { closed: self.closed.child_token(), runs: runs.child_token() }
    }

    /// Takes a message that has no response.
    fn receive_report(&self, message: ToEngine) {
        match message {
            // These have responses.
            ToEngine::Request(..) | ToEngine::Input(..) => {}
            ToEngine::Credit(id, count) => self.open_exchanges.add_credit(id, count),
            ToEngine::Close(id) => drop(self.open_exchanges.close(id)),
            ToEngine::Goodbye => {
                self.closed.cancel();
                self.reports.end();
            }
            // A host has no clients here: its own engine gets these reports.
            _ if self.grants.is_host() => {}
            ToEngine::Listening => {
                // First of all, so that a drain waits for the front from the moment in which clients can reach it.
                self.reports.set_in_flight(self.supervisor.lifecycle(), true);
                self.supervisor.lifecycle().set_listening();
            }
            ToEngine::InFlight { requests } => {
                self.reports.set_in_flight(self.supervisor.lifecycle(), requests > 0);
            }
            ToEngine::McpSessionEnded(id) if self.grants.is_http() => {
                self.supervisor.mcp_sessions().forget(&id)
            }
            ToEngine::McpSessionEnded(_) => {}
            ToEngine::ConnectionClosed(id) => self.grants.close_connection(id),
            ToEngine::Counters(counters) => self.reports.count(*counters),
            ToEngine::BeginSpan(id, call) => self.reports.begin_span(id, *call),
            ToEngine::EndSpan(id, outcome) => self.reports.end_span(id, outcome),
        }
    }

    /// Returns who asks, for another host. `None` if no other host can verify the credential of the client.
    fn forwarded_caller(&self, caller: &Caller) -> Option<ForwardedCaller> {
        let grant = caller.grant?;
        let credential = self.grants.credential(grant)?;
        Some(ForwardedCaller {
            grant,
            credential,
            client: caller.client.clone(),
            abilities: caller.abilities,
        })
    }

    #[must_use]
    fn respond(&self, id: ExchangeId, response: Response) -> Option<Waiting> {
        self.front.upgrade()?.send(ToFront::Response(id, response))
    }

    /// Returns the AI client that holds the caller's grant, if the grant has the role that a request requires.
    fn client(&self, caller: Caller, role: Option<Role>) -> Result<Principal, AccessRefusal> {
        let Caller { grant, client, abilities } = caller;
        let policy = self.supervisor.gate().policy();
        let principal = self.grants.principal(grant, role.ok_or(AccessRefusal::EndedGrant)?, &policy)?;
        if let Some(name) = client.as_ref().filter(|_| self.is_remote) {
            self.supervisor.connected_clients().set_name(principal.owner(), name.as_str());
        }
        Ok(principal.reporting(client.as_deref(), abilities))
    }
}

impl EngineEndpoint for FrontConnection {
    fn begin(&self) {
        // An operator's command has no use for the settings, and often ends after one request.
        if !self.grants.is_operator() {
            self.send_settings();
        }
    }

    fn receive(&self, message: ToEngine) -> Option<Waiting> {
        // The memory of a front in the same process is not limited here.
        self.receive_from_process(message, 0)
    }
}

/// A connection that breaks has no [`ToEngine::Goodbye`].
impl Drop for FrontConnection {
    fn drop(&mut self) {
        self.closed.cancel();
        // Tasks that wait for an input of the front would wait for ever.
        self.open_exchanges.close_all();
        if let Some(client) = self.grants.only_client() {
            self.supervisor.forget_client(client.owner());
        }
    }
}

/// What a request learns of the end of its front.
#[derive(Clone, Debug)]
pub(super) struct FrontLife {
    /// Cancelled when the front disconnects.
    closed: CancellationToken,
    /// Cancelled when the run or the direct call of the request must end: with its AI client's own front, or with the engine if the front serves
    /// AI clients over HTTP or is another host, since it may be lost while they are there.
    runs: CancellationToken,
}

impl FrontLife {
    /// Whether the front was lost while the request was open, and the run of the request continues.
    pub(super) fn is_lost(&self) -> bool {
        self.closed.is_cancelled() && !self.runs.is_cancelled()
    }
}

/// The id of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenId {
    pub(super) id: RequestId,
    /// Whether the AI client chose the id, and can ask for the run of the request by it.
    pub(super) is_chosen: bool,
}

/// Returns the digest of what a request asks for.
fn digest_of(request: &impl Serialize) -> RequestDigest {
    // A message can be serialized.
    Sha256::digest(serde_json::to_vec(request).unwrap_or_default()).into()
}
