//! The start of a server, until its tools are listed: in the newest era, and where it cannot stand that, in an older one.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_base::secrets::Secrets;
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, Peer};
use rmcp::transport::Transport;
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::auth::Authority;
use super::broken::{Broken, Reason};
use super::callers::Callers;
use super::definition::{HttpEndpoint, Reach, ServerCommand, ServerLimits};
use super::fault::Fault;
use super::hold::Signals;
use super::host::Host;
use super::http;
use super::link::{Ground, Link, Service};
use super::listing::list_tools;
use super::log::ServerLog;
use super::probe::{Probed, probe};
use super::process::ServerProcess;
use super::request::CANCEL_TIMEOUT;
use super::transport::{LineTransport, Lines, RawResults};

/// Some servers neither answer the question nor end. One that takes longer than this to load is taken for one of them.
const PROBE_MAX: Duration = Duration::from_secs(15);

/// Why there is no connection.
pub(super) struct Refusal {
    /// In words of ours alone: code and the model read them.
    pub(super) reason: String,
    /// What the server itself had to say, without its secrets: for a person.
    pub(super) last_words: String,
    /// Whether the older handshake may fare better.
    may_be_older: bool,
    /// Whether the server sent more than a server may.
    pub(super) is_excess: bool,
}

impl Refusal {
    /// What the connection itself was given up for explains more than what followed from it.
    fn or(self, broken: &Broken) -> Self {
        match broken.reason().filter(|reason| reason.is_excess) {
            Some(Reason { words, is_excess }) => {
                Self { reason: words, may_be_older: false, is_excess, ..self }
            }
            None => self,
        }
    }

    fn told(reason: String) -> Self {
        Self { reason, last_words: String::new(), may_be_older: false, is_excess: false }
    }
}

/// Starts one server, as often as it must be started.
pub(super) struct Starter {
    pub(super) name: ServerName,
    pub(super) reach: Reach,
    pub(super) limits: ServerLimits,
    pub(super) secrets: Secrets,
    /// Where its standard error is kept.
    pub(super) log: Option<PathBuf>,
    /// Where it is noted how far a start came.
    pub(super) signals: Arc<Signals>,
    /// Whether it understands only the older handshake, as far as is known.
    pub(super) legacy: bool,
    /// Whether it was started anew, the last time, to try that one.
    pub(super) fell_back: bool,
}

/// One attempt to connect.
struct Attempt<'a> {
    server: &'a Starter,
    begun: Instant,
    /// Without asking first.
    older: bool,
    deadline: Instant,
}

impl Starter {
    /// Connects to the server and lists its tools.
    pub(super) async fn start(&mut self) -> Result<(Link, Catalogue), Refusal> {
        let begun = Instant::now();
        let deadline = begun + self.limits.start_timeout;
        self.fell_back = false;
        self.signals.note(|status| {
            status.begun = Some(begun.into_std());
            (status.era, status.spawned, status.handshake) = (None, None, None);
        });
        if !self.legacy {
            match (Attempt { server: self, begun, older: false, deadline }).reach().await {
                // Some servers crash on the probe, or refuse the older handshake after it: a new process does not
                // know that it was asked.
                Err(Refusal { may_be_older: true, .. }) => {}
                done => return done,
            }
        }
        let started = Attempt { server: self, begun, older: true, deadline }.reach().await;
        // What failed this time may be the process, not the era.
        (self.fell_back, self.legacy) = (started.is_ok(), started.is_ok());
        started
    }

    /// The tools of a server that is connected. An error is in words of ours.
    pub(super) async fn list(&self, peer: &Peer<RoleClient>) -> Result<Catalogue, String> {
        let listed = list_tools(&self.name, peer, self.limits.start_timeout).await;
        listed.map_err(|fault| fault.reason(None))
    }
}

