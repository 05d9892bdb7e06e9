//! The engine's end of what it says with one front: each request becomes a task, whose exchange it is.

mod calls;
mod changes;
mod code;
mod exchange;
mod search;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockhouse_base::principal::{Grant, Principal, Standing};
use lockhouse_messages::{
    Caller, EngineClient, EngineEnd, ExchangeId, FrontEnd, Input, Request, Response, ToEngine, ToFront,
    VERSION,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::direct::Client;
use crate::supervisor::Supervisor;
use exchange::Exchange;

/// Inputs of one exchange that wait. An execution has no more questions open, and a front asks for nothing else so often.
const INPUTS_MAX: usize = 64;

/// One front, as the engine serves it.
struct Edge {
    supervisor: Arc<Supervisor>,
    front: Weak<dyn FrontEnd>,
    open: Arc<Mutex<HashMap<ExchangeId, mpsc::Sender<Input>>>>,
    /// What clients of this front were granted, by the numbers that the front has for it.
    grants: Mutex<HashMap<u64, Grant>>,
    /// Cancelled when the front ends.
    over: CancellationToken,
}

/// Connects a front in this process. Once `closing`, what it began ends.
pub fn connect(supervisor: &Arc<Supervisor>, closing: CancellationToken) -> EngineClient {
    EngineClient::connect(|front| Edge::new(supervisor.clone(), front), closing)
}

impl Edge {
    fn new(supervisor: Arc<Supervisor>, front: Weak<dyn FrontEnd>) -> Arc<Self> {
        let (open, grants, over) = (Arc::default(), Mutex::default(), CancellationToken::new());
        Arc::new(Self { supervisor, front, open, grants, over })
    }

    fn greet(&self, version: u32) {
        let Some(front) = self.front.upgrade() else { return };
        if version != VERSION {
            front.send(ToFront::Unsupported { version: VERSION });
            return;
        }
        front.send(ToFront::Welcome { version: VERSION });
        self.supervisor.add_front(self.front.clone());
    }

    fn begin(&self, id: ExchangeId, caller: Caller, request: Request) {
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        self.open.lock().insert(id, sender);
        let exchange = Exchange { id, front: self.front.clone(), inputs, open: self.open.clone() };
        let (client, supervisor) = (self.client(caller), self.supervisor.clone());
        let over = self.over.child_token();
        let serving = async move { serve(&supervisor, client, request, exchange, over).await };
        tokio::spawn(serving.in_current_span());
    }

    fn client(&self, caller: Caller) -> Client {
        let Caller { identity, grant, client, abilities } = caller;
        let standing = match grant {
            None => Standing::Lasting,
            Some(number) => Standing::Revocable(self.grants.lock().entry(number).or_default().clone()),
        };
        Client { principal: Principal::admitted(identity, standing), name: client, abilities }
    }
}

impl EngineEnd for Edge {
    fn receive(&self, message: ToEngine) {
        match message {
            ToEngine::Hello { version } => self.greet(version),
            ToEngine::Request(id, caller, request) => self.begin(id, *caller, *request),
            ToEngine::Input(id, input) => {
                if let Some(inputs) = self.open.lock().get(&id) {
                    let _ = inputs.try_send(input);
                }
            }
            // Its task finds that nothing more comes in.
            ToEngine::Close(id) => drop(self.open.lock().remove(&id)),
            ToEngine::Revoke { grant } => {
                let grant = self.grants.lock().remove(&grant);
                if let Some(grant) = grant {
                    grant.revoke();
                }
            }
            ToEngine::Goodbye => self.over.cancel(),
        }
    }
}

/// One exchange, to its response.
async fn serve(
    supervisor: &Arc<Supervisor>,
    client: Client,
    request: Request,
    mut exchange: Exchange,
    over: CancellationToken,
) {
    let response = match request {
        Request::RunCode(program) => code::run(supervisor, client, program, &mut exchange, over).await,
        Request::FollowRun(name) => code::follow_again(supervisor, &client, &name, &mut exchange).await,
        Request::Call(call) => calls::call(supervisor, &client, call, &mut exchange, over).await,
        Request::FollowChanges => changes::follow(supervisor, &client, &mut exchange, &over).await,
        Request::Search(search) => tokio::select! {
            found = search::search(supervisor, &client, &search) => Some(Response::Json(found)),
            () = exchange.closed() => None,
        },
        Request::List(list) => tokio::select! {
            entries = supervisor.direct().list(supervisor, &client, list) => Some(Response::Entries(entries)),
            () = exchange.closed() => None,
        },
        Request::ReadResult { handle, offset } => Some(supervisor.read_result(&client, &handle, offset)),
        Request::Health => Some(Response::Json(supervisor.health_for(&client.principal))),
        Request::Readiness => Some(Response::Reasons(supervisor.not_ready())),
        Request::Metrics => Some(Response::Text(supervisor.metrics())),
    };
    if let Some(response) = response {
        exchange.end(response);
    }
}
