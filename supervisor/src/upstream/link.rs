//! One conversation with a server, from its start to its end.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, PingRequest, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, Peer, RunningService,
    RunningServiceCancellationToken, ServiceError,
};
use rmcp::transport::Transport;
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::auth::Authority;
use super::callers::Callers;
use super::definition::{HttpEndpoint, Reach, ServerCommand, ServerLimits};
use super::fault::Fault;
use super::hold::Signals;
use super::host::Host;
use super::http::{self, Broken};
use super::listing::list_tools;
use super::log::ServerLog;
use super::process::ServerProcess;
use super::request::{CANCEL_TIMEOUT, send};
use super::secrets::Secrets;
use super::status::Ending;
use super::transport::{LineTransport, Lines, RawResults};
use crate::catalog::Catalogue;
use crate::child_stderr::LastLines;

/// How long a connection over HTTP that is of no more use stays for those who wait for it.
const HTTP_TELL: Duration = Duration::from_millis(100);
/// How long a server over HTTP gets to hear that we leave.
const HTTP_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// rmcp takes a server for an older one that does not answer the probe in so long.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A conversation that has begun, and what it runs on.
pub(super) struct Link {
    peer: Peer<RoleClient>,
    callers: Callers,
    /// Ends with the conversation.
    conversation: JoinHandle<()>,
    ending: RunningServiceCancellationToken,
    ground: Ground,
    /// Told when the server says that its tools are others now.
    changed: Arc<Notify>,
    subscription: Option<JoinHandle<()>>,
}

type Service = RunningService<RoleClient, Host>;

/// What a conversation runs on.
#[allow(clippy::large_enum_variant)] // There is one for each connection.
enum Ground {
    Process {
        process: ServerProcess,
        /// Cancelled when the process does not take what is written to it.
        stalled: CancellationToken,
        last_lines: LastLines,
    },
    Http(Broken),
}

/// Why there is no connection.
pub(super) struct Refusal {
    /// In words of ours alone: code and the model read them.
    pub(super) reason: String,
    /// What the server itself had to say, without its secrets: for a person.
    pub(super) last_words: String,
    /// Whether the older handshake may fare better.
    may_be_older: bool,
}

impl Refusal {
    fn told(reason: String) -> Self {
        Self { reason, last_words: String::new(), may_be_older: false }
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
    mode: ClientLifecycleMode,
    deadline: Instant,
}

impl Starter {
    /// Connects to the server and lists its tools.
    pub(super) async fn start(&mut self) -> Result<(Link, Catalogue), Refusal> {
        let begun = Instant::now();
        let deadline = begun + self.limits.start_timeout;
        self.fell_back = false;
        self.signals.note(|status| (status.era, status.spawned, status.handshake) = (None, None, None));
        if !self.legacy {
            match (Attempt { server: self, begun, mode: probe(), deadline }).reach().await {
                // Some servers crash on the probe, or refuse the older handshake after it: a new process does not
                // know that it was asked.
                Err(Refusal { may_be_older: true, .. }) => {}
                done => return done,
            }
        }
        let probed = begun.elapsed();
        let mode = ClientLifecycleMode::Initialize;
        let started = Attempt { server: self, begun, mode, deadline }.reach().await;
        self.fell_back = started.is_ok();
        // What failed this time may be the process, not the era, and what took so long may only be slow.
        self.legacy = started.is_ok() && probed < PROBE_TIMEOUT;
        started
    }

