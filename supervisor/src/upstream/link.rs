//! One process of a server and the conversation with it, from its start to its end.

use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lockhouse_protocol::ServerName;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, Peer, RunningService};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::ServerCommand;
use super::fault::Fault;
use super::listing::{Listing, list_tools};
use super::process::ServerProcess;
use super::request::CANCEL_TIMEOUT;
use super::secrets::Secrets;
use super::transport::{LineTransport, Lines, RawResults};
use crate::child_stderr::LastLines;

/// A running process and the connection to it.
pub(super) struct Link {
    process: ServerProcess,
    service: RunningService<RoleClient, Host>,
    /// Cancelled when the process does not take what is written to it.
    stalled: CancellationToken,
    last_lines: LastLines,
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

/// What a server is told about us.
struct Host;

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("lockhouse", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// Starts the process and lists its tools. `legacy` remembers which handshake it understands.
pub(super) async fn start(
    name: &ServerName,
    command: &ServerCommand,
    secrets: &Secrets,
    legacy: &mut bool,
) -> Result<(Link, Listing), Refusal> {
    let deadline = Instant::now() + command.start_timeout;
    if !*legacy {
        match connect(name, command, secrets, probe(), deadline).await {
            // Some servers crash on the probe, or refuse the older handshake after it: a new process does not know
            // that it was asked.
            Err(Refusal { may_be_older: true, .. }) => {}
            done => return done,
        }
    }
    let started = connect(name, command, secrets, ClientLifecycleMode::Initialize, deadline).await;
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

async fn connect(
    name: &ServerName,
    command: &ServerCommand,
    secrets: &Secrets,
    mode: ClientLifecycleMode,
    deadline: Instant,
) -> Result<(Link, Listing), Refusal> {
    let refusal = |reason: String| Refusal { reason, last_words: String::new(), may_be_older: false };
    let mut process = ServerProcess::start(command)
        .map_err(|error| refusal(format!("cannot start {:?}: {error}", command.program)))?;
    let Some((stdin, stdout, stderr)) = process.streams() else {
        return Err(refusal("its standard streams are missing".into()));
    };
    let last_lines = LastLines::default();
    let redacting = secrets.clone();
    last_lines.follow_edited(name.to_string(), stderr, move |line| redacting.redact(line));

    let raw = RawResults::default();
    // A call that could not be written while it was waited for, nor its cancellation after it, never will be.
    let lines =
        Lines { bytes_max: command.line_bytes_max, write_timeout: command.call_timeout + CANCEL_TIMEOUT };
    let transport = LineTransport::new(stdout, stdin, lines, raw.clone());
    let stalled = transport.stalled();
    let handshake = async {
        let service = Host.serve_with_lifecycle(transport, mode).await?;
        service.set_response_cache_config(ClientCacheConfig::disabled()).await;
        raw.store(true, Ordering::Release);
        let listing = list_tools(name, service.peer(), command.start_timeout).await?;
        Ok::<_, Fault>((service, listing))
    };
    let (reason, said, may_be_older) = match timeout_at(deadline, handshake).await {
        Ok(Ok((service, listing))) => return Ok((Link { process, service, stalled, last_lines }, listing)),
        Ok(Err(fault)) => (fault.reason(process.end().await), fault.said(secrets), true),
        Err(_) => {
            drop(process);
            (late(command.start_timeout), String::new(), false)
        }
    };
    let last_words = format!("{said}{}", last_lines.told().await);
    Err(Refusal { reason, last_words, may_be_older })
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
        mut self,
        closing: &CancellationToken,
        over: impl FnOnce(),
    ) -> (String, String) {
        let how = tokio::select! {
            status = self.process.wait() => status.map(told),
            _ = self.service.waiting() => None,
            () = self.stalled.cancelled() => Some("it does not read what it is sent".into()),
            () = closing.cancelled() => Some("it is shut down".into()),
        };
        over();
        // The service is gone with the select, and with it the process's input.
        let status = self.process.end().await;
        let how = how.or_else(|| status.map(told)).unwrap_or_else(|| "it closed its output".into());
        (how, self.last_lines.told().await)
    }
}

fn told(status: ExitStatus) -> String {
    format!("it ended ({status})")
}
