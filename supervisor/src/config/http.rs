//! `[http]` and its tables, each key declared once, and the settings that they make.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_front::access::{AccessSettings, Auth, NamedUser};
use lockhouse_front::http::{
    Address, HostName, HttpLimits, HttpSettings, PageOrigin, TlsFiles, TrustedProxy,
};

use super::keys::table;
use super::references::Surroundings;

/// Where `lockhouse serve --http` listens if nothing else is said.
const LISTEN: &str = "127.0.0.1:7300";

table! {
    /// AI clients that come to Lockhouse, and do not start it: see Serving over HTTP below
    pub(super) struct Http = "http" {
        /// where `lockhouse serve --http` listens: IP:PORT, or unix:/PATH
        listen: Option<Vec<Address>> = None, like "[\"127.0.0.1:7300\"]";
        /// who comes in: access.md; or "oauth", "peer", a list of these, or "none"
        auth: Auth = Auth::default(), like "\"token\"";
        /// the file that `lockhouse token` writes
        tokens: Option<PathBuf> = None, else "below $STATE_DIRECTORY, else ~/.local/state/lockhouse",
            like "\"/etc/lockhouse/client-tokens.json\"";
        /// with "peer"
        users: Option<Vec<NamedUser>> = None, else "the user of Lockhouse itself, and root",
            like "[\"ada\", 1001]";
        /// names by which clients ask for it, NAME or NAME:PORT, besides its own addresses
        hosts: Vec<HostName> = Vec::new(), like "[\"mcp.example.com\"]";
        /// web pages whose requests are heard, SCHEME://NAME or SCHEME://NAME:PORT
        origins: Vec<PageOrigin> = Vec::new(), else "none", like "[\"https://app.example.com\"]";
        /// whether a proxy that speaks TLS stands before an address that other hosts reach
        behind_proxy: bool = false;
        /// whose Forwarded or X-Forwarded-For says whose a request is
        trusted_proxies: Vec<TrustedProxy> = Vec::new(), else "nobody's",
            like "[\"10.0.0.5\", \"10.1.0.0/16\", \"unix\"]";
        table tls: Option<HttpTls>;
        table oauth: Option<Oauth>;
        table limits: Limits;
    }
}

table! {
    /// PEM files; paths are taken from where this file is, `${cred:NAME}` is a credential of systemd
    pub(super) struct HttpTls = "http.tls" {
        /// this server's own first, then those up to the authority
        certificate: String = String::new(), like "\"door.pem\"", required = true;
        /// other users of the host must not be able to read it
        key: String = String::new(), like "\"door.key\"", required = true;
    }
}

table! {
    /// with "oauth"
    pub(super) struct Oauth = "http.oauth" {
        /// whose tokens count
        issuer: String = String::new(), like "\"https://id.example.com/realms/team\"", required = true;
        /// for whom they must be
        audience: String = String::new(), like "\"https://lockhouse.example.com/mcp\"", required = true;
        /// under which URL clients know this server
        resource: Option<String> = None, else "audience", like "\"https://lockhouse.example.com/mcp\"";
        /// where keys are, a URL or a file
        jwks: Option<String> = None, else "as the issuer says", like "\"https://id.example.com/keys\"";
        /// of signatures
        algorithms: Option<Vec<String>> = None, else "RS256, RS512, PS256, ES256, ES384, EdDSA",
            like "[\"RS256\", \"ES256\"]";
        /// by which clocks may differ
        leeway_seconds: u32 = 60, within 0..=600;
        /// between two looks for keys
        refetch_seconds: u32 = 30, within 1..=3_600;
        /// what each scope permits
        scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
            like "{ \"lockhouse\" = [\"*\"], \"lockhouse:read\" = [\"github.list_*\"] }", required = true;
    }
}

table! {
    /// of all addresses together
    pub(super) struct Limits = "http.limits" {
        /// at one time
        connections: u32 = 1_024, within 1..=65_536;
        /// of one IPv4 address, one IPv6 network (/64), or one user over a Unix domain socket
        connections_per_peer: u32 = 256, within 1..=65_536;
        /// of `connections`, that may be unauthenticated; the rest is for clients that have proven who they are
        unauthenticated_percent: u32 = 50, within 1..=100;
        /// that are answered without having been admitted; four times as many at once, after four seconds of rest. Answers to
        /// further ones leave up to half a second later, one after the other on each connection. Not on a trusted proxy's
        /// connections
        unauthenticated_requests_per_peer_per_second: u32 = 50, within 1..=65_536;
        /// after which no request was admitted; four times as many at once. Further ones wait for half a second at most, or
        /// are closed
        tls_handshakes_per_peer_per_second: u32 = 50, within 1..=65_536;
        /// for the handshake of TLS
        tls_seconds: f64 = 10.0, within 0.01..=3_600.0;
        /// for the head of a request, from when the connection is there, or from the first byte of a further one
        head_seconds: f64 = 10.0, within 0.01..=3_600.0;
        /// for the rest of it: then 408. A body above 64 KiB may wait as long for room in `bodies_mib`, which does not count:
        /// then 503 with `Retry-After`
        body_seconds: f64 = 30.0, within 0.01..=3_600.0;
        /// without a request, until the connection is closed
        keep_alive_seconds: f64 = 75.0, within 0.01..=3_600.0;
        /// without a byte of an answer being taken
        stall_seconds: f64 = 30.0, within 0.01..=3_600.0;
        /// header lines; then 431
        headers: u32 = 64, within 16..=1_024;
        /// of a head; then 431
        head_kib: u32 = 16, within 8..=1_024;
        /// requests at one time on one connection of HTTP/2. Of those that wait for room for their bodies there are at most 2;
        /// further ones are answered 503. What clients send before it is read is at most 32 KiB of a request and 128 KiB of a
        /// connection: 128 MiB with 1024 `connections`
        streams: u32 = 64, within 1..=1_024;
        /// of a body; then 413. The default has room for the largest program, of which each byte takes up to six in JSON
        body_kib: Option<u32> = None, within 64..=65_536, else "6 × `code_kib` of `[limits]` + 512: 2048",
            like "2048";
        /// JSON values of a body; then 413. A call of a tool that clients have directly may have so many in its arguments.
        /// Parsing 10,000 takes about 2 ms
        body_values: u32 = 10_000, within 1_000..=1_000_000;
        /// of all bodies above 64 KiB that are received and parsed at one time; further ones wait. One client gets a quarter of
        /// it. At least `body_kib`
        bodies_mib: Option<u32> = None, within 1..=65_536, else "16, or four bodies", like "16";
        /// of all clients
        mcp_sessions: u32 = 1_024, within 1..=65_536;
        /// of one client
        mcp_sessions_per_client: u32 = 64, within 1..=65_536;
        /// without a request or a stream, until a session ends
        mcp_session_seconds: f64 = 1_800.0, within 0.01..=604_800.0;
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

    /// Whether all bodies together have room for one.
    pub(super) fn has_room_for_a_body(&self, code_kib: u32) -> bool {
        u64::from(self.bodies_mib(code_kib)) * 1_024 >= u64::from(self.body_kib(code_kib))
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
