//! The HTTP server for AI clients: streamable HTTP at `/mcp`, on TCP or on a Unix domain socket.
//!
//! A connection is accepted within the limits of [`connection_limiter`], which may close another connection to make
//! room. A connection is closed when it exceeds the timeouts of [`connection_timeouts`]. A request passes these checks
//! in order: its host and origin ([`host_check`]), authentication ([`authentication`]), its body ([`body`]), draining
//! ([`drain`]), and the owner of its MCP session ([`mcp_sessions`]). The MCP handler then gets the request with its
//! [`GrantedAccess`](lockhouse_link::GrantedAccess).

mod accept;
mod authentication;
mod balancer_check;
mod body;
mod body_permits;
mod certificate_header;
mod connection;
mod connection_limiter;
mod connection_source;
mod connection_timeouts;
mod counters;
mod drain;
mod endpoint;
mod exposure_check;
mod front_setup;
mod front_updates;
mod health_endpoints;
mod host_check;
mod limit_key;
mod limits;
mod listener;
mod login_page;
mod mcp_sessions;
mod message_cost;
mod peer_turns;
mod rate_limiter;
mod refused_connections;
mod reply;
mod sockets;
mod tls;
mod trusted_proxies;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use lockhouse_base::http_checks::host_check::{HostCheck, HostName, PageOrigin};
use lockhouse_link::{EngineClient, SetupReceiver};
use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{RequestClaims, RequestId};
use lockhouse_policies::Rate;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{AnswerSettings, ClientTransport, McpHandler};
use crate::access::{ClientTurns, RequestAuthenticator, metadata_routes};
use crate::request_claims::request_claims;
use accept::Acceptor;
use body::BodyReader;
use certificate_header::CertificateHeader;
use connection::{ConnectionServer, drop_connection};
use connection_source::ConnectionSource;
use endpoint::McpEndpoint;
use exposure_check::ExposureError;
use front_setup::{InheritedSource, SetupDescriptors};
use front_updates::first_certificate;
use listener::BindError;
pub use listener::SocketActivationError;
use mcp_sessions::McpSessions;
use tls::Tls;
use trusted_proxies::TrustedProxies;

pub use front_setup::{FrontSetup, FrontUpdate};
pub use limits::HttpLimits;
pub use lockhouse_base::listen::ListenAddress;
pub use refused_connections::SpareSockets;
pub use sockets::{HttpSockets, OpenSocket, SocketKind};
pub use tls::{ServedCertificate, Signer, TlsError, TlsFiles, TlsSettings, TlsVersion, warm_up};
pub use trusted_proxies::TrustedProxy;

/// Interval between checks for idle MCP sessions.
const IDLE_SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The settings of the HTTP server: the table `[http]` of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HttpSettings {
    pub listen: Vec<ListenAddress>,
    /// Whether each address has a front of its own.
    pub front_per_address: bool,
    /// Whether requests need a credential.
    pub requires_authentication: bool,
    /// Whether users of this host are authenticated by their user id, over Unix domain sockets.
    pub accepts_users: bool,
    /// Rate limit for the requests of one client. A request with a large body counts more than once.
    pub requests: Rate,
    pub hosts: Vec<HostName>,
    pub origins: Vec<PageOrigin>,
    pub behind_proxy: bool,
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Whether clients are asked for a certificate in the handshake of TLS.
    pub asks_for_certificates: bool,
    /// Whether trusted proxies pass on the certificates of their clients, in a header.
    pub proxies_pass_certificates: bool,
    /// The files with the key, which the front's process does not get.
    #[serde(skip)]
    pub tls: Option<TlsSettings>,
    pub limits: HttpLimits,
    /// The address to which browsers return from a login to an upstream server. `None` if users do not log in on a page.
    pub login_redirect: Option<String>,
    /// The form of the answers to each AI client, and how long its requests wait for their runs.
    pub answers: AnswerSettings,
}

