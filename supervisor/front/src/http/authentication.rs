//! Authenticates each request.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{StreamExt, future};
use lockhouse_mcp::server::http_head;
use lockhouse_messages::AccessRefusal;

use super::body;
use super::connection::Authenticated;
use super::connection_timeouts::ConnectionTracker;
use super::reply::reject;
use crate::access::{Peer, RequestAuthenticator, Verification};

/// Middleware that authenticates a request and attaches its access. An event stream ends when the access does. If the
/// engine refuses the request after all, for example because its token was revoked meanwhile, the response is that of a
/// request without valid credentials.
pub(super) async fn authenticate(
    State(authenticator): State<Arc<RequestAuthenticator>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().copied();
    // A call has effects in the engine alone, which verifies the credential first.
    let is_call = head.method == Method::POST && http_head::is_call_without_session(&head.headers);
    let verification = match is_call {
        true => authenticator.begin(&head, peer).await,
        false => authenticator.authenticate(&head, peer).await.map(Verification::completed),
    };
    let Verification { access, verified } = match verification {
        Ok(verification) => verification,
        Err(rejection) => {
            let version = head.version;
            return body::discard_body(body, version, reject(rejection).await).await;
        }
    };
    let tracker = head.extensions.get::<ConnectionTracker>().cloned();
    let verified = async {
        match verified.await {
            // The engine serves the request all the same, under the access of a short time ago, or refuses it.
            Err(refusal) if refusal.is_temporary() => Ok(Err(refusal)),
            Err(refusal) => Err(refusal),
            Ok(now) => {
                tracker.as_ref().inspect(|tracker| tracker.set_authenticated());
                Ok(Ok(now))
            }
        }
    };
    head.extensions.insert(access.clone());
    let serving = async { Ok(next.run(Request::from_parts(head, body)).await) };
    let (verified, mut response) = match future::try_join(verified, serving).await {
        Ok(served) => served,
        Err(refusal) => return reject(authenticator.reject(refusal, peer.as_ref())).await,
    };
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(is_stream);
    if let Some(refusal) = access.refusal().filter(|_| !is_stream) {
        let refusal = match verified {
            Ok(now) if now.grant() == access.grant() => refusal.clone(),
            // The credential is valid, but the engine had just replaced the grant of the request.
            Ok(_) => AccessRefusal::EngineUnavailable,
            Err(temporary) => temporary,
        };
        response = reject(authenticator.reject(refusal, peer.as_ref())).await;
    }
    response.extensions_mut().insert(Authenticated);
    if !is_stream {
        return response;
    }
    let end = async move { access.ended().await };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
}
