//! AI clients over streamable HTTP, at `/mcp`: on TCP, or on a Unix domain socket.
//!
//! A connection is taken in if there is a place for it ([`accept`]), closed for another one if it has proven nothing ([`limiter`]), and
//! closed when it does not keep to its times ([`connection`]).
//! A request passes, in this order: for whom it is meant ([`hosts`]), who it is from ([`admit`]), its body ([`body`]), and whose MCP
//! session it is of ([`sessions`]). It carries the [`Principal`] that it was admitted as to the front.

mod accept;
mod address;
mod body;
mod connection;
mod exposure;
mod health;
mod hosts;
mod limiter;
mod limits;
mod listening;
mod message;
mod origin;
mod places;
mod proxies;
mod rate;
mod request_heads;
mod request_ids;
mod sessions;
mod tls;
mod watched;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use lockhouse_base::principal::Principal;
use lockhouse_base::telemetry;
use rmcp::model::{Extensions, JsonObject};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::direct::raw::unpack;
use super::{Door, Front};
use crate::access::{Access, AccessError, AccessSettings, Peer, Refused};
use accept::Entrance;
use body::Bodies;
use connection::{Admitted, Serving};
use exposure::ExposureError;
use hosts::Names;
use listening::{BindError, InheritError, Listening};
use message::Arguments;
use proxies::TrustedProxies;
use sessions::McpSessions;
use tls::{Tls, TlsError};
use watched::Watch;

pub use address::Address;
pub use health::{FiguresError, Service, serve_figures};
pub use hosts::{HostName, PageOrigin};
pub use limits::HttpLimits;
pub use proxies::TrustedProxy;
pub use tls::TlsFiles;

/// Between looks for MCP sessions that nobody uses any more.
const SESSIONS_LOOKED_AT_EVERY: Duration = Duration::from_secs(5);

/// `[http]`
#[derive(Clone, Debug)]
pub struct HttpSettings {
    pub listen: Vec<Address>,
    pub access: AccessSettings,
    pub hosts: Vec<HostName>,
    pub origins: Vec<PageOrigin>,
    pub behind_proxy: bool,
    pub trusted_proxies: Vec<TrustedProxy>,
    pub tls: Option<TlsFiles>,
    pub limits: HttpLimits,
}

/// How a request came in.
#[derive(Clone, Copy, Debug)]
struct Via {
    /// The address of this host that it came to; none for a Unix domain socket.
    local: Option<SocketAddr>,
    is_tls: bool,
}

