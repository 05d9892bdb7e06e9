//! What people and programs ask a service besides work: whether it lives, whether it takes runs, how it is; and what is
//! answered to clients while it drains.

use std::convert::Infallible;
use std::io;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use lockhouse_base::lifecycle::{Life, Owed};
use lockhouse_base::principal::Principal;
use lockhouse_base::{json, telemetry};
use lockhouse_messages::{EngineClient, Request as Ask, Response as Answer};
use serde_json::json;
use thiserror::Error;

use super::Address;
use super::listening::{self, BindError, Listening, Socket};

/// As Prometheus asks for it.
const FIGURES: &str = "text/plain; version=0.0.4; charset=utf-8";
/// While it drains, a request is read before it is heard: bytes of one.
const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// JSON values of one that is looked into.
const VALUES_MAX: usize = 10_000;
/// The error of JSON-RPC for those who are to come back: among those that servers define themselves.
const RESTARTING: i32 = -32_050;
const GOES_ON: &str =
    "Lockhouse is restarting and takes no new requests; nothing was run. Send the request again";

/// What is served, and where it is in its life.
#[derive(Clone)]
pub struct Service {
    pub engine: EngineClient,
    pub life: Life,
}

impl Service {
    /// What the engine says of itself, to the operator.
    async fn ask(&self, request: Ask) -> Answer {
        self.engine.ask(&Principal::local(), None, request).await
    }
}

/// `/live` and `/ready`, which anybody may ask.
pub(super) fn open(service: &Service) -> Router {
    let router = Router::new().route("/live", get(async || "alive\n")).route("/ready", get(ready));
    router.with_state(service.clone())
}

/// `/health` and `/metrics`, for those who were admitted.
pub(super) fn guarded(service: &Service) -> Router {
    told(service).layer(middleware::from_fn(unrestricted))
}

/// Why figures are served no more.
#[derive(Debug, Error)]
pub enum FiguresError {
    #[error("[metrics]: {0}")]
    Bind(#[from] BindError),
    #[error(transparent)]
    Serve(#[from] io::Error),
}

/// Serves all four at these addresses, to whoever reaches them, until nothing is served any more.
pub async fn serve_figures(service: &Service, addresses: &[Address]) -> Result<Infallible, FiguresError> {
    let router = open(service).merge(told(service));
    let listening = listening::bind(addresses).await?;
    let serving = listening.into_iter().map(async |at: Listening| {
        match &at.address {
            Address::Tcp(address) => tracing::info!("figures are at http://{address}/metrics"),
            unix @ Address::Unix(_) => tracing::info!("figures are at {unix}"),
        }
        // The rest of it goes with this, and with that a socket's file.
        match at.socket {
            Socket::Tcp(socket) => axum::serve(socket, router.clone()).await,
            Socket::Unix(socket) => axum::serve(socket, router.clone()).await,
        }
    });
    futures_util::future::try_join_all(serving).await?;
    // There is none, or none that goes on.
    Ok(std::future::pending().await)
}

fn told(service: &Service) -> Router {
    let router = Router::new().route("/health", get(health)).route("/metrics", get(metrics));
    router.with_state(service.clone())
}

async fn ready(State(service): State<Service>) -> Response {
    let Answer::Reasons(reasons) = service.ask(Ask::Readiness).await else { return broken() };
    if reasons.is_empty() {
        return "ready\n".into_response();
    }
    let retry = service.life.retry_after().as_secs().to_string();
    let words = format!("not ready: {}\n", reasons.join("; "));
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, retry)], words).into_response()
}

async fn health(State(service): State<Service>) -> Response {
    let Answer::Json(health) = service.ask(Ask::Health).await else { return broken() };
    ([(CACHE_CONTROL, "no-store")], axum::Json(health)).into_response()
}

async fn metrics(State(service): State<Service>) -> Response {
    match service.ask(Ask::Metrics).await {
        Answer::Text(Some(figures)) => ([(CONTENT_TYPE, FIGURES)], figures).into_response(),
        Answer::Text(None) => StatusCode::NOT_FOUND.into_response(),
        _ => broken(),
    }
}

