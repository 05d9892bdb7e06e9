//! The MCP session with an upstream server over HTTP, which the server names in the header `Mcp-Session-Id`.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use reqwest::RequestBuilder;
use tokio::time::timeout;

use super::exchange::HttpExchange;

/// The HTTP header with the ID of the MCP session.
pub(super) const SESSION_ID: &str = "mcp-session-id";
/// How long to wait for the server's response when a session is ended.
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

/// Adds the ID of the MCP session to a request, if there is a session.
pub(super) fn with_session(request: RequestBuilder, session: Option<&str>) -> RequestBuilder {
    match session {
        Some(session) => request.header(SESSION_ID, session),
        None => request,
    }
}

/// Whether a response with this status says that the server no longer knows the session. The caller then connects
/// again.
pub(super) fn is_session_expired(status: StatusCode, session: Option<&str>) -> bool {
    status == StatusCode::NOT_FOUND && session.is_some()
}

/// Ends the session at the server. If the request fails or is not answered, the server ends the session by itself when
/// it expires.
pub(super) async fn end_session(exchange: &HttpExchange, session: &str, headers: HeaderMap) {
    let request = exchange.http.delete(exchange.url.clone()).headers(headers);
    let _ = timeout(DELETE_TIMEOUT, exchange.send(with_session(request, Some(session)))).await;
}
