//! Passes a request on to the host of the cluster that made the id which it names, that has the session of its run, or that has a
//! worker for it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry;
use lockhouse_cluster::{Host, Place, SessionPlace};
use lockhouse_link::{Exchange, ExchangeStep};
use lockhouse_messages::{Input, McpSessionRequest, Request, Response, RunCode, RunReference};
use lockhouse_protocol::ResultHandle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::admission::HOST_ENDS;
use super::exchange::{Credit, EngineExchange};
use super::{ChosenId, FrontLife};
use crate::cluster::{Cluster, ForwardedCaller, HostPeer};
use crate::sessions::SessionName;
use crate::supervisor::Supervisor;

/// Maximum number of hosts that a run is offered to.
/// Bound: hosts of a cluster.
const OFFERS_MAX: usize = 3;

/// Maximum number of messages for MCP sessions that go to all other hosts at one time (`DELIVERIES_MAX`), and the maximum length
/// (`DELIVERY_BYTES_MAX`, in bytes) and time (`DELIVERY_TIMEOUT`) of each. Each is a notification, such as a cancellation.
/// Bound: hosts of a cluster.
const DELIVERIES_MAX: usize = 32;
const DELIVERY_BYTES_MAX: usize = 4 * 1024;
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);
static DELIVERIES: Semaphore = Semaphore::const_new(DELIVERIES_MAX);

/// Serves the requests that another host of the cluster must serve, and offers runs to others if this host has no worker.
pub(super) struct Elsewhere {
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) cluster: Arc<Cluster>,
    /// `None` if no other host can verify the credential of the client.
    pub(super) caller: Option<ForwardedCaller>,
    /// Whether the request comes from another host, so that it is not passed on again.
    pub(super) is_from_host: bool,
}

/// Which host serves a request.
enum Server {
    ThisHost,
    OtherHost(Box<Host>),
    /// None does.
    Nobody(Response),
}

/// A request that is passed on, by what its loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// It begins a run.
    Run,
    /// It resumes a direct call.
    Call,
    Other,
}

impl RequestKind {
    fn of(request: &Request) -> Self {
        match request {
            Request::RunCode(_) => Self::Run,
            Request::ResumeCall(_) => Self::Call,
            _ => Self::Other,
        }
    }
}

impl Elsewhere {
    /// Serves a request if this host cannot serve it. Returns the request if it can.
    pub(super) async fn serve(
        self,
        client: &Principal,
        id: ChosenId,
        request: Request,
        exchange: &mut EngineExchange,
        life: &FrontLife,
    ) -> ControlFlow<Option<Response>, Request> {
        if let Request::McpSession(McpSessionRequest::Deliver { id, to: None, message }) = &request {
            self.deliver_to_others(id, message);
            // Another front of this host may have the session, too.
            return ControlFlow::Continue(request);
        }
        let host = match self.server(client, &request).await {
            Server::ThisHost => return self.place(id, request, exchange, life).await,
            Server::Nobody(response) => return ControlFlow::Break(Some(response)),
            Server::OtherHost(host) => host,
        };
        if self.is_from_host {
            let moved =
                "what this request names has moved to another host meanwhile. Nothing was run; send it again";
            return unavailable(moved.to_owned());
        }
        let Some(caller) = self.caller else {
            let name = &host.name;
            return unavailable(format!(
                "the host {name} has what this request names, and only this host can verify the credential of this client. \
                 Nothing was run; use a token, or ask {name} itself"
            ));
        };
        let kind = RequestKind::of(&request);
        let peer = match self.cluster.peers().get(&host).await {
            Ok(peer) => peer,
            // Until its lease ends, a host that has ended has its ids.
            Err(_) if matches!(self.supervisor.restore_value(client, &request).await, Ok(true)) => {
                return ControlFlow::Continue(request);
            }
            Err(error) => {
                telemetry::count_passed_on("unreachable");
                return unavailable(format!(
                    "the host {} has what this request names, and cannot be reached: {error}. Nothing was run; send it again",
                    host.name
                ));
            }
        };
        if kind == RequestKind::Run && peer.is_draining() {
            return unavailable(HOST_ENDS.to_owned());
        }
        let session = match &request {
            Request::RunCode(program) => program.session.clone(),
            _ => None,
        };
        let opened = peer.open(caller, id.is_chosen.then_some(id.id), request).await;
        let response = match opened {
            Ok(remote) => relay(&peer, &host, remote, exchange, life, kind).await,
            Err(refusal) => Some(Response::Refused(refusal)),
        };
        if let (Some(Response::Unavailable(_)), Some(name)) = (&response, session) {
            // The next run asks NATS where the session is.
            self.cluster.membership().session_places().forget(client.owner(), &name);
        }
        ControlFlow::Break(response)
    }