/// The engine failed.
fn broken() -> Response {
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// Figures are of all clients and all servers: whoever was granted a part of the servers sees none of them.
async fn unrestricted(request: Request, next: Next) -> Response {
    match request.extensions().get::<Principal>() {
        Some(principal) if principal.only().is_none() => next.run(request).await,
        _ => (
            StatusCode::FORBIDDEN,
            "this client is granted some of the servers, and this is about all of them\n",
        )
            .into_response(),
    }
}

/// Counts what each request was answered with.
pub(super) async fn counted(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    telemetry::http_answered(response.status().as_u16());
    response
}

/// Keeps account of the requests that are owed an answer. While the service drains it turns away what begins something, and
/// hears what brings something to its end.
pub(super) async fn drain(State(life): State<Life>, request: Request, next: Next) -> Response {
    let owed = (request.method() == Method::POST && !is_open_ended(&request)).then(|| life.request());
    if !life.draining().is_cancelled() {
        return until_its_end(owed, next.run(request).await);
    }
    let (head, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, REQUEST_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    if head.method == Method::POST && ends_something(&bytes) {
        let request = Request::from_parts(head, Body::from(bytes));
        return until_its_end(owed, next.run(request).await);
    }
    if head.method == Method::DELETE {
        return next.run(Request::from_parts(head, Body::empty())).await;
    }
    telemetry::refused("draining");
    let seconds = life.retry_after().as_secs();
    let message = json::tree(&bytes, VALUES_MAX).unwrap_or_default();
    let error = json!({"code": RESTARTING, "message": format!("{GOES_ON} in {seconds} s."), "data": {"retry_after_s": seconds}});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
    // On another connection the next process hears it.
    let head = [(RETRY_AFTER, seconds.to_string()), (CONNECTION, "close".to_owned())];
    (StatusCode::SERVICE_UNAVAILABLE, head, axum::Json(answer)).into_response()
}

/// A stream that ends when its client leaves: nobody waits for its end.
fn is_open_ended(request: &Request) -> bool {
    request.headers().get("mcp-method").is_some_and(|method| method == "subscriptions/listen")
}

/// Whether a message belongs to something that has begun: an answer, a notification, or a question for what a run has left.
fn ends_something(message: &Bytes) -> bool {
    let Ok(message) = json::tree(message, VALUES_MAX) else { return false };
    let Some(method) = message["method"].as_str() else { return message.is_object() };
    let (is_notification, parameters) = (message.get("id").is_none(), &message["params"]);
    match method {
        "ping" => true,
        "tools/call" => parameters["name"] == "get_result" || parameters["requestState"].is_string(),
        _ => is_notification || method.starts_with("tasks/"),
    }
}

/// The answer is owed until the last of it has left.
fn until_its_end(owed: Option<Owed>, response: Response) -> Response {
    let Some(owed) = owed else { return response };
    let (head, body) = response.into_parts();
    if !is_stream(&head.headers) {
        // It is whole. Those who close connections let it leave.
        return Response::from_parts(head, body);
    }
    let body = body.into_data_stream().map(move |part| {
        let _ = &owed;
        part
    });
    Response::from_parts(head, Body::from_stream(body))
}

fn is_stream(headers: &axum::http::HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_it_drains_what_has_begun_is_heard_and_nothing_else() {
        let heard = [
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"get_result","arguments":{}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"run_code","requestState":"x"}}"#,
            r#"{"id":1,"method":"tasks/get","params":{}}"#,
        ];
        let turned_away = [
            r#"{"id":1,"method":"tools/call","params":{"name":"run_code","arguments":{}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"search_tools","requestState":null}}"#,
            r#"{"id":1,"method":"initialize"}"#,
            r#"{"id":1,"method":"server/discover"}"#,
            r#"[{"id":1,"method":"ping"}]"#,
            "no JSON",
            "",
        ];
        for message in heard {
            assert!(ends_something(&Bytes::from_static(message.as_bytes())), "{message}");
        }
        for message in turned_away {
            assert!(!ends_something(&Bytes::from_static(message.as_bytes())), "{message}");
        }
    }
}
