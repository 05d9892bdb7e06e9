//! One attempt to start a server, in one era.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_catalog::Catalogue;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::Transport;
use tokio::process::ChildStderr;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::{Refusal, Started, Starter};
use crate::auth::Authority;
use crate::broken::Broken;
use crate::callers::Callers;
use crate::definition::{HttpEndpoint, Reach, ServerCommand};
use crate::fault::Fault;
use crate::host::Host;
use crate::http;
use crate::link::{Ground, Link, Service};
use crate::listing::list_tools;
use crate::log::ServerLog;
use crate::probe::{Probed, probe};
use crate::process::ServerProcess;
use crate::request::CANCEL_TIMEOUT;
use crate::transport::{LineTransport, Lines, RawResults};

/// Some servers neither answer the question nor end. One that takes longer than this to load is taken for one of them.
const PROBE_MAX: Duration = Duration::from_secs(15);

/// One attempt to connect.
pub(super) struct Attempt<'a> {
    pub(super) server: &'a Starter,
    pub(super) begun: Instant,
    /// Without asking first.
    pub(super) older: bool,
    pub(super) deadline: Instant,
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
    /// Connects to the server and lists its tools.
    pub(super) async fn reach(self) -> Result<Started, Refusal> {
        match &self.server.reach {
            Reach::Stdio(command) => self.over_stdio(command).await,
            Reach::Http(endpoint) => self.over_http(endpoint).await,
        }
    }

    async fn over_stdio(self, command: &ServerCommand) -> Result<Started, Refusal> {
        let mut process = ServerProcess::start(command)
            .map_err(|error| Refusal::told(format!("cannot start {:?}: {error}", command.program)))?;
        self.server.status.send_modify(|status| status.spawned = Some(self.begun.elapsed()));
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
                let link = Link::new(service, ground, changed);
                return Ok(Started { link, catalogue, older: self.older });
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

    async fn over_http(self, endpoint: &HttpEndpoint) -> Result<Started, Refusal> {
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
            Ok((service, catalogue)) => {
                let link = Link::new(service, Ground::Http(broken), changed);
                Ok(Started { link, catalogue, older: self.older })
            }
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
            let (name, notices) = (self.server.name.clone(), self.server.notices.clone());
            let host = Host::new(name, Callers::default(), changed.clone(), notices);
            let service = host.serve_with_lifecycle(transport, mode).await?;
            let era = service.peer_info().map(|info| info.protocol_version.to_string());
            let took = self.begun.elapsed();
            self.server.status.send_modify(|status| (status.era, status.handshake) = (era, Some(took)));
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