    /// Passes a message for an MCP session on to all other hosts, in the background. If too many are passed on, drops it.
    fn deliver_to_others(&self, session: &str, message: &str) {
        let Some(caller) = self.caller.clone().filter(|_| !self.is_from_host) else { return };
        if message.len() > DELIVERY_BYTES_MAX {
            return tracing::debug!("a message for an MCP session is dropped: it is too long for all hosts");
        }
        let Ok(permit) = DELIVERIES.try_acquire() else {
            return tracing::debug!("a message for an MCP session is dropped: too many go to other hosts");
        };
        let (cluster, session, message) = (self.cluster.clone(), session.to_owned(), message.to_owned());
        tokio::spawn(async move {
            let others = cluster.membership().others();
            let deliveries = others.iter().map(async |host| {
                let Ok(peer) = cluster.peers().get(host).await else { return };
                let (id, message, to) = (session.clone(), message.clone(), Some(host.record.tag));
                let request = Request::McpSession(McpSessionRequest::Deliver { id, to, message });
                if let Ok(exchange) = peer.open(caller.clone(), None, request).await {
                    drop(exchange.response().await);
                }
            });
            let _ = timeout(DELIVERY_TIMEOUT, join_all(deliveries)).await;
            drop(permit);
        });
    }

    /// Offers a run to hosts with a free worker, if this host has none. Returns the request if this host serves it.
    async fn place(
        self,
        id: ChosenId,
        request: Request,
        exchange: &mut EngineExchange,
        life: &FrontLife,
    ) -> ControlFlow<Option<Response>, Request> {
        let (Request::RunCode(program), Some(caller)) = (&request, &self.caller) else {
            return ControlFlow::Continue(request);
        };
        // A session, and a run that its client may ask for by an id of its own, stay on this host.
        let can_move = program.session.is_none() && !id.is_chosen && !self.is_from_host;
        if !can_move || self.supervisor.has_free_worker(program.language) {
            return ControlFlow::Continue(request);
        }
        for host in self.cluster.hosts_with_room().into_iter().take(OFFERS_MAX) {
            let peer = self.cluster.peers().get(&host).await;
            let Some(peer) = peer.ok().filter(|peer| !peer.is_draining()) else { continue };
            let offered = Request::RunCode(RunCode { is_offered: true, ..program.clone() });
            let Ok(remote) = peer.open(caller.clone(), None, offered).await else { continue };
            match relay(&peer, &host, remote, exchange, life, RequestKind::Run).await {
                Some(Response::NotFound) => {}
                response => return ControlFlow::Break(response),
            }
        }
        ControlFlow::Continue(request)
    }

    async fn server(&self, client: &Principal, request: &Request) -> Server {
        if let Request::RunCode(RunCode { session: Some(name), .. }) = request {
            return match SessionName::new(name) {
                Ok(name) => self.server_of_session(client, name.as_str()).await,
                // This host answers that the name is not valid.
                Err(_) => Server::ThisHost,
            };
        }
        let Some(tag) = request.host_tag() else { return Server::ThisHost };
        let place = self.cluster.membership().locate_or_read(tag).await;
        // Only clients whose credentials other hosts can verify have copies.
        if !matches!(place, Place::At(_)) && (self.caller.is_some() || self.is_from_host) {
            match self.supervisor.restore_value(client, request).await {
                Ok(true) => return Server::ThisHost,
                Ok(false) => {}
                Err(unreadable) => return Server::Nobody(unreadable),
            }
        }
        match (place, request) {
            (Place::Here, _) => Server::ThisHost,
            (Place::At(host), _) => Server::OtherHost(host),
            (Place::Nowhere, Request::ReadFile { handle }) => Server::Nobody(lost_id(handle)),
            // A client may have chosen the id of a run of this host.
            (
                Place::Nowhere,
                Request::GetResult { handle, .. } | Request::FollowRun(RunReference::Handle(handle)),
            ) if self
                .supervisor
                .runs()
                .find(client.owner(), &RunReference::Handle(handle.clone()))
                .is_none() =>
            {
                Server::Nobody(lost_id(handle))
            }
            // This host does not know it either, and its answer says so.
            (Place::Nowhere, _) => Server::ThisHost,
        }
    }

