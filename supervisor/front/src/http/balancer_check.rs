//! The endpoint `/balancer-check`, by which `lockhouse doctor --balancer` finds out what a balancer does with requests: whether a client
//! stays at one host, whether events come as they are sent, and whether a request is sent again after it may have been carried out.
//! Only authenticated clients reach it, and it runs nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::{StreamExt, stream};
use lockhouse_base::expiring_map::ExpiringMap;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_messages::{Incarnation, Owner, RequestId};
use parking_lot::Mutex;

use super::{IDEMPOTENCY_KEY, drop_connection};

/// Time between the two events of the stream.
const BETWEEN_EVENTS: Duration = Duration::from_secs(2);
/// Maximum number of requests that are remembered.
/// Bound: AI clients.
const REMEMBERED_MAX: usize = 1_024;
/// Time for which they are remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// The answer to a request that was sent again.
const AGAIN: &str = "again\n";

struct BalancerCheck {
    /// Distinguishes this process from those of other hosts.
    host: Incarnation,
    /// Whether the host is one of a cluster, so that any host may serve a client.
    is_of_cluster: bool,
    seen: Mutex<ExpiringMap<(Owner, RequestId), ()>>,
}

/// Returns the routes of the endpoint.
pub(super) fn routes(engine: &EngineClient) -> Router {
    let is_of_cluster = engine.settings().host_tag.is_some();
    let seen = Mutex::new(ExpiringMap::new(REMEMBERED_MAX, REMEMBERED_FOR));
    Router::new()
        .route("/balancer-check", get(host))
        .route("/balancer-check/events", get(events))
        .route("/balancer-check/fail/{how}/{host}", post(fail))
        .with_state(Arc::new(BalancerCheck { host: Incarnation::generate(), is_of_cluster, seen }))
}

async fn host(State(check): State<Arc<BalancerCheck>>) -> String {
    let of_cluster = if check.is_of_cluster { "cluster\n" } else { "" };
    format!("{}\n{of_cluster}", check.host)
}

async fn events() -> Response {
    let first = stream::once(async { Bytes::from_static(b"data: first\n\n") });
    let last = stream::once(async {
        tokio::time::sleep(BETWEEN_EVENTS).await;
        Bytes::from_static(b"data: last\n\n")
    });
    let body = Body::from_stream(first.chain(last).map(Ok::<_, std::convert::Infallible>));
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Fails as `how` says: with a status, or with `none` without an answer. Succeeds if the request has come before, or if this is not the
/// host at which the client is: then it has come there before.
async fn fail(
    State(check): State<Arc<BalancerCheck>>,
    Extension(access): Extension<GrantedAccess>,
    Path((how, host)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let id = headers.get(IDEMPOTENCY_KEY).and_then(|id| id.to_str().ok()).and_then(RequestId::parse);
    let Some(id) = id else { return StatusCode::BAD_REQUEST.into_response() };
    let key = (access.owner(), id);
    let mut seen = check.seen.lock();
    if host != check.host.to_string() || seen.get(&key).is_some() {
        return AGAIN.into_response();
    }
    seen.insert(key, ());
    match how.as_str() {
        "none" => drop_connection(),
        "500" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "502" => StatusCode::BAD_GATEWAY.into_response(),
        "504" => StatusCode::GATEWAY_TIMEOUT.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