/// Why the HTTP server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HttpStartError {
    #[error(transparent)]
    Inherited(#[from] SocketActivationError),
    #[error(transparent)]
    Exposure(#[from] ExposureError),
    #[error("[metrics]: {0}")]
    Metrics(#[source] BindError),
    /// The server cannot listen at an address, for example because another process uses it. Every other error is a
    /// fault in the configuration.
    #[error(transparent)]
    Unavailable(#[from] BindError),
}

/// An HTTP server whose sockets are open and whose settings are checked.
pub struct HttpServer {
    settings: HttpSettings,
    sources: Vec<ConnectionSource>,
    /// Whether systemd opened the listening sockets. systemd keeps them open, so connections that this process does not
    /// accept go to the next process of the service.
    is_socket_activated: bool,
    tls: Option<Arc<Tls>>,
    channel: SetupReceiver,
    metrics: Vec<(ListenAddress, OwnedFd)>,
}

/// The ends of an HTTP server.
#[derive(Clone, Debug)]
pub(super) struct ServerEnds {
    /// Cancelled when the engine closes: ends all connections.
    closing: CancellationToken,
    /// Cancelled when another front takes the place of this one: each connection ends with its next response.
    retiring: CancellationToken,
}

/// Returns whether systemd has passed sockets to this process (socket activation).
pub fn has_inherited_sockets() -> bool {
    let is_us = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    is_us && std::env::var("LISTEN_FDS").is_ok_and(|count| count != "0")
}

/// Returns the Unix domain sockets that systemd passed to this process, for a service without HTTP. Empty if there are
/// none.
///
/// # Errors
/// A passed descriptor is not a listening Unix domain socket.
pub fn inherited_unix_listeners() -> Result<Vec<tokio::net::UnixListener>, SocketActivationError> {
    listener::inherited_unix_listeners()
}

impl HttpServer {
    /// Takes over what the engine's process sends, with the first certificate. Returns the server, and this process's end of the
    /// connection to the engine.
    ///
    /// # Errors
    /// The engine has ended, or what it sent cannot be used.
    pub async fn inherit(channel: SetupReceiver) -> std::io::Result<(Self, OwnedFd)> {
        let (setup, descriptors) = channel.receive::<FrontSetup>().await?;
        let FrontSetup { settings, has_tls, is_socket_activated, clients, metrics } = setup;
        let mut descriptors = SetupDescriptors::new(descriptors);
        let link = descriptors.take()?;
        let mut inherit = |source| ConnectionSource::inherit(source, descriptors.take()?);
        let sources = clients.into_iter().map(&mut inherit).collect::<std::io::Result<_>>()?;
        let mut inherit = |source: InheritedSource| Ok((source.address, descriptors.take()?));
        let metrics = metrics.into_iter().map(&mut inherit).collect::<std::io::Result<_>>()?;
        channel.confirm(true);
        let tls = match has_tls {
            true => Some(Arc::new(first_certificate(&channel, settings.asks_for_certificates).await?)),
            false => None,
        };
        Ok((Self { settings, sources, is_socket_activated, tls, channel, metrics }, link))
    }

    pub fn limits(&self) -> HttpLimits {
        self.settings.limits
    }

    /// Serves AI clients until `closing` is cancelled. If systemd opened the sockets, accepts no connection after the
    /// drain has begun.
    pub async fn serve(self, engine: EngineClient, closing: CancellationToken) {
        let limits = self.settings.limits;
        let sessions = Arc::new(McpSessions::new(engine.clone(), limits));
        let (accepting, retiring) = (closing.child_token(), closing.child_token());
        let ends = ServerEnds { closing: closing.clone(), retiring: retiring.clone() };
        let router = router(engine.clone(), &self.settings, sessions.clone(), ends.clone());
        let proxies = TrustedProxies::new(&self.settings.trusted_proxies);
        let certificates = CertificateHeader::new(self.settings.proxies_pass_certificates);
        let server = ConnectionServer::new(router, limits, proxies, certificates, ends);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let metrics = health_endpoints::serve_metrics(&engine, self.metrics);
        let updates = front_updates::follow(self.channel, self.tls.clone(), retiring.clone());
        let acceptor = Acceptor::new(engine.clone(), server, self.tls);
        for source in &self.sources {
            match &source.address {
                ListenAddress::Tcp(address) => tracing::info!("listening at {scheme}://{address}/mcp"),
                unix @ ListenAddress::Unix(_) => tracing::info!("listening at {unix}"),
            }
        }
        engine.lifecycle().announce_listening();
        let accept_loops = self.sources.into_iter().map(|at| acceptor.clone().accept(at, accepting.clone()));
        let end_accepting = async {
            let draining = async {
                match self.is_socket_activated {
                    true => engine.lifecycle().draining().await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = draining => {}
                () = retiring.cancelled() => {}
            }
            accepting.cancel();
            std::future::pending().await
        };
        let accept_all = async {
            futures_util::future::join_all(accept_loops).await;
            // The connections that wait are for the next process of the service, and not for another front of this one.
            retiring.cancelled().await;
        };
        tokio::select! {
            () = accept_all => {}
            () = end_idle(&sessions) => {}
            never = sessions.receive_from_others() => match never {},
            () = end_accepting => {}
            never = metrics => match never {},
            never = updates => match never {},
            never = counters::report_regularly(&engine) => match never {},
        }
        counters::report(&engine);
    }
}

async fn end_idle(sessions: &McpSessions) {
    let mut looking = tokio::time::interval(IDLE_SESSION_CHECK_INTERVAL);
    loop {
        looking.tick().await;
        sessions.end_idle();
    }
}

/// Builds the router of the HTTP server: `/mcp`, the endpoints for monitoring and for OAuth metadata, and the
/// middleware that checks requests.
fn router(
    engine: EngineClient,
    settings: &HttpSettings,
    sessions: Arc<McpSessions>,
    ends: ServerEnds,
) -> Router {
    let ServerEnds { closing, retiring } = ends;
    let handler =
        McpHandler::new(engine.clone(), ClientTransport::Http, settings.answers.clone(), closing.clone());
    let host_check = HostCheck { hosts: settings.hosts.clone(), origins: settings.origins.clone() };
    let authenticator = RequestAuthenticator::new(engine.clone(), settings.requests);
    let bodies = BodyReader::new(settings.limits, authenticator.clone());
    let turns = ClientTurns::default();
    let endpoint =
        McpEndpoint { engine: engine.clone(), handler, sessions, bodies, turns, closing, retiring };
    let login = login_page::routes(&engine, &authenticator, settings.login_redirect.as_deref());
    let admitted = Router::new()
        .route("/mcp", axum::routing::any(endpoint::serve))
        .with_state(Arc::new(endpoint))
        .merge(health_endpoints::authenticated_routes(&engine))
        .merge(balancer_check::routes(&engine))
        .layer(middleware::from_fn_with_state(authenticator, authentication::authenticate));
    // Public routes are merged after the authentication layer, which does not apply to them.
    let metadata = metadata_routes(engine.settings().authentication.metadata);
    let open = metadata.merge(health_endpoints::public_routes(&engine)).merge(login);
    let checked = admitted
        .merge(open)
        .layer(middleware::from_fn_with_state(Arc::new(host_check), host_check::check_host));
    checked.layer(middleware::from_fn(health_endpoints::count_response))
}

/// Returns the ids that the AI client gave a request: in headers, if it came over HTTP, and in `_meta`.
pub(super) fn claims(context: &RequestContext) -> RequestClaims {
    request_claims(context.http.as_ref().map(|head| &head.headers), context.meta.get_traceparent())
}

/// The HTTP header in which an AI client gives a request an id, so that it can send the request again.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Returns the id that the AI client chose for its request: a UUID in the header `Idempotency-Key`, in quotation marks or
/// without. `None` if there is no such header.
///
/// # Errors
/// The header is not valid. The text says why.
pub(super) fn idempotency_key(context: &RequestContext) -> Result<Option<RequestId>, &'static str> {
    let Some(head) = &context.http else { return Ok(None) };
    let mut values = head.headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("there is more than one header Idempotency-Key");
    }
    let key = value.to_str().ok().and_then(|text| RequestId::parse(text.trim_matches('"')));
    key.map(Some)
        .ok_or("the header Idempotency-Key is no UUID, such as \"0199c1f2-6c57-7e31-9d3e-2f8a7b6c5d4e\"")
}
