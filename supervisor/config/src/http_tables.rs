//! The configuration table `[http]` and its subtables: each key is declared once. Also builds the HTTP settings from
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_access::{AuthMethod, AuthMode, CertificateName, ConfiguredUser, DpopUse};
use lockhouse_base::http_checks::host_check::{HostName, PageOrigin};
use lockhouse_front::http::{
    HttpLimits, HttpSettings, ListenAddress, TlsFiles, TlsSettings, TlsVersion, TrustedProxy,
};
use lockhouse_front::{AnswerForm, AnswerSettings};
use lockhouse_policies::Rate;

use super::keys::table;
use super::placeholders::Environment;

/// Default address of `lockhouse serve --http`.
const LISTEN: &str = "127.0.0.1:7300";

table! {
    /// AI clients that connect over HTTP instead of starting Lockhouse: see Serving over HTTP below
    pub(super) struct Http = "http" {
        /// addresses that `lockhouse serve --http` listens on: IP:PORT, or unix:/PATH
        listen: Option<Vec<ListenAddress>> = None, like "[\"127.0.0.1:7300\"]";
        /// whether each address has a process of its own that speaks HTTP; `[http.limits]` then holds for each address alone
        front_per_address: bool = false;
        /// how clients authenticate: see access.md; "token", "oauth", "certificate", "peer", a list of these, or "none"
        auth: AuthMode = AuthMode::default(), like "\"token\"";
        /// file with client tokens, written by `lockhouse token`
        tokens: Option<PathBuf> = None, else "below $STATE_DIRECTORY, else ~/.local/state/lockhouse",
            like "\"/etc/lockhouse/client-tokens.json\"";
        /// with auth "peer": Unix users who are allowed, by name or id
        users: Option<Vec<ConfiguredUser>> = None, else "the user of Lockhouse itself, and root",
            like "[\"ada\", 1001]";
        /// further host names that clients may use for this server, NAME or NAME:PORT; its own addresses are always
        /// valid
        hosts: Vec<HostName> = Vec::new(), like "[\"mcp.example.com\"]";
        /// origins of web pages whose requests are accepted, SCHEME://NAME or SCHEME://NAME:PORT
        origins: Vec<PageOrigin> = Vec::new(), else "none", like "[\"https://app.example.com\"]";
        /// whether a proxy terminates TLS in front of addresses that other hosts can reach
        behind_proxy: bool = false;
        /// proxies whose Forwarded or X-Forwarded-For header is trusted for the address of the client
        trusted_proxies: Vec<TrustedProxy> = Vec::new(), else "none",
            like "[\"10.0.0.5\", \"10.1.0.0/16\", \"unix\"]";
        /// oldest version of TLS that clients may use. With "1.2", the process with the private key signs what the process
        /// that speaks HTTP sends it; with "1.3" only handshakes
        tls_minimum: TlsVersion = TlsVersion::default();
        /// form of answers by client, under its name in the policy: "text" for models, "value" for clients that run
        /// answers through code of their own, "labelled" for Gemini CLI, or "structured"; other clients get the form of `lockhouse serve --answer`
        answers: BTreeMap<String, AnswerForm> = BTreeMap::new(), else "none", like "{ ada = \"value\" }";
        /// longest time in seconds that a request waits for its run, by client: for clients whose own time limit is shorter
        /// than `wait_seconds` of `[runs]`
        waits: BTreeMap<String, f64> = BTreeMap::new(), within 1.0..=240.0, else "none", like "{ ada = 25 }";
        table tls: Option<HttpTls>;
        table client_certificates: ClientCertificatesTable;
        table oauth: Option<Oauth>;
        table limits: HttpLimitsTable;
    }
}

table! {
    /// TLS certificate and key as PEM files; paths are relative to this file, `${cred:NAME}` is a credential of systemd
    pub(super) struct HttpTls = "http.tls" {
        /// certificate chain: this server's certificate first, then the intermediate certificates
        certificate: String = String::new(), like "\"server.pem\"", required = true;
        /// private key; other users of the host must not be able to read it
        key: String = String::new(), like "\"server.key\"", required = true;
    }
}

table! {
    /// certificates of clients, which the handshake of TLS then asks for
    pub(super) struct ClientCertificatesTable = "http.client_certificates" {
        /// with auth "certificate": certificates of the authorities that issue certificates to clients, a PEM file
        authorities: Option<String> = None, else "none", like "\"clients-ca.pem\"";
        /// lists of revoked certificates, one of each authority, a PEM file; a list that has expired refuses all certificates of its authority
        revoked: Option<String> = None, else "none", like "\"clients.crl\"";
        /// which alternative name of a certificate names the client: "email", "dns" or "uri"
        name: CertificateName = CertificateName::default();
        /// whether OAuth tokens that are bound to a certificate are accepted, on connections with this certificate
        bound_tokens: bool = false;
        /// whether `trusted_proxies` pass on the certificates of their clients in the header Client-Cert, for bound tokens. They must replace
        /// what a client has sent in this header
        from_proxies: bool = false;
    }
}