    async fn server_of_session(&self, client: &Principal, name: &str) -> Server {
        let (membership, owner) = (self.cluster.membership(), client.owner());
        let places = membership.session_places();
        let nothing_run = |error: &dyn std::fmt::Display| {
            let reason = format!("the host of the session {name:?} is not known: {error}. Nothing was run");
            Server::Nobody(Response::Unavailable(reason))
        };
        let is_alive = |tag| matches!(membership.locate(tag), Place::At(_));
        let (tag, seen) = match places.find(owner, name, is_alive).await {
            Ok(SessionPlace::Here) => return Server::ThisHost,
            Ok(SessionPlace::At(tag, seen)) => (tag, seen),
            Err(error) => return nothing_run(&error),
        };
        if let Place::At(host) = membership.locate_or_read(tag).await {
            return Server::OtherHost(host);
        }
        // One run learns that the variables are lost. The next one begins a session on this host.
        if let Err(error) = places.take_over(owner, name, seen).await {
            return nothing_run(&error);
        }
        let ended = format!(
            "the session {name:?} has ended: the host that had it has ended. Its variables are lost; run again to start a new \
             session with this name"
        );
        Server::Nobody(Response::Invalid(ended))
    }
}

/// Passes the events and the response of another host on to the front, and the inputs of the front to the other host.
async fn relay(
    peer: &HostPeer,
    host: &Host,
    mut remote: Exchange,
    exchange: &mut EngineExchange,
    life: &FrontLife,
    kind: RequestKind,
) -> Option<Response> {
    let credit = exchange.credit();
    loop {
        tokio::select! {
            biased;
            input = exchange.input() => match input {
                Some(input) => remote.send(input),
                None => {
                    if kind != RequestKind::Call && life.is_lost() {
                        remote.send(Input::Detach);
                    }
                    return None;
                }
            },
            step = next_step(&credit, &mut remote) => match step {
                ExchangeStep::Event(event) => exchange.send(event).await,
                ExchangeStep::Finished(Response::EngineFailed) if peer.has_ended() => {
                    telemetry::count_passed_on("lost");
                    return Some(lost(host, kind));
                }
                ExchangeStep::Finished(response) => {
                    telemetry::count_passed_on("answered");
                    return Some(response);
                }
            },
        }
    }
}

/// Returns the next step of an exchange when the front can get one more event.
async fn next_step(credit: &Credit, remote: &mut Exchange) -> ExchangeStep {
    credit.available().await;
    remote.next().await
}

/// Ends a request that no host has served.
fn unavailable(reason: String) -> ControlFlow<Option<Response>, Request> {
    ControlFlow::Break(Some(Response::Unavailable(reason)))
}

fn lost_id(handle: &ResultHandle) -> Response {
    Response::Invalid(format!(
        "no host of the cluster has {handle}: it has expired, or the host that had it has ended. If it was a run, the run was not \
         started again, and its calls may have been made: check their effects"
    ))
}

fn lost(host: &Host, kind: RequestKind) -> Response {
    let consequence = match kind {
        RequestKind::Run => {
            "The program may have run, in part or completely, and is not started again: check its effects, and repeat it only if \
             that is safe"
        }
        RequestKind::Call => "The call may have been made: check its effects before you call again",
        RequestKind::Other => "Send the request again",
    };
    Response::Unavailable(format!(
        "the connection to the host {} of the cluster was lost before it answered. {consequence}",
        host.name
    ))
}