/// Over HTTP rmcp asks by itself: a server that answers there has started.
fn asking() -> ClientLifecycleMode {
    let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
    ClientLifecycleMode::Auto { preferred_versions: newest(), legacy_version }
}

fn newest() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V_2026_07_28]
}

impl Attempt<'_> {
    async fn reach(self) -> Result<(Link, Catalogue), Refusal> {
        match &self.server.reach {
            Reach::Stdio(command) => self.over_stdio(command).await,
            Reach::Http(endpoint) => self.over_http(endpoint).await,
        }
    }

    async fn over_stdio(self, command: &ServerCommand) -> Result<(Link, Catalogue), Refusal> {
        let mut process = ServerProcess::start(command)
            .map_err(|error| Refusal::told(format!("cannot start {:?}: {error}", command.program)))?;
        self.server.signals.note(|status| status.spawned = Some(self.begun.elapsed()));
        let Some((stdin, stdout, stderr)) = process.streams() else {
            return Err(Refusal::told("its standard streams are missing".into()));
        };
        let last_lines = self.follow(stderr);
        let raw = RawResults::default();
        // A call that could not be written while it was waited for, nor its cancellation after it, never will be.
        let lines = Lines {
            bytes_max: self.server.limits.message_bytes_max,
            write_timeout: self.server.limits.call_timeout + CANCEL_TIMEOUT,
        };
        let broken = Broken::default();
        let mut transport = LineTransport::new(stdout, stdin, lines, raw.clone(), broken.clone());
        let changed = Arc::new(Notify::new());
        let conversed = match self.era(&mut transport).await {
            Ok(mode) => self.converse(transport, mode, raw, &changed).await,
            Err(fault) => {
                drop(transport);
                Err(Some(fault))
            }
        };
        let (reason, said, may_be_older) = match conversed {
            Ok((service, catalogue)) => {
                let ground = Ground::Process { process, broken, last_lines };
                return Ok((Link::new(service, ground, changed), catalogue));
            }
            Err(Some(fault)) => (fault.reason(process.end().await.1), fault.said(&self.server.secrets), true),
            Err(None) => {
                drop(process);
                (late(self.server.limits.start_timeout), String::new(), false)
            }
        };
        let last_words = format!("{said}{}", last_lines.told().await);
        let refusal = Refusal { reason, last_words, may_be_older, is_excess: false };
        Err(refusal.or(&broken))
    }

    /// How to begin: as the server says that it can.
    async fn era(&self, transport: &mut LineTransport) -> Result<ClientLifecycleMode, Fault> {
        if self.older {
            return Ok(ClientLifecycleMode::Initialize);
        }
        match probe(transport, PROBE_MAX.min(self.server.limits.start_timeout / 2)).await {
            Probed::Newest => Ok(ClientLifecycleMode::Discover { preferred_versions: newest() }),
            Probed::Older => Ok(ClientLifecycleMode::Initialize),
            Probed::Closed => Err(Fault::Closed),
            Probed::Silent => Err(Fault::Strange("it did not answer server/discover".into())),
        }
    }

    /// Keeps what the process writes to its standard error, without its secrets.
    fn follow(&self, stderr: ChildStderr) -> LastLines {
        let last_lines = LastLines::default();
        let secrets = self.server.secrets.clone();
        let mut log = self.server.log.as_deref().map(ServerLog::at);
        last_lines.follow_edited(self.server.name.to_string(), stderr, move |line| {
            let line: String = secrets.redact(line).chars().filter(|c| !c.is_control()).collect();
            if let Some(log) = log.as_mut().filter(|_| !line.trim().is_empty()) {
                log.line(&line);
            }
            line
        });
        last_lines
    }

    async fn over_http(self, endpoint: &HttpEndpoint) -> Result<(Link, Catalogue), Refusal> {
        let authority = Authority::new(&self.server.name, endpoint, self.server.secrets.clone());
        let transport =
            authority.and_then(|authority| http::transport(endpoint, &self.server.limits, authority));
        let (transport, broken) = match transport {
            Ok(transport) => transport,
            Err(fault) => return Err(Refusal::told(fault.reason)),
        };
        let changed = Arc::new(Notify::new());
        // Over HTTP each answer belongs to a request, and it is the request that says whether it passes on raw.
        let mode = if self.older { ClientLifecycleMode::Initialize } else { asking() };
        match self.converse(transport, mode, RawResults::default(), &changed).await {
            Ok((service, catalogue)) => Ok((Link::new(service, Ground::Http(broken), changed), catalogue)),
            Err(Some(fault)) => Err(Refusal {
                last_words: fault.said(&self.server.secrets),
                may_be_older: fault.may_be_older(),
                ..Refusal::told(fault.reason(None))
            }
            .or(&broken)),
            Err(None) => Err(Refusal::told(late(self.server.limits.start_timeout)).or(&broken)),
        }
    }

    /// The handshake and the listing of tools; no fault means that it took too long.
    async fn converse<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        mode: ClientLifecycleMode,
        raw: RawResults,
        changed: &Arc<Notify>,
    ) -> Result<(Service, Catalogue), Option<Fault>> {
        let handshake = async {
            let signals = self.server.signals.clone();
            let host = Host::new(self.server.name.clone(), Callers::default(), changed.clone(), signals);
            let service = host.serve_with_lifecycle(transport, mode).await?;
            let era = service.peer_info().map(|info| info.protocol_version.to_string());
            let took = self.begun.elapsed();
            self.server.signals.note(|status| (status.era, status.handshake) = (era, Some(took)));
            service.set_response_cache_config(ClientCacheConfig::disabled()).await;
            raw.store(true, Ordering::Release);
            let catalogue =
                list_tools(&self.server.name, service.peer(), self.server.limits.start_timeout).await?;
            Ok::<_, Fault>((service, catalogue))
        };
        match timeout_at(self.deadline, handshake).await {
            Ok(done) => done.map_err(Some),
            Err(_) => Err(None),
        }
    }
}

