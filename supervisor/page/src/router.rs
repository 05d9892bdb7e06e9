//! The routes of the page.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use lockhouse_base::browser_opening::OPEN_PATH;
use lockhouse_base::http_checks::host_check::{HostCheck, requested_host};
use lockhouse_base::tcp_connection::TcpConnection;
use serde_json::Value;

use super::access::{KEY_HEADER, LOGIN_KEY, RETURN_PATH};
use super::action::{self, Action};
use super::api;
use super::assets;
use super::error::{ActionError, ErrorCode};
use super::page_state::{PageState, PageStateExtractor};
use super::permissions;
use super::request_check::{self, IsTls};
use super::response_headers;

/// Maximum bytes of the body of a request to the page.
/// Bound: the live page.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Maximum time for the body of a request to the page to arrive.
/// Bound: the live page.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds the router. Every request passes the check of its host and origin, and every response gets the headers of
/// [`response_headers`].
pub(super) fn router(state: Arc<PageState>, hosts: HostCheck) -> Router {
    let mut router = Router::new()
        .route("/", get(|| async { assets::index() }))
        .route("/assets/{name}", get(asset))
        .route(OPEN_PATH, get(open))
        .route("/api/login", post(log_in))
        .route("/api/login/ways", get(ways_to_log_in))
        .route("/oauth/begin", get(send_browser))
        .route(RETURN_PATH, get(receive_browser))
        .route("/api/logout", post(log_out))
        .route("/api/events", get(api::events))
        .route("/api/runs/{execution}", get(api::run))
        .route("/api/audit", get(api::audit))
        .route("/api/results/{id}", get(api::stored_result));
    for (path, variant) in action::PATHS {
        let handler = move |State(state): PageStateExtractor, request: Request| act(state, variant, request);
        router = router.route(&format!("/api/{path}"), post(handler));
    }
    router
        .fallback(|| async { ActionError::new(ErrorCode::NotFound, "there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            ActionError::new(ErrorCode::Method, "this address takes another method")
        })
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::new(hosts), request_check::check))
        .layer(middleware::from_fn(response_headers::add))
        .with_state(state)
}

async fn asset(Path(name): Path<String>) -> Result<Response, ActionError> {
    assets::named(&name).ok_or_else(|| ActionError::new(ErrorCode::NotFound, "there is no such file"))
}

/// Leads the browser that this process has opened to a one-time link.
async fn open(State(state): PageStateExtractor, request: Request) -> Result<Response, ActionError> {
    // A request with the method HEAD must not use up the opening.
    if request.method() != Method::GET {
        return Err(ActionError::new(ErrorCode::Method, "this address takes another method"));
    }
    let ends = request.extensions().get::<TcpConnection>().copied();
    let link = state.access.open(ends, request.headers())?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, link.path())]).into_response())
}

/// Says whether people can log in at an authorization server.
async fn ways_to_log_in(State(state): PageStateExtractor) -> axum::Json<Value> {
    axum::Json(serde_json::json!({"oauth": state.access.has_browser_login()}))
}

/// Sends a browser to the authorization server.
async fn send_browser(
    State(state): PageStateExtractor,
    Extension(IsTls(is_tls)): Extension<IsTls>,
    request: Request,
) -> Result<Response, ActionError> {
    if request.method() != Method::GET {
        return Err(ActionError::new(ErrorCode::Method, "this address takes another method"));
    }
    // It was checked to be the host of the page.
    let host = requested_host(request.uri(), request.headers())?;
    let origin = format!("{}://{host}", if is_tls { "https" } else { "http" });
    let (address, cookie) = state.access.send_browser(&origin, is_tls).await?;
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, address)]).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Leads a browser that comes back from the authorization server to a one-time link.
async fn receive_browser(
    State(state): PageStateExtractor,
    query: Result<Query<HashMap<String, String>>, axum::extract::rejection::QueryRejection>,
    request: Request,
) -> Result<Response, ActionError> {
    if request.method() != Method::GET {
        return Err(ActionError::new(ErrorCode::Method, "this address takes another method"));
    }
    let Query(query) = query.map_err(|error| ActionError::new(ErrorCode::Invalid, error.to_string()))?;
    let link = state.access.receive_browser(request.headers(), query).await?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, link.path())]).into_response())
}

async fn log_in(
    State(state): PageStateExtractor,
    Extension(IsTls(is_tls)): Extension<IsTls>,
    request: Request,
) -> Result<Response, ActionError> {
    let (head, body) = request.into_parts();
    if head.headers.get(KEY_HEADER).is_none_or(|key| key != LOGIN_KEY) {
        return Err(ActionError::new(
            ErrorCode::Forbidden,
            "a login needs the header X-Lockhouse-Page: login",
        ));
    }
    let body = read_json(&head.headers, body).await?;
    let (Some(token), Some(1)) = (body["token"].as_str(), body.as_object().map(serde_json::Map::len)) else {
        return Err(ActionError::new(ErrorCode::Invalid, "the body must be {\"token\": …}"));
    };
    let logged_in = state.access.log_in(token.to_owned(), is_tls).await?;
    let mut response = api::login_response(&logged_in.key).into_response();
    response.headers_mut().insert(header::SET_COOKIE, logged_in.cookie);
    Ok(response)
}

async fn log_out(State(state): PageStateExtractor, request: Request) -> Result<Response, ActionError> {
    let (head, body) = request.into_parts();
    state.access.viewer(&head.headers)?;
    read_json(&head.headers, body).await?;
    state.access.log_out(&head.headers);
    Ok(axum::Json(serde_json::json!({})).into_response())
}

/// Carries out an action. The session is checked before the body is read.
async fn act(
    state: Arc<PageState>,
    variant: &'static str,
    request: Request,
) -> Result<Response, ActionError> {
    let (head, body) = request.into_parts();
    let viewer = state.access.viewer(&head.headers)?;
    let action = Action::parse(variant, &read_json(&head.headers, body).await?)?;
    permissions::check(&viewer, &action, &state.sections)?;
    Ok(axum::Json(state.operator.act(action, viewer).await?).into_response())
}

/// Reads the body of a request, which must be JSON and be declared as JSON: other web pages can send other types without
/// asking.
async fn read_json(headers: &HeaderMap, body: Body) -> Result<Value, ActionError> {
    let is_json = |value: &HeaderValue| {
        let media_type = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
        media_type.trim().eq_ignore_ascii_case("application/json")
    };
    if !headers.get(header::CONTENT_TYPE).is_some_and(is_json) {
        return Err(ActionError::new(ErrorCode::ContentType, "the body must be application/json"));
    }
    let too_large =
        || ActionError::new(ErrorCode::TooLarge, format!("the body has more than {BODY_BYTES_MAX} bytes"));
    let reading = axum::body::to_bytes(body, BODY_BYTES_MAX);
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(read) => read.map_err(|_| too_large())?,
        Err(_elapsed) => return Err(ActionError::new(ErrorCode::Invalid, "the body did not arrive in time")),
    };
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| ActionError::new(ErrorCode::Invalid, format!("the body is not JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(ActionError::new(ErrorCode::Invalid, "the body must be an object"))
    }
}