    /// The tools of a server that is connected. An error is in words of ours.
    pub(super) async fn list(&self, peer: &Peer<RoleClient>) -> Result<Catalogue, String> {
        let listed = list_tools(&self.name, peer, self.limits.start_timeout).await;
        listed.map_err(|fault| fault.reason(None))
    }
}

fn probe() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
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
        let transport = LineTransport::new(stdout, stdin, lines, raw.clone());
        let stalled = transport.stalled();
        let changed = Arc::new(Notify::new());
        let (reason, said, may_be_older) = match self.converse(transport, raw, &changed).await {
            Ok((service, catalogue)) => {
                let ground = Ground::Process { process, stalled, last_lines };
                return Ok((Link::new(service, ground, changed), catalogue));
            }
            Err(Some(fault)) => (fault.reason(process.end().await.1), fault.said(&self.server.secrets), true),
            Err(None) => {
                drop(process);
                (late(self.server.limits.start_timeout), String::new(), false)
            }
        };
        let last_words = format!("{said}{}", last_lines.told().await);
        Err(Refusal { reason, last_words, may_be_older })
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
        match self.converse(transport, RawResults::default(), &changed).await {
            Ok((service, catalogue)) => Ok((Link::new(service, Ground::Http(broken), changed), catalogue)),
            Err(Some(fault)) => Err(Refusal {
                reason: fault.reason(None),
                last_words: fault.said(&self.server.secrets),
                may_be_older: fault.may_be_older(),
            }),
            Err(None) => Err(Refusal::told(late(self.server.limits.start_timeout))),
        }
    }

    /// The handshake and the listing of tools; no fault means that it took too long.
    async fn converse<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        raw: RawResults,
        changed: &Arc<Notify>,
    ) -> Result<(Service, Catalogue), Option<Fault>> {
        let handshake = async {
            let host = Host::new(self.server.name.clone(), Callers::default(), changed.clone());
            let service = host.serve_with_lifecycle(transport, self.mode.clone()).await?;
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

impl Link {
    fn new(service: Service, ground: Ground, changed: Arc<Notify>) -> Self {
        let (peer, ending) = (service.peer().clone(), service.cancellation_token());
        let subscription = subscribe(&peer, &changed);
        let callers = service.service().callers();
        let conversation = tokio::spawn(async move { drop(service.waiting().await) });
        Self { peer, callers, conversation, ending, ground, changed, subscription }
    }

    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.peer.clone()
    }

    pub(super) fn callers(&self) -> Callers {
        self.callers.clone()
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Whether the server answers anything at all. That it knows no `ping` is an answer, too.
    pub(super) async fn answers(peer: &Peer<RoleClient>, limit: Duration) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        match send(peer.clone(), ping, limit).await {
            Ok(_) | Err(ServiceError::McpError(_)) => true,
            Err(_) => false,
        }
    }

    /// Waits until the server's side ends it, or takes nothing any more: how, if more can be said than that.
    pub(super) async fn ended(&mut self) -> String {
        match &mut self.ground {
            Ground::Http(broken) => tokio::select! {
                _ = &mut self.conversation => "the conversation ended".into(),
                how = broken.told() => {
                    // So that the request that noticed it is told what it noticed.
                    let _ = timeout(HTTP_TELL, &mut self.conversation).await;
                    how
                }
            },
            Ground::Process { process, stalled, .. } => tokio::select! {
                status = process.wait() => status.map(told).unwrap_or_default(),
                _ = &mut self.conversation => String::new(),
                () = stalled.cancelled() => "it does not read what it is sent".into(),
            },
        }
    }

    /// Ends it, and the process with it. What that took, how the process ended if it did so by itself, and its last
    /// words.
    pub(super) async fn end(self) -> (Ending, Option<ExitStatus>, String) {
        // The service goes, and with it the process's input.
        self.ending.cancel();
        if let Some(subscription) = self.subscription {
            subscription.abort();
        }
        match self.ground {
            Ground::Http(_) => {
                // So that the server can forget the session.
                if !self.conversation.is_finished() {
                    let _ = timeout(HTTP_CLOSE_TIMEOUT, self.conversation).await;
                }
                (Ending::Left, None, String::new())
            }
            Ground::Process { process, last_lines, .. } => {
                let (ending, status) = process.end().await;
                (ending, status, last_lines.told().await)
            }
        }
    }
}

/// From 2026-07-28 on a server tells of its tools only whoever asked to be told.
fn subscribe(peer: &Peer<RoleClient>, changed: &Arc<Notify>) -> Option<JoinHandle<()>> {
    let info = peer.peer_info()?;
    let announces = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if !announces || info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return None;
    }
    let (peer, changed) = (peer.clone(), changed.clone());
    Some(tokio::spawn(async move {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let Ok(mut subscription) = peer.listen(filter).await else { return };
        while let Ok(Some(_)) = subscription.next().await {
            changed.notify_one();
        }
    }))
}

fn told(status: ExitStatus) -> String {
    format!("it ended ({status})")
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
        let signals = Arc::new(Signals::new(limits));
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