table! {
    /// OAuth access tokens that are accepted, with auth "oauth"
    pub(super) struct Oauth = "http.oauth" {
        /// issuer whose tokens are accepted
        issuer: String = String::new(), like "\"https://id.example.com/realms/team\"", required = true;
        /// audience that tokens must contain
        audience: String = String::new(), like "\"https://lockhouse.example.com/mcp\"", required = true;
        /// URL under which clients know this server
        resource: Option<String> = None, else "audience", like "\"https://lockhouse.example.com/mcp\"";
        /// signing keys of the issuer, a URL or a file
        jwks: Option<String> = None, else "as announced by the issuer", like "\"https://id.example.com/keys\"";
        /// accepted signature algorithms
        algorithms: Option<Vec<String>> = None, else "RS256, RS512, PS256, ES256, ES384, EdDSA",
            like "[\"RS256\", \"ES256\"]";
        /// whether tokens must be bound to a key (DPoP) or a certificate of their client: "accepted", or "required"
        dpop: DpopUse = DpopUse::default();
        /// tolerance for differences between clocks
        leeway_seconds: u32 = 60, within 0..=600;
        /// minimum time between two downloads of the signing keys
        refetch_seconds: u32 = 30, within 1..=3_600;
        /// tools that each scope permits
        scopes: BTreeMap<String, Vec<String>> = BTreeMap::new(),
            like "{ \"lockhouse\" = [\"*\"], \"lockhouse:read\" = [\"github.list_*\"] }", required = true;
    }
}

table! {
    /// limits of the HTTP server, for all addresses together
    pub(super) struct HttpLimitsTable = "http.limits" {
        /// concurrent connections
        connections: u32 = 1_024, within 1..=65_536;
        /// concurrent connections of one peer: an IPv4 address, an IPv6 network (/64), or a user of a Unix domain
        /// socket
        connections_per_peer: u32 = 256, within 1..=65_536;
        /// share of `connections` that may be unauthenticated; the rest is reserved for authenticated clients
        unauthenticated_percent: u32 = 50, within 1..=100;
        /// unauthenticated requests that are answered at once; bursts of four times as many are allowed after four seconds without
        /// any. Answers to further ones are delayed by up to half a second, one after the other on each connection.
        /// Does not apply to connections of trusted proxies
        unauthenticated_requests_per_peer_per_second: u32 = 50, within 1..=65_536;
        /// TLS handshakes without an authenticated request; bursts of four times as many are allowed. Further ones
        /// wait for up to half a second, or their connections are closed
        tls_handshakes_per_peer_per_second: u32 = 50, within 1..=65_536;
        /// time limit for the TLS handshake
        tls_seconds: f64 = 10.0, within 0.01..=3_600.0;
        /// time limit for the head of a request, from the start of the connection, or from the first byte of a later
        /// request
        head_seconds: f64 = 10.0, within 0.01..=3_600.0;
        /// time limit for the body of a request; after it, the answer is 408. A body above 64 KiB may wait for as long
        /// again for room in `bodies_mib`; after that, the answer is 503 with `Retry-After`
        body_seconds: f64 = 30.0, within 0.01..=3_600.0;
        /// time without a request after which a connection is closed
        keep_alive_seconds: f64 = 75.0, within 0.01..=3_600.0;
        /// time limit without progress while a client receives an answer
        stall_seconds: f64 = 30.0, within 0.01..=3_600.0;
        /// number of header lines of a request; a request with more is answered with 431
        headers: u32 = 64, within 16..=1_024;
        /// size of the head of a request; a larger one is answered with 431
        head_kib: u32 = 16, within 8..=1_024;
        /// concurrent requests on one HTTP/2 connection. At most 2 of them wait for room for their bodies; further
        /// ones are answered with 503. Unread data is limited to 32 KiB of a request and 128 KiB of a connection: 128
        /// MiB with 1024 `connections`
        streams: u32 = 64, within 1..=1_024;
        /// size of a request body; a larger one is answered with 413. The default has room for the largest program, of
        /// which each byte takes up to six in JSON
        body_kib: Option<u32> = None, within 64..=65_536, else "6 × `code_kib` of `[limits]` + 512: 2048",
            like "2048";
        /// number of JSON values in a request body; a body with more is answered with 413. This also limits the
        /// arguments of tools that are exposed directly. Parsing 10,000 values takes about 2 ms
        body_values: u32 = 10_000, within 1_000..=1_000_000;
        /// total size of all bodies above 64 KiB that are received and parsed at one time; further bodies wait. One
        /// client may use a quarter of it. The value is at least `body_kib`
        bodies_mib: Option<u32> = None, within 1..=65_536, else "16, or four bodies", like "16";
        /// concurrent MCP sessions of all clients
        mcp_sessions: u32 = 1_024, within 1..=65_536;
        /// concurrent MCP sessions of one client
        mcp_sessions_per_client: u32 = 64, within 1..=65_536;
        /// time without a request or a stream after which an MCP session expires
        mcp_session_seconds: f64 = 1_800.0, within 0.01..=604_800.0;
        /// time after which a new process takes the place of the one that speaks HTTP, since an attacker may hold it. The
        /// old one finishes its requests
        front_seconds: u32 = 86_400, within 1..=31_536_000;
        /// number of requests to the engine after which it does
        front_requests: u32 = 1_000_000, within 1..;
    }
}

