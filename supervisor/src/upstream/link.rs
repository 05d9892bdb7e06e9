//! One conversation with a server, from its start to its end.

use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, Peer, RunningService};
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::auth::Authority;
use super::definition::{HttpEndpoint, Reach, ServerCommand, ServerDefinition, ServerLimits};
use super::fault::Fault;
use super::host::Host;
use super::http::{self, Broken};
use super::listing::list_tools;
use super::process::ServerProcess;
use super::request::CANCEL_TIMEOUT;
use super::secrets::Secrets;
use super::transport::{LineTransport, Lines, RawResults};
use crate::catalog::Catalogue;
use crate::child_stderr::LastLines;

/// How long a connection over HTTP that is of no more use stays for those who wait for it.
const HTTP_TELL: Duration = Duration::from_millis(100);
/// How long a server over HTTP gets to hear that we leave.
const HTTP_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A conversation that has begun, and what it runs on.
pub(super) struct Link {
    service: Service,
    ground: Ground,
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

/// One attempt to connect.
struct Attempt<'a> {
    name: &'a ServerName,
    limits: ServerLimits,
    secrets: &'a Secrets,
    mode: ClientLifecycleMode,
    deadline: Instant,
}

/// Connects to the server and lists its tools. `legacy` remembers which handshake it understands.
pub(super) async fn start(
    name: &ServerName,
    definition: &ServerDefinition,
    secrets: &Secrets,
    legacy: &mut bool,
) -> Result<(Link, Catalogue), Refusal> {
    let limits = definition.limits;
    let deadline = Instant::now() + limits.start_timeout;
    let attempt = |mode| Attempt { name, limits, secrets, mode, deadline };
    if !*legacy {
        match attempt(probe()).reach(&definition.reach).await {
            // Some servers crash on the probe, or refuse the older handshake after it: a new process does not know
            // that it was asked.
            Err(Refusal { may_be_older: true, .. }) => {}
            done => return done,
        }
    }
    let started = attempt(ClientLifecycleMode::Initialize).reach(&definition.reach).await;
    // What failed this time may be the process, not the era.
    *legacy = started.is_ok();
    started
}

fn probe() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