fn late(limit: Duration) -> String {
    format!("it did not finish its start within {} s (start_timeout_seconds)", limit.as_secs_f32())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Starter {
        let seconds = Duration::from_secs;
        let command = ServerCommand {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            environment: [("TOKEN".to_owned(), "SEKRET-CANARY".to_owned())].into(),
            ..ServerCommand::default()
        };
        let (start_timeout, call_timeout) = (seconds(5), seconds(5));
        let limits =
            ServerLimits { start_timeout, call_timeout, message_bytes_max: 1024, ..ServerLimits::default() };
        let secrets = Secrets::of(&command.environment);
        let name = ServerName::new("h").expect("a name");
        let signals = Arc::new(Signals::new(limits, None));
        Starter {
            name,
            reach: Reach::Stdio(command),
            limits,
            secrets,
            log: None,
            signals,
            legacy: false,
            fell_back: false,
        }
    }

    #[tokio::test]
    async fn why_a_server_is_not_available_is_told_without_its_own_words() {
        for (script, words) in [
            ("echo bad token: $TOKEN >&2; exit 3", "it ended before it was ready (exit status: 3)"),
            (
                r#"n=0; while read -r line; do
                    printf '{"jsonrpc":"2.0","id":%d,"error":{"code":-5,"message":"%s"}}\n' $n $TOKEN; n=$((n+1))
                done"#,
                "it answered with an error while it started (JSON-RPC code -5)",
            ),
        ] {
            let Err(refusal) = shell(script).start().await else {
                panic!("no refusal");
            };
            let (reason, last_words) = (refusal.reason, refusal.last_words);
            assert!(reason.starts_with(words) && !reason.contains("TOKEN"), "{reason}");
            assert!(
                last_words.contains("[redacted TOKEN]") && !last_words.contains("CANARY"),
                "{last_words}"
            );
        }
    }
}