impl HttpLimitsTable {
    /// Returns the maximum size of a request body in KiB: the configured one, or else six times `code_kib`, since one
    /// byte of code may take six bytes in JSON (`\u0000`), plus 512 KiB for the other parts of the message and for
    /// calls of directly exposed tools.
    fn body_kib(&self, code_kib: u32) -> u32 {
        self.body_kib.unwrap_or_else(|| code_kib.saturating_mul(6).saturating_add(512))
    }

    fn bodies_mib(&self, code_kib: u32) -> u32 {
        self.bodies_mib.unwrap_or_else(|| self.body_kib(code_kib).saturating_mul(4).div_ceil(1_024).max(16))
    }

    /// Whether the room for all request bodies (`bodies_mib`) is enough for one body of the maximum size (`body_kib`).
    /// `code_kib` is the maximum size of code in `[limits]`, on which the defaults of both depend.
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
            front_lifetime: Duration::from_secs(self.front_seconds.into()),
            front_requests: self.front_requests.into(),
            sessions: self.mcp_sessions as usize,
            sessions_per_client: self.mcp_sessions_per_client as usize,
            session_idle: Duration::from_secs_f64(self.mcp_session_seconds),
        }
    }
}

impl Http {
    /// Builds the settings of the HTTP server. Relative paths are relative to the configuration file. `requests` limits the
    /// requests of one client. `code_kib` is the maximum size of code in `[limits]`.
    pub(super) fn settings(
        &self,
        requests: Rate,
        code_kib: u32,
        configuration: &Path,
        environment: &Environment,
    ) -> HttpSettings {
        let file = |written: &str| file(written, configuration, environment);
        let tls = self.tls.as_ref();
        HttpSettings {
            listen: self.listen.clone().unwrap_or_else(|| LISTEN.parse().into_iter().collect()),
            front_per_address: self.front_per_address,
            requires_authentication: !self.auth.is_none(),
            accepts_users: self.auth.has(AuthMethod::Peer),
            requests,
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
            behind_proxy: self.behind_proxy,
            trusted_proxies: self.trusted_proxies.clone(),
            asks_for_certificates: self.auth.has(AuthMethod::Certificate)
                || self.client_certificates.bound_tokens,
            proxies_pass_certificates: self.client_certificates.from_proxies,
            tls: tls.map(|tls| TlsSettings {
                files: TlsFiles { certificate: file(&tls.certificate), key: file(&tls.key) },
                minimum: self.tls_minimum,
            }),
            limits: self.limits.settings(code_kib),
            // From `[users]`.
            login_redirect: None,
            answers: AnswerSettings {
                forms: self.answers.clone(),
                waits: self
                    .waits
                    .iter()
                    .map(|(name, seconds)| (name.clone(), Duration::from_secs_f64(*seconds)))
                    .collect(),
                ..AnswerSettings::default()
            },
        }
    }
}

/// Returns the path of a file that the configuration names: a path, or a systemd credential written as `${cred:NAME}`.
pub(super) fn file(written: &str, configuration: &Path, environment: &Environment) -> PathBuf {
    let credential = written.strip_prefix("${cred:").and_then(|rest| rest.strip_suffix('}'));
    let credentials = environment.variables.get("CREDENTIALS_DIRECTORY");
    match credential.filter(|name| !name.contains('/')).zip(credentials) {
        Some((name, directory)) => Path::new(directory).join(name),
        None => configuration.parent().unwrap_or(Path::new("")).join(environment.expand_home(written)),
    }
}
