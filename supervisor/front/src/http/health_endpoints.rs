//! The HTTP endpoints for monitoring: `/live`, `/ready`, `/health` and `/metrics`.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lockhouse_base::listen::ListenAddress;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_messages::{Credential, Request as Ask, Response as Answer};
use tokio::net::{TcpListener, UnixListener};

use super::counters;

/// Content type of Prometheus' text format.
const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Sends a request to the engine with the front's own access, and returns the response.
async fn ask(engine: &EngineClient, request: Ask) -> Answer {
    match engine.authenticate(Credential::Connection).await {
        Ok(access) => engine.ask(&access, None, request).await,
        Err(refusal) => Answer::Refused(refusal),
    }
}

/// Returns the routes `/live` and `/ready`, which require no authentication.
pub(super) fn public_routes(engine: &EngineClient) -> Router {
    let router = Router::new().route("/live", get(async || "alive\n")).route("/ready", get(ready));
    router.with_state(engine.clone())
}

/// Returns the routes `/health` and `/metrics`, for authenticated clients that may use all upstream servers.
pub(super) fn authenticated_routes(engine: &EngineClient) -> Router {
    status_routes(engine).layer(middleware::from_fn(require_unrestricted))
}

/// Serves `/live`, `/ready`, `/health` and `/metrics` without authentication, at the addresses of `[metrics]`.
pub(super) async fn serve_metrics(
    engine: &EngineClient,
    sockets: Vec<(ListenAddress, OwnedFd)>,
) -> Infallible {
    let router = public_routes(engine).merge(status_routes(engine));
    let serving = sockets.into_iter().map(async |(address, socket)| {
        if let Err(error) = serve_at(&address, socket, router.clone()).await {
            tracing::error!("metrics are not served at {address}: {error}");
        }
    });
    futures_util::future::join_all(serving).await;
    std::future::pending().await
}

async fn serve_at(address: &ListenAddress, socket: OwnedFd, router: Router) -> io::Result<()> {
    match address {
        ListenAddress::Tcp(address) => {
            tracing::info!("serving metrics at http://{address}/metrics");
            axum::serve(TcpListener::from_std(socket.into())?, router).await
        }
        unix @ ListenAddress::Unix(_) => {
            tracing::info!("serving metrics at {unix}");
            axum::serve(UnixListener::from_std(socket.into())?, router).await
        }
    }
}

fn status_routes(engine: &EngineClient) -> Router {
    let router = Router::new().route("/health", get(health)).route("/metrics", get(metrics));
    router.with_state(engine.clone())
}

async fn ready(State(engine): State<EngineClient>) -> Response {
    let Answer::Reasons(reasons) = ask(&engine, Ask::Readiness).await else { return engine_failed() };
    if reasons.is_empty() {
        return "ready\n".into_response();
    }
    let retry = engine.lifecycle().retry_after().as_secs().to_string();
    let words = format!("not ready: {}\n", reasons.join("; "));
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, retry)], words).into_response()
}

async fn health(State(engine): State<EngineClient>) -> Response {
    let Answer::Json(health) = ask(&engine, Ask::ServiceHealth).await else { return engine_failed() };
    ([(CACHE_CONTROL, "no-store")], axum::Json(health)).into_response()
}

async fn metrics(State(engine): State<EngineClient>) -> Response {
    counters::report(&engine);
    match ask(&engine, Ask::Metrics).await {
        Answer::Text(Some(figures)) => ([(CONTENT_TYPE, PROMETHEUS_CONTENT_TYPE)], figures).into_response(),
        Answer::Text(None) => StatusCode::NOT_FOUND.into_response(),
        other => {
            tracing::warn!("no metrics: {}", other.into_failure().describe("the request"));
            engine_failed()
        }
    }
}

/// Returns the response 500, for the case that the engine, which executes requests, gave no valid answer.
fn engine_failed() -> Response {
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// Middleware that refuses clients that may use only some of the upstream servers, because `/health` and `/metrics`
/// cover all of them.
async fn require_unrestricted(request: Request, next: Next) -> Response {
    match request.extensions().get::<GrantedAccess>() {
        Some(access) if access.is_unrestricted() => next.run(request).await,
        _ => (
            StatusCode::FORBIDDEN,
            "this client may use only some of the servers, and this endpoint covers all of them\n",
        )
            .into_response(),
    }
}

/// Middleware that counts HTTP responses by status code.
pub(super) async fn count_response(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    counters::count_response(response.status().as_u16());
    response
}
