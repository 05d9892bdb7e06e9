//! The engine's end of the connection to one front, the part that serves AI clients. Each request of the front is
//! served by a task and opens an exchange of messages, which ends with the response.

mod call_requests;
mod change_notifications;
mod code_requests;
mod exchange;
mod front_reports;
mod search_requests;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockhouse_base::lifecycle::InFlightGuard;
use lockhouse_base::principal::{Grant, Principal, Validity};
use lockhouse_link::{EngineClient, EngineEndpoint, FrontEndpoint, Waiting};
use lockhouse_messages::{
    Caller, ExchangeId, LifecycleState, Repetition, Request, RequestHead, RequestId, Response, ToEngine,
    ToFront,
};
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::background_runs::RequestDigest;
use crate::direct::RequestingClient;
use crate::supervisor::Supervisor;
use exchange::{Exchange, OpenExchanges};
use front_reports::FrontReports;

/// Maximum number of open exchanges of a front in another process. Further ones are refused.
const EXCHANGES_MAX: usize = 1_024;

/// The engine's end of the connection to one front, the part that serves AI clients.
pub(crate) struct FrontConnection {
    supervisor: Arc<Supervisor>,
    front: Weak<dyn FrontEndpoint>,
    open_exchanges: OpenExchanges,
    /// The grants (revocable permissions) of AI clients of this front, by the numbers with which the front refers to
    /// them. Revoking a grant ends the runs of its client.
    grants: Mutex<HashMap<u64, Grant>>,
    /// The one AI client of a front in another process: all requests of the front count as its requests, whatever they
    /// say. `None` if the front is in this process, and authenticates the clients itself.
    only_client: Option<Principal>,
    reports: FrontReports,
    /// The token that is cancelled when the front disconnects. The cancellation ends all requests of the front.
    closed: CancellationToken,
}

/// Connects a front (the part that serves AI clients) in the same process to the engine, and returns the front's end of
/// the connection. When `closing` is cancelled, the engine cancels all requests of this front.
pub fn connect(supervisor: &Arc<Supervisor>, closing: CancellationToken) -> EngineClient {
    EngineClient::connect(|front| FrontConnection::new(supervisor.clone(), front, None), closing)
}

impl FrontConnection {
    fn new(
        supervisor: Arc<Supervisor>,
        front: Weak<dyn FrontEndpoint>,
        only_client: Option<Principal>,
    ) -> Arc<Self> {
        let (open_exchanges, grants, closed) =
            (OpenExchanges::default(), Mutex::default(), CancellationToken::new());
        let reports = FrontReports::default();
        Arc::new(Self { supervisor, front, open_exchanges, grants, only_client, reports, closed })
    }

    /// Connects a front in another process, which serves one AI client.
    pub(crate) fn for_client(
        supervisor: &Arc<Supervisor>,
        front: Weak<dyn FrontEndpoint>,
        client: Principal,
    ) -> Arc<Self> {
        Self::new(supervisor.clone(), front, Some(client))
    }

    /// Sends the front the settings that concern it, now and when they change.
    fn send_settings(&self) {
        self.supervisor.add_front(self.front.clone());
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

    fn start_exchange(&self, id: ExchangeId, head: RequestHead, request: Request) {
        let in_flight = match &self.only_client {
            None => None,
            Some(_) => match self.admit(&request) {
                Ok(in_flight) => in_flight,
                Err(reason) => return self.refuse(id, reason),
            },
        };
        let exchange = self.open_exchanges.open(id, self.front.clone(), head.deadline);
        let RequestHead { id, is_chosen, caller, deadline, span } = head;
        let request_id = ChosenId { id, is_chosen };
        let span = self.reports.span(span);
        let (client, supervisor) = (self.client(caller), self.supervisor.clone());
        let cancellation = self.closed.child_token();
        let serving = async move {
            let serving = serve(&supervisor, client, (request_id, request), exchange, cancellation);
            match deadline {
                // The exchange reports the deadline when it is dropped.
                Some(deadline) => drop(tokio::time::timeout(deadline, serving).await),
                None => serving.await,
            }
            drop(in_flight);
        };
        tokio::spawn(serving.instrument(span));
    }

    /// Checks whether a front in another process may open one more exchange. Returns a guard that makes a drain wait for
    /// the exchange; `None` if it follows changes, which never ends by itself.
    fn admit(&self, request: &Request) -> Result<Option<InFlightGuard>, &'static str> {
        let lifecycle = self.supervisor.lifecycle();
        if self.open_exchanges.len() >= EXCHANGES_MAX {
            return Err("this client has too many open requests; wait for their answers first");
        }
        match request.repetition() {
            Repetition::Always => Ok(None),
            Repetition::Never | Repetition::Once => Ok(Some(lifecycle.begin_request())),
        }
    }