/// Why nobody can come in.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    #[error(transparent)]
    Inherited(#[from] InheritError),
    #[error(transparent)]
    Exposure(#[from] ExposureError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Access(#[from] AccessError),
    /// This host does not do it. All else is what is configured, and must not be done or cannot work.
    #[error(transparent)]
    Unavailable(#[from] BindError),
}

/// Sockets that are open, and all that is needed to serve at them.
pub struct OpenDoor {
    settings: HttpSettings,
    access: Arc<Access>,
    listening: Vec<Listening>,
    /// By systemd, which holds them too: whoever is not accepted by this process is by the next one.
    is_inherited: bool,
    tls: Option<Arc<Tls>>,
}

/// Reads the certificate of an open door again.
#[derive(Clone, Debug)]
pub struct Certificate(Option<Arc<Tls>>);

impl Certificate {
    /// Connections from now on get what is in the files, or what was in force stays, and the log says why.
    pub fn reload(&self) {
        let Some(tls) = &self.0 else { return };
        match tls.reload() {
            Ok(()) => tracing::info!("the certificate was read again"),
            Err(reason) => {
                tracing::error!("the certificate was not read again, and the one in force stays: {reason}")
            }
        }
    }
}

/// Whether systemd has opened sockets for this process.
pub fn are_inherited() -> bool {
    let is_us = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    is_us && std::env::var("LISTEN_FDS").is_ok_and(|count| count != "0")
}

impl OpenDoor {
    /// Opens the sockets, or takes those that systemd has opened.
    ///
    /// # Errors
    /// [`NotOpened`], with what to do.
    pub async fn open(settings: HttpSettings) -> Result<Self, NotOpened> {
        let inherited = listening::inherited()?;
        let is_inherited = !inherited.is_empty();
        let places: Vec<&Address> = match is_inherited {
            true => inherited.iter().map(|listening| &listening.address).collect(),
            false => settings.listen.iter().collect(),
        };
        for address in places {
            exposure::check(&settings, address)?;
        }
        let tls = settings.tls.clone().map(Tls::load).transpose()?;
        let access = Access::new(settings.access.clone())?;
        let listening = match is_inherited {
            true => {
                tracing::info!("serving at the sockets that systemd opened, and not at `listen` of [http]");
                inherited
            }
            false => listening::bind(&settings.listen).await?,
        };
        Ok(Self { settings, access, listening, is_inherited, tls: tls.map(Arc::new) })
    }

    /// What a reload reads again.
    pub fn certificate(&self) -> Certificate {
        Certificate(self.tls.clone())
    }

    /// Serves AI clients until `closing`.
    pub async fn serve(self, service: Service, closing: CancellationToken) {
        let life = service.life.clone();
        let limits = self.settings.limits;
        let sessions = Arc::new(McpSessions::new(limits));
        let until = if self.is_inherited { life.draining().clone() } else { closing.clone() };
        let router = router(service, &self.settings, &self.access, sessions.clone(), closing.clone());
        let proxies = TrustedProxies::new(&self.settings.trusted_proxies);
        let serving = Serving::new(router, limits, proxies, closing.clone());
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let entrance = Entrance::new(serving, self.tls);
        for listening in &self.listening {
            match &listening.address {
                Address::Tcp(address) => tracing::info!("listening at {scheme}://{address}/mcp"),
                unix @ Address::Unix(_) => tracing::info!("listening at {unix}"),
            }
        }
        life.listens();
        let accepting = self.listening.into_iter().map(|at| entrance.clone().accept(at, until.clone()));
        tokio::select! {
            _ = futures_util::future::join_all(accepting) => {}
            () = end_idle(&sessions) => {}
        }
    }
}

async fn end_idle(sessions: &McpSessions) {
    let mut looking = tokio::time::interval(SESSIONS_LOOKED_AT_EVERY);
    loop {
        looking.tick().await;
        sessions.end_idle().await;
    }
}

/// How long a client waits for the word that it asks too often, at most: on one connection it can ask no faster.
const TOO_MANY_ANSWERED_AFTER: Duration = Duration::from_secs(1);

/// Answers a request that is not admitted. Whoever asks again at once would have more of this process than all others: a refusal
/// is cheap only if it is rare.
async fn refuse(refused: Refused) -> Response {
    if let Some(wait) = refused.room_after() {
        tokio::time::sleep(wait.min(TOO_MANY_ANSWERED_AFTER)).await;
    }
    let response = refused.into_response();
    match response.status() {
        StatusCode::UNAUTHORIZED => telemetry::auth_failed(),
        StatusCode::TOO_MANY_REQUESTS => telemetry::refused("rate"),
        _ => {}
    }
    response
}

/// Lets a request in as the client that it proves to be from. What is answered in parts ends when that counts no more.
async fn admit(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let peer = head.extensions.get::<Peer>().copied();
    let principal = match access.admit(&head, peer.as_ref()).await {
        Ok(principal) => principal,
        Err(refused) => {
            let version = head.version;
            return body::read_on(body, version, refuse(refused).await).await;
        }
    };
    if let Some(watch) = head.extensions.get::<Watch>() {
        watch.admitted();
    }
    head.extensions.insert(principal.clone());
    let mut response = next.run(Request::from_parts(head, body)).await;
    response.extensions_mut().insert(Admitted);
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
        return response;
    }
    let over = async move { principal.over().await };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(over))))
}

/// Everything that is served.
fn router(
    service: Service,
    settings: &HttpSettings,
    access: &Arc<Access>,
    sessions: Arc<McpSessions>,
    closing: CancellationToken,
) -> Router {
    let front = Front::new(service.engine.clone(), Door::Http, closing.clone());
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(closing)
        .with_json_response(true)
        .with_legacy_session_mode(true)
        .with_max_request_body_bytes(settings.limits.body_bytes)
        // Checked before, for every path.
        .disable_allowed_hosts();
    let mcp = StreamableHttpService::new(move || Ok(front.anew()), sessions.clone(), config);
    let names = Names { hosts: settings.hosts.clone(), origins: settings.origins.clone() };
    let bodies = Arc::new(Bodies::new(settings.limits, access.clone()));
    let admitted = Router::new()
        .route_service("/mcp", mcp)
        // Inside of everything else: it takes each piece of a body for a whole message.
        .layer(middleware::map_response(unpack))
        .layer(middleware::from_fn_with_state(sessions, sessions::bind))
        .layer(middleware::from_fn_with_state(service.life.clone(), health::drain))
        .layer(middleware::from_fn_with_state(bodies, body::read))
        .merge(health::guarded(&service))
        .layer(middleware::from_fn_with_state(access.clone(), admit));
    // What is open to strangers is merged here, beside what is for the admitted.
    let open = access.metadata().merge(health::open(&service));
    let named = admitted.merge(open).layer(middleware::from_fn_with_state(Arc::new(names), hosts::check));
    named.layer(middleware::from_fn(health::counted))
}

/// The client that a request was admitted as.
pub(super) fn principal(extensions: &Extensions) -> Option<Principal> {
    extensions.get::<http::request::Parts>()?.extensions.get::<Principal>().cloned()
}

/// The arguments of the `tools/call` that a request is. They do not come through rmcp.
pub(super) fn arguments(extensions: &Extensions) -> Option<JsonObject> {
    extensions.get::<http::request::Parts>()?.extensions.get::<Arguments>()?.take()
}
