//! `[http]` as it is written, and the settings that it makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_front::access::{AccessSettings, Auth, NamedUser};
use lockhouse_front::http::{
    Address, HostName, HttpLimits, HttpSettings, PageOrigin, TlsFiles, TrustedProxy,
};
use serde::Deserialize;

use super::references::Surroundings;

/// Where `lockhouse serve --http` listens if nothing else is said.
const LISTEN: &str = "127.0.0.1:7300";

/// `[http]`: the door for AI clients that do not start Lockhouse themselves.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Http {
    /// Where `lockhouse serve --http` listens.
    pub(super) listen: Option<Vec<Address>>,
    pub(super) auth: Auth,
    /// The file that `lockhouse token` writes.
    pub(super) tokens: Option<PathBuf>,
    /// Who comes in with `auth = "peer"`.
    pub(super) users: Option<Vec<NamedUser>>,
    pub(super) oauth: Option<Oauth>,
    /// Names by which clients ask for this server, besides its addresses.
    pub(super) hosts: Vec<HostName>,
    /// Web pages that may come in.
    pub(super) origins: Vec<PageOrigin>,
    /// Whether what listens here is reached through a proxy that speaks TLS.
    pub(super) behind_proxy: bool,
    /// Whose word counts about where a request is from.
    pub(super) trusted_proxies: Vec<TrustedProxy>,
    pub(super) tls: Option<HttpTls>,
    pub(super) limits: Limits,
}

/// `[http.tls]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpTls {
    certificate: String,
    key: String,
}

/// `[http.limits]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    connections: u32,
    connections_per_peer: u32,
    unauthenticated_percent: u32,
    unauthenticated_requests_per_peer_per_second: u32,
    tls_handshakes_per_peer_per_second: u32,
    tls_seconds: f64,
    head_seconds: f64,
    body_seconds: f64,
    keep_alive_seconds: f64,
    stall_seconds: f64,
    headers: u32,
    head_kib: u32,
    streams: u32,
    /// None: as much as the largest program needs.
    body_kib: Option<u32>,
    body_values: u32,
    /// None: 16, or as much as four bodies need, so that one client's share is no more than a quarter.
    bodies_mib: Option<u32>,
    mcp_sessions: u32,
    mcp_sessions_per_client: u32,
    mcp_session_seconds: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_024,
            connections_per_peer: 256,
            unauthenticated_percent: 50,
            unauthenticated_requests_per_peer_per_second: 50,
            tls_handshakes_per_peer_per_second: 50,
            tls_seconds: 10.0,
            head_seconds: 10.0,
            body_seconds: 30.0,
            keep_alive_seconds: 75.0,
            stall_seconds: 30.0,
            headers: 64,
            head_kib: 16,
            streams: 64,
            body_kib: None,
            body_values: 10_000,
            bodies_mib: None,
            mcp_sessions: 1_024,
            mcp_sessions_per_client: 64,
            mcp_session_seconds: 1_800.0,
        }
    }
}

impl Limits {
    /// Of a body. One byte of code takes at most six in JSON (`\u0000`); the rest is for what is around it and for calls of
    /// tools that are exposed directly.
    fn body_kib(&self, code_kib: u32) -> u32 {
        self.body_kib.unwrap_or_else(|| code_kib.saturating_mul(6).saturating_add(512))
    }

    fn bodies_mib(&self, code_kib: u32) -> u32 {
        self.bodies_mib.unwrap_or_else(|| self.body_kib(code_kib).saturating_mul(4).div_ceil(1_024).max(16))
    }