    fn refuse(&self, id: ExchangeId, reason: &str) {
        if let Some(front) = self.front.upgrade() {
            front.notify(ToFront::Response(id, Response::Unavailable(reason.to_owned())));
        }
    }

    fn client(&self, caller: Caller) -> RequestingClient {
        let Caller { identity, grant, client, abilities } = caller;
        if let Some(principal) = self.only_client.clone() {
            if let Some(name) = &client {
                self.supervisor.connected_clients().set_name(principal.owner(), name.as_str());
            }
            return RequestingClient { principal, name: client, abilities };
        }
        let standing = match grant {
            None => Validity::Connection,
            Some(number) => Validity::Revocable(self.grants.lock().entry(number).or_default().clone()),
        };
        RequestingClient { principal: Principal::new(identity, standing), name: client, abilities }
    }
}

impl EngineEndpoint for FrontConnection {
    fn begin(&self) {
        self.send_settings();
    }

    fn receive(&self, message: ToEngine) -> Option<Waiting> {
        match message {
            ToEngine::Request(id, head, request) => self.start_exchange(id, *head, *request),
            ToEngine::Input(id, input) => {
                if !self.open_exchanges.input(id, input) {
                    self.refuse(id, "too many answers and questions about this request wait");
                }
            }
            ToEngine::Credit(id, count) => self.open_exchanges.add_credit(id, count),
            ToEngine::Close(id) => {
                self.open_exchanges.close(id);
            }
            ToEngine::Revoke { grant } => {
                let grant = self.grants.lock().remove(&grant);
                if let Some(grant) = grant {
                    grant.revoke();
                }
            }
            ToEngine::Listening => {
                // First of all, so that a drain waits for the front from the moment in which clients can reach it.
                self.reports.set_in_flight(self.supervisor.lifecycle(), true);
                self.supervisor.lifecycle().set_listening();
            }
            ToEngine::InFlight { requests } => {
                self.reports.set_in_flight(self.supervisor.lifecycle(), requests > 0);
            }
            ToEngine::Counters(counters) => self.reports.count(*counters),
            ToEngine::BeginSpan(id, call) => self.reports.begin_span(id, *call),
            ToEngine::EndSpan(id, outcome) => self.reports.end_span(id, outcome),
            ToEngine::Goodbye => {
                self.closed.cancel();
                self.reports.end();
            }
        }
        None
    }
}

/// A connection that breaks has no [`ToEngine::Goodbye`].
impl Drop for FrontConnection {
    fn drop(&mut self) {
        self.closed.cancel();
        if let Some(client) = &self.only_client {
            self.supervisor.forget_client(client.owner());
        }
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

/// Serves one request of the front (the part that serves AI clients) and sends the response. The large futures are on the
/// heap, because a task copies its future several times, and each request would pay for the largest one.
async fn serve(
    supervisor: &Arc<Supervisor>,
    client: RequestingClient,
    (id, request): (ChosenId, Request),
    mut exchange: Exchange,
    cancellation: CancellationToken,
) {
    let response = match request {
        Request::RunCode(program) => {
            code_requests::run(supervisor, client, (id, program), &mut exchange, cancellation).await
        }
        Request::FollowRun(name) => {
            code_requests::resume_following(supervisor, &client, &name, &mut exchange).await
        }
        Request::Call(call) => {
            Box::pin(call_requests::serve(supervisor, &client, (id, call), &mut exchange, cancellation)).await
        }
        Request::FollowChanges => {
            Box::pin(change_notifications::follow(supervisor, &client, &mut exchange, &cancellation)).await
        }
        Request::Search(search) => tokio::select! {
            found = Box::pin(search_requests::serve(supervisor, &client, &search)) => Some(Response::Json(found)),
            () = exchange.closed() => None,
        },
        Request::List(list) => tokio::select! {
            entries = Box::pin(supervisor.direct().list(supervisor, &client, list)) => Some(Response::Entries(entries)),
            () = exchange.closed() => None,
        },
        Request::DescribeCatalogue => tokio::select! {
            text = Box::pin(supervisor.catalogue_description(&client)) => Some(Response::Text(Some(text))),
            () = exchange.closed() => None,
        },
        Request::ReadResult { handle, offset } => Some(supervisor.read_result(&client, &handle, offset)),
        Request::ReadFile { handle } => Some(supervisor.read_file(&client, handle).await),
        Request::Health => Some(Response::Json(supervisor.health_for(&client.principal))),
        Request::Readiness => Some(Response::Reasons(supervisor.unready_reasons())),
        Request::Metrics => Some(Response::Text(supervisor.render_metrics())),
    };
    if let Some(response) = response {
        exchange.end(response).await;
    }
}