impl Attempt<'_> {
    async fn reach(self, reach: &Reach) -> Result<(Link, Catalogue), Refusal> {
        match reach {
            Reach::Stdio(command) => self.over_stdio(command).await,
            Reach::Http(endpoint) => self.over_http(endpoint).await,
        }
    }

    async fn over_stdio(self, command: &ServerCommand) -> Result<(Link, Catalogue), Refusal> {
        let mut process = ServerProcess::start(command)
            .map_err(|error| Refusal::told(format!("cannot start {:?}: {error}", command.program)))?;
        let Some((stdin, stdout, stderr)) = process.streams() else {
            return Err(Refusal::told("its standard streams are missing".into()));
        };
        let last_lines = LastLines::default();
        let redacting = self.secrets.clone();
        last_lines.follow_edited(self.name.to_string(), stderr, move |line| redacting.redact(line));
        let raw = RawResults::default();
        // A call that could not be written while it was waited for, nor its cancellation after it, never will be.
        let lines = Lines {
            bytes_max: self.limits.message_bytes_max,
            write_timeout: self.limits.call_timeout + CANCEL_TIMEOUT,
        };
        let transport = LineTransport::new(stdout, stdin, lines, raw.clone());
        let stalled = transport.stalled();
        let (reason, said, may_be_older) = match self.converse(transport, raw).await {
            Ok((service, catalogue)) => {
                let ground = Ground::Process { process, stalled, last_lines };
                return Ok((Link { service, ground }, catalogue));
            }
            Err(Some(fault)) => (fault.reason(process.end().await), fault.said(self.secrets), true),
            Err(None) => {
                drop(process);
                (late(self.limits.start_timeout), String::new(), false)
            }
        };
        let last_words = format!("{said}{}", last_lines.told().await);
        Err(Refusal { reason, last_words, may_be_older })
    }

    async fn over_http(self, endpoint: &HttpEndpoint) -> Result<(Link, Catalogue), Refusal> {
        let transport = Authority::new(self.name, endpoint, self.secrets.clone())
            .and_then(|authority| http::transport(endpoint, &self.limits, authority));
        let (transport, broken) = match transport {
            Ok(transport) => transport,
            Err(fault) => return Err(Refusal::told(fault.reason)),
        };
        // Over HTTP each answer belongs to a request, and it is the request that says whether it passes on raw.
        match self.converse(transport, RawResults::default()).await {
            Ok((service, catalogue)) => Ok((Link { service, ground: Ground::Http(broken) }, catalogue)),
            Err(Some(fault)) => Err(Refusal {
                reason: fault.reason(None),
                last_words: fault.said(self.secrets),
                may_be_older: fault.may_be_older(),
            }),
            Err(None) => Err(Refusal::told(late(self.limits.start_timeout))),
        }
    }

    /// The handshake and the listing of tools; no fault means that it took too long.
    async fn converse<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        raw: RawResults,
    ) -> Result<(Service, Catalogue), Option<Fault>> {
        let handshake = async {
            let service = Host.serve_with_lifecycle(transport, self.mode.clone()).await?;
            service.set_response_cache_config(ClientCacheConfig::disabled()).await;
            raw.store(true, Ordering::Release);
            let catalogue = list_tools(self.name, service.peer(), self.limits.start_timeout).await?;
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
    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// Waits until either side ends it, or the process takes nothing any more. Calls `over` then, and ends the process.
    /// How that came, with the process's own last words.
    pub(super) async fn until_the_end(
        self,
        closing: &CancellationToken,
        over: impl FnOnce(),
    ) -> (String, String) {
        let service = self.service;
        match self.ground {
            Ground::Http(broken) => {
                let end = service.cancellation_token();
                let mut service = std::pin::pin!(service.waiting());
                let how = tokio::select! {
                    _ = &mut service => "the conversation ended".into(),
                    how = broken.told() => how,
                    () = closing.cancelled() => "it is shut down".into(),
                };
                over();
                if !closing.is_cancelled() {
                    // So that the request that noticed it is told what it noticed.
                    let _ = timeout(HTTP_TELL, &mut service).await;
                }
                // So that the server can forget the session.
                end.cancel();
                let _ = timeout(HTTP_CLOSE_TIMEOUT, service).await;
                (how, String::new())
            }
            Ground::Process { mut process, stalled, last_lines } => {
                let how = tokio::select! {
                    status = process.wait() => status.map(told),
                    _ = service.waiting() => None,
                    () = stalled.cancelled() => Some("it does not read what it is sent".into()),
                    () = closing.cancelled() => Some("it is shut down".into()),
                };
                over();
                // The service is gone with the select, and with it the process's input.
                let status = process.end().await;
                let how = how.or_else(|| status.map(told)).unwrap_or_else(|| "it closed its output".into());
                (how, last_lines.told().await)
            }
        }
    }
}

fn told(status: ExitStatus) -> String {
    format!("it ended ({status})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ServerDefinition {
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
        ServerDefinition::new(Reach::Stdio(command), limits, String::new())
    }

    #[tokio::test]
    async fn why_a_server_is_not_available_is_told_without_its_own_words() {
        let name = ServerName::new("h").expect("a name");
        for (script, words) in [
            ("echo bad token: $TOKEN >&2; exit 3", "it ended before it was ready (exit status: 3)"),
            (
                r#"n=0; while read -r line; do
                    printf '{"jsonrpc":"2.0","id":%d,"error":{"code":-5,"message":"%s"}}\n' $n $TOKEN; n=$((n+1))
                done"#,
                "it answered with an error while it started (JSON-RPC code -5)",
            ),
        ] {
            let definition = shell(script);
            let secrets = Secrets::of(&definition.secrets());
            let Err(refusal) = start(&name, &definition, &secrets, &mut false).await else {
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
