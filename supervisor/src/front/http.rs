//! AI clients over streamable HTTP, at `/mcp`: on TCP, or on a Unix domain socket.
//!
//! A request is admitted before anything of it is read, and carries the [`Principal`] that it was admitted as to the front.

use std::fmt::{Display, Formatter};
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::direct::Direct;
use super::direct::raw::unpack;
use super::runs::Runs;
use super::{Door, Front};
use crate::access::{Access, AccessSettings, Peer, Principal};
use crate::supervisor::Supervisor;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    /// `unix:/PATH`
    Unix(PathBuf),
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        if let Some(path) = written.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        written.parse().map(Self::Tcp).map_err(|_| {
            format!("{written:?} is no address: write IP:PORT, such as 127.0.0.1:7300 or [::1]:7300, or unix:/PATH")
        })
    }
}

/// `[http]`
#[derive(Clone, Debug)]
pub(crate) struct HttpSettings {
    pub(crate) listen: Vec<Address>,
    pub(crate) access: AccessSettings,
}

/// Serves AI clients at these addresses until `closing`.
pub(crate) async fn serve(
    supervisor: Arc<Supervisor>,
    settings: HttpSettings,
    closing: CancellationToken,
) -> Result<(), String> {
    let access = Access::new(settings.access)?;
    let open = access.metadata();
    let admitting = middleware::from_fn_with_state(access, admit);
    let router = router(supervisor, closing.clone()).layer(admitting).merge(open);
    let mut serving = Vec::new();
    for address in settings.listen {
        let told = |error: std::io::Error| format!("cannot listen at {address}: {error}");
        let (router, closed) = (router.clone(), closing.clone().cancelled_owned());
        let serving_here: BoxFuture<'static, std::io::Result<()>> = match &address {
            Address::Tcp(tcp) => {
                let listener = TcpListener::bind(tcp).await.map_err(told)?;
                let bound = listener.local_addr().map_err(told)?;
                tracing::info!("listening at http://{bound}/mcp");
                let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
                axum::serve(listener, router).with_graceful_shutdown(closed).into_future().boxed()
            }
            Address::Unix(path) => {
                let listener = UnixListener::bind(path).map_err(told)?;
                tracing::info!("listening at {address}");
                axum::serve(listener, router).with_graceful_shutdown(closed).into_future().boxed()
            }
        };
        serving.push(serving_here);
    }
    futures_util::future::try_join_all(serving).await.map(drop).map_err(|error| error.to_string())
}

/// Lets a request in as the client that it proves to be from. What is answered in parts ends when that counts no more.
async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().copied();
    let principal = match access.admit(&head, peer.as_ref()).await {
        Ok(principal) => principal,
        Err(refused) => return refused.into_response(),
    };
    head.extensions.insert(principal.clone());
    let response = next.run(Request::from_parts(head, body)).await;
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
        return response;
    }
    let over = async move { principal.over().await };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(over))))
}

/// Everything that is served, for requests that were admitted.
fn router(supervisor: Arc<Supervisor>, closing: CancellationToken) -> Router {
    let (runs, direct) = (Runs::new(supervisor.clone()), Direct::default());
    let front = Front { supervisor, door: Door::Http, runs, direct, closing: closing.clone() };
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(closing)
        .with_json_response(true)
        .with_legacy_session_mode(true)
        .enforce_origin_validation();
    let sessions = Arc::new(LocalSessionManager::default());
    Router::new()
        .nest_service("/mcp", StreamableHttpService::new(move || Ok(front.anew()), sessions, config))
        // Inside of everything else: it takes each piece of a body for a whole message.
        .layer(middleware::map_response(unpack))
}

/// The client that a request was admitted as.
pub(super) fn principal(extensions: &Extensions) -> Option<Principal> {
    extensions.get::<http::request::Parts>()?.extensions.get::<Principal>().cloned()
}