    /// Whether each key can work, and what it can be. `code_kib` is that of `[limits]`.
    pub(super) fn checks(&self, code_kib: u32) -> [(bool, &'static str, &'static str); 20] {
        let (body_kib, bodies_mib) = (self.body_kib(code_kib), self.bodies_mib(code_kib));
        let seconds = |of: f64| (0.01..=3_600.0).contains(&of);
        [
            ((1..=65_536).contains(&self.connections), "http.limits.connections", "1 to 65536"),
            (
                (1..=65_536).contains(&self.connections_per_peer),
                "http.limits.connections_per_peer",
                "1 to 65536",
            ),
            (
                (1..=100).contains(&self.unauthenticated_percent),
                "http.limits.unauthenticated_percent",
                "1 to 100",
            ),
            (
                (1..=65_536).contains(&self.unauthenticated_requests_per_peer_per_second),
                "http.limits.unauthenticated_requests_per_peer_per_second",
                "1 to 65536",
            ),
            (
                (1..=65_536).contains(&self.tls_handshakes_per_peer_per_second),
                "http.limits.tls_handshakes_per_peer_per_second",
                "1 to 65536",
            ),
            (seconds(self.tls_seconds), "http.limits.tls_seconds", "0.01 to 3600"),
            (seconds(self.head_seconds), "http.limits.head_seconds", "0.01 to 3600"),
            (seconds(self.body_seconds), "http.limits.body_seconds", "0.01 to 3600"),
            (seconds(self.keep_alive_seconds), "http.limits.keep_alive_seconds", "0.01 to 3600"),
            (seconds(self.stall_seconds), "http.limits.stall_seconds", "0.01 to 3600"),
            ((16..=1_024).contains(&self.headers), "http.limits.headers", "16 to 1024"),
            ((8..=1_024).contains(&self.head_kib), "http.limits.head_kib", "8 to 1024"),
            ((1..=1_024).contains(&self.streams), "http.limits.streams", "1 to 1024"),
            (
                self.body_kib.is_none_or(|kib| (64..=65_536).contains(&kib)),
                "http.limits.body_kib",
                "64 to 65536",
            ),
            ((1_000..=1_000_000).contains(&self.body_values), "http.limits.body_values", "1000 to 1000000"),
            ((1..=65_536).contains(&bodies_mib), "http.limits.bodies_mib", "1 to 65536"),
            (
                u64::from(bodies_mib) * 1_024 >= u64::from(body_kib),
                "http.limits.bodies_mib",
                "at least body_kib: one body must have room",
            ),
            ((1..=65_536).contains(&self.mcp_sessions), "http.limits.mcp_sessions", "1 to 65536"),
            (
                (1..=65_536).contains(&self.mcp_sessions_per_client),
                "http.limits.mcp_sessions_per_client",
                "1 to 65536",
            ),
            (
                (0.01..=604_800.0).contains(&self.mcp_session_seconds),
                "http.limits.mcp_session_seconds",
                "0.01 to 604800",
            ),
        ]
    }

    fn settings(&self, code_kib: u32) -> HttpLimits {
        let connections = self.connections as usize;
        HttpLimits {
            connections,
            connections_per_peer: self.connections_per_peer as usize,
            unauthenticated_connections: (connections * self.unauthenticated_percent as usize / 100).max(1),
            unauthenticated_requests_per_peer_per_second: self.unauthenticated_requests_per_peer_per_second,
            tls_handshakes_per_peer_per_second: self.tls_handshakes_per_peer_per_second,
            tls: Duration::from_secs_f64(self.tls_seconds),
            head: Duration::from_secs_f64(self.head_seconds),
            body: Duration::from_secs_f64(self.body_seconds),
            keep_alive: Duration::from_secs_f64(self.keep_alive_seconds),
            stall: Duration::from_secs_f64(self.stall_seconds),
            headers: self.headers as usize,
            head_bytes: self.head_kib as usize * 1_024,
            streams: self.streams,
            body_bytes: self.body_kib(code_kib) as usize * 1_024,
            body_values: self.body_values as usize,
            bodies_bytes: self.bodies_mib(code_kib) as usize * 1_024 * 1_024,
            sessions: self.mcp_sessions as usize,
            sessions_per_client: self.mcp_sessions_per_client as usize,
            session_idle: Duration::from_secs_f64(self.mcp_session_seconds),
        }
    }
}

impl Http {
    /// Paths are taken from where the configuration is. `code_kib` is that of `[limits]`.
    pub(super) fn settings(
        &self,
        access: AccessSettings,
        code_kib: u32,
        configuration: &Path,
        surroundings: &Surroundings,
    ) -> HttpSettings {
        let file = |written: &str| file(written, configuration, surroundings);
        let tls = self.tls.as_ref();
        HttpSettings {
            listen: self.listen.clone().unwrap_or_else(|| LISTEN.parse().into_iter().collect()),
            access,
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
            behind_proxy: self.behind_proxy,
            trusted_proxies: self.trusted_proxies.clone(),
            tls: tls.map(|tls| TlsFiles { certificate: file(&tls.certificate), key: file(&tls.key) }),
            limits: self.limits.settings(code_kib),
        }
    }
}

/// A path, or a credential of systemd: `${cred:NAME}`.
fn file(written: &str, configuration: &Path, surroundings: &Surroundings) -> PathBuf {
    let credential = written.strip_prefix("${cred:").and_then(|rest| rest.strip_suffix('}'));
    let credentials = surroundings.environment.get("CREDENTIALS_DIRECTORY");
    match credential.filter(|name| !name.contains('/')).zip(credentials) {
        Some((name, directory)) => Path::new(directory).join(name),
        None => configuration.parent().unwrap_or(Path::new("")).join(surroundings.expand_home(written)),
    }
}

/// `[http.oauth]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Oauth {
    pub(super) issuer: String,
    pub(super) audience: String,
    pub(super) resource: Option<String>,
    /// A URL or a path; found by what the issuer says of itself otherwise.
    pub(super) jwks: Option<String>,
    pub(super) scopes: BTreeMap<String, Vec<String>>,
    pub(super) algorithms: Option<Vec<String>>,
    #[serde(default = "leeway_seconds")]
    pub(super) leeway_seconds: u32,
    #[serde(default = "refetch_seconds")]
    pub(super) refetch_seconds: u32,
}

fn leeway_seconds() -> u32 {
    60
}

fn refetch_seconds() -> u32 {
    30
}
