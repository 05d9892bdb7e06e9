//! The task that owns the connection to one upstream server: starts the server on demand, monitors it, and restarts it
//! with backoff.
//!
//! [`StateMachine`] decides which effects follow an event; this task performs the effects and reports the next event.

mod missed_ping;
mod monitor;
mod published_tools;

mod restart_backoff;
mod state_machine;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockhouse_catalog::Catalogue;
use lockhouse_protocol::ServerName;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

pub(super) use published_tools::PublishedTools;

use self::monitor::{ConnectionMonitor, MonitorEvent};
use self::state_machine::{ConnectionEffect, ConnectionEvent, EndReason, StateMachine};
use super::caller_signals::{CallStats, CallerSignals};
use super::connection_state::{ConnectedServer, ConnectionState};
use super::connection_status::ConnectionStatus;
use super::live_connection::{ConnectionEnd, LiveConnection, exit_message};
use super::server_events::{ServerEvent, ServerEventKind, ServerEvents};
use super::server_log::ServerLog;
use super::server_start::{ServerStarter, StartFailure, StartedServer};

/// The `tracing` target of all log messages about the state of a connection. Commands that print the connection state
/// themselves filter this target out.
const LOG_TARGET: &str = "lockhouse_upstream::connection_task";
/// How long calls in flight may still take when Lockhouse closes their connection.
/// Bound: upstream servers.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Hint that is appended to the error of a failed start. Submitted code and the model do not get the server's own
/// output, so the hint names the command that shows it.
const SERVER_LOGS_HINT: &str = "; `lockhouse server logs` shows its stderr";

/// The error of calls to a server that has missed a ping.
const UNRESPONSIVE: &str = "it does not answer any more; no call is sent to it until it does, or until it is restarted, \
                            which waits for the calls in flight";

/// The task that starts, monitors and restarts one upstream server. It runs until Lockhouse closes the connection.
pub(super) struct ConnectionTask {
    pub(super) name: ServerName,
    pub(super) starter: Arc<ServerStarter>,
    pub(super) tools: PublishedTools,
    /// The time without a call after which the server is stopped; `None` if the server is never stopped for lack of
    /// calls.
    pub(super) idle_stop: Option<Duration>,
    pub(super) state: watch::Sender<ConnectionState>,
    pub(super) status: watch::Sender<ConnectionStatus>,
    pub(super) signals: Arc<CallerSignals>,
    /// Statistics of answered calls. The current value is marked as seen when an attempt to connect begins. A later
    /// change means that a call was answered on that connection.
    pub(super) answers: watch::Receiver<CallStats>,
    /// Whether the server is known to understand only the older MCP handshake (`initialize`).
    pub(super) legacy_handshake: bool,
    /// Limits how many servers start at a time; shared by all servers.
    pub(super) starts: Arc<Semaphore>,
    pub(super) closing: CancellationToken,
    pub(super) events: ServerEvents,
}

/// What the connection task is waiting for. The end of this wait is the next event of the state machine.
enum Wait {
    /// A caller that needs the server.
    Demand,
    /// The end of an attempt to start the server. The future returns the result of the attempt and how long the attempt
    /// took.
    Start(BoxFuture<'static, (Result<StartedServer, StartFailure>, Duration)>),
    /// An event of the live connection, such as its loss.
    Connection(Box<ConnectionMonitor>),
    /// The end of the calls in flight, or of the drain timeout, before the connection is closed.
    Drain(Box<LiveConnection>, BoxFuture<'static, ()>),
    /// The end of the connection, which is being closed for this reason.
    End(EndReason, BoxFuture<'static, ConnectionEnd>),
    /// The end of the delay before the next attempt to start the server.
    BackOff(BoxFuture<'static, ()>),
}

impl ConnectionTask {
    /// Runs the task until the connection is closed.
    pub(super) async fn run(mut self) {
        self.legacy_handshake = self.tools.load_cached();
        let is_lazy = matches!(*self.state.borrow(), ConnectionState::Idle);
        let (mut lifecycle, mut effects) = StateMachine::new(is_lazy, Instant::now());
        let mut waiting_for = Wait::Demand;
        loop {
            for effect in effects {
                waiting_for = match self.perform(effect, waiting_for) {
                    Some(waiting_for) => waiting_for,
                    None => return,
                };
            }
            let event = self.next(&mut waiting_for).await;
            effects = lifecycle.handle(event, Instant::now());
        }
    }

    /// Performs an effect of the state machine. Takes what the task is waiting for, and returns what it waits for next;
    /// `None` if the task ends.
    fn perform(&mut self, effect: ConnectionEffect, waiting_for: Wait) -> Option<Wait> {
        Some(match (effect, waiting_for) {
            (ConnectionEffect::PublishIdle, waiting_for) => self.publish(ConnectionState::Idle, waiting_for),
            (ConnectionEffect::PublishConnecting, waiting_for) => {
                self.publish(ConnectionState::Connecting, waiting_for)
            }
            (ConnectionEffect::AwaitDemand, _) => Wait::Demand,
            (ConnectionEffect::Connect, _) => self.connect(),
            (ConnectionEffect::BackOff(delay), _) => Wait::BackOff(sleep(delay.to_duration()).boxed()),
            (ConnectionEffect::ListTools(after), Wait::Connection(mut connected)) => {
                connected.list_tools(self.name.clone(), after, self.starter.limits.start_timeout);
                Wait::Connection(connected)
            }
            (ConnectionEffect::Ping, Wait::Connection(mut connected)) => {
                connected.ping(self.signals.answers());
                Wait::Connection(connected)
            }
            (ConnectionEffect::PublishUnresponsive, waiting_for) => {
                tracing::warn!(server = %self.name, "{UNRESPONSIVE}");
                self.status.send_modify(|status| status.last_error = Some(UNRESPONSIVE.into()));
                self.publish(ConnectionState::Failed(UNRESPONSIVE.into()), waiting_for)
            }
            (ConnectionEffect::PublishConnected, Wait::Connection(connected)) => {
                tracing::info!(server = %self.name, "it answers again");
                self.publish_connected(&connected, self.tools.published());
                Wait::Connection(connected)
            }
            (ConnectionEffect::Drain, Wait::Connection(connected)) => {
                let slots = self.signals.slots.clone();
                let drained = async move { drop(timeout(DRAIN_TIMEOUT, slots.wait_drained()).await) };
                Wait::Drain(Box::new(connected.link), drained.boxed())
            }
            (ConnectionEffect::Disconnect(reason), Wait::Connection(connected)) => {
                Wait::End(reason, connected.link.end().boxed())
            }
            (ConnectionEffect::Disconnect(reason), Wait::Drain(link, _)) => {
                Wait::End(reason, link.end().boxed())
            }
            (ConnectionEffect::Finish, _) => return None,
            // Only a live connection performs these effects.
            (
                ConnectionEffect::ListTools(_)
                | ConnectionEffect::Ping
                | ConnectionEffect::PublishConnected
                | ConnectionEffect::Drain
                | ConnectionEffect::Disconnect(_),
                waiting_for,
            ) => waiting_for,
        })
    }

    fn publish(&self, state: ConnectionState, waiting_for: Wait) -> Wait {
        self.state.send_replace(state);
        waiting_for
    }

    /// Starts the server once the limit on concurrent starts permits the start. Only then does the start timeout begin.
    fn connect(&mut self) -> Wait {
        self.answers.mark_unchanged();
        let (starts, starter, legacy_handshake, begun) =
            (self.starts.clone(), self.starter.clone(), self.legacy_handshake, Instant::now());
        let start = async move {
            let _turn = starts.acquire_owned().await;
            let started = starter.start(legacy_handshake).await;
            (started, begun.elapsed())
        };
        Wait::Start(start.boxed())
    }

    async fn next(&mut self, waiting_for: &mut Wait) -> ConnectionEvent {
        match waiting_for {
            Wait::Demand => tokio::select! {
                () = self.signals.demand.notified() => ConnectionEvent::Demanded,
                () = self.closing.cancelled() => ConnectionEvent::CloseRequested,
            },
            Wait::Start(start) => {
                let started = tokio::select! {
                    started = start => started,
                    () = self.closing.cancelled() => return ConnectionEvent::CloseRequested,
                };
                match started {
                    (Ok(started), elapsed) => {
                        *waiting_for = Wait::Connection(Box::new(self.connected(started, elapsed)));
                        ConnectionEvent::Connected
                    }
                    (Err(failure), _) => self.start_failed(failure),
                }
            }
            Wait::Connection(connected) => self.next_monitor_event(connected).await,
            Wait::Drain(_, drained) => {
                drained.await;
                ConnectionEvent::Drained
            }
            Wait::End(reason, end) => {
                let end = end.await;
                self.disconnected(reason, end)
            }
            Wait::BackOff(pause) => tokio::select! {
                () = pause => ConnectionEvent::RestartDue,
                () = self.closing.cancelled() => ConnectionEvent::CloseRequested,
            },
        }
    }

    async fn next_monitor_event(&mut self, connected: &mut ConnectionMonitor) -> ConnectionEvent {
        loop {
            let waits = self.tools.has_unaccepted_tools();
            match connected.next(&self.signals, &self.closing, waits).await {
                MonitorEvent::Event(event) => return event,
                MonitorEvent::Listed(Ok(catalogue)) => {
                    let catalogue = self.tools.publish_listed(catalogue, self.legacy_handshake);
                    // A server that has missed a ping gets no calls until it answers one.
                    if matches!(*self.state.borrow(), ConnectionState::Connected(_)) {
                        self.publish_connected(connected, catalogue);
                    }
                    return ConnectionEvent::ToolsListed;
                }
                MonitorEvent::Listed(Err(fault)) => {
                    let (name, reason) = (&self.name, fault.reason(None));
                    tracing::warn!(server = %name, "its tools changed and cannot be listed: {reason}");
                    return ConnectionEvent::ToolsListed;
                }
                MonitorEvent::AcceptanceDue => self.recheck_pins(connected),
            }
        }
    }

    fn connected(&mut self, started: StartedServer, elapsed: Duration) -> ConnectionMonitor {
        let StartedServer { link, catalogue, legacy_handshake } = started;
        tracing::info!(server = %self.name, tools = catalogue.tools.len(), "connected");
        self.announce(ServerEventKind::Started, None, None);
        self.legacy_handshake = legacy_handshake;
        self.status.send_modify(|status| {
            (status.start_time, status.used_legacy_handshake) = (Some(elapsed), legacy_handshake)
        });
        // A caller needed the server and has not sent its call yet.
        self.signals.slots.record_use();
        let (slots, idle_stop) = (self.signals.slots.clone(), self.idle_stop);
        let idle = async move {
            match idle_stop {
                Some(limit) => slots.wait_idle(limit).await,
                None => std::future::pending().await,
            }
        };
        let connected = ConnectionMonitor::new(link, idle.boxed());
        let catalogue = self.tools.connected(catalogue, legacy_handshake);
        self.publish_connected(&connected, catalogue);
        connected
    }

    fn publish_connected(&self, connected: &ConnectionMonitor, catalogue: Arc<Catalogue>) {
        self.state.send_replace(ConnectionState::Connected(Arc::new(ConnectedServer {
            catalogue,
            client: connected.client.clone(),
            calls: connected.calls.clone(),
        })));
    }

    /// Publishes the server's tools again if the file of accepted tool definitions (pins) has changed, because a user
    /// may have accepted tools.
    fn recheck_pins(&mut self, connected: &ConnectionMonitor) {
        let ConnectionState::Connected(publish_connected) = self.state.borrow().clone() else { return };
        if let Some(catalogue) = self.tools.recheck(&publish_connected.catalogue) {
            self.publish_connected(connected, catalogue);
        }
    }

    fn start_failed(&mut self, failure: StartFailure) -> ConnectionEvent {
        let StartFailure { reason, server_output, is_violation, .. } = failure;
        tracing::warn!(server = %self.name, "not available: {reason}{server_output}");
        self.announce(ServerEventKind::Failed, Some(&reason), None);
        // The failure may be due to the process and not to the handshake.
        self.legacy_handshake = false;
        self.status.send_modify(|status| status.last_error = Some(format!("{reason}{server_output}")));
        let hint = if server_output.is_empty() { "" } else { SERVER_LOGS_HINT };
        self.tools.publish_stale();
        self.state.send_replace(ConnectionState::Failed(format!("{reason}{hint}")));
        self.tools.announce_state();
        ConnectionEvent::StartFailed { is_violation }
    }

    fn disconnected(&self, reason: &EndReason, end: ConnectionEnd) -> ConnectionEvent {
        let ConnectionEnd { ending, status, server_output } = end;
        let exit_status = status.and_then(|status| status.code());
        match reason {
            EndReason::Lost(reason) => {
                let is_violation = reason.as_ref().is_some_and(|reason| reason.is_violation);
                let how =
                    reason.as_ref().map(|reason| reason.message.clone()).or_else(|| status.map(exit_message));
                let how = how.unwrap_or_else(|| "it closed its output".into());
                tracing::warn!(server = %self.name, "the connection ended: {how}{server_output}");
                self.announce(ServerEventKind::Lost, Some(&how), exit_status);
                if is_violation {
                    self.state.send_replace(ConnectionState::Failed(how.clone()));
                    self.log_violation(&how);
                }
                self.status.send_modify(|status| {
                    status.reconnects += 1;
                    status.last_error = Some(format!("the connection ended: {how}{server_output}"));
                });
            }
            EndReason::Idle => {
                tracing::info!(server = %self.name, "stopped: nobody has needed it for a while");
                self.announce(
                    ServerEventKind::Stopped,
                    Some("nobody has needed it for a while"),
                    exit_status,
                );
            }
            EndReason::Closing => {
                self.announce(ServerEventKind::Stopped, None, exit_status);
                self.status.send_modify(|status| status.shutdown = ending);
            }
        }
        ConnectionEvent::Disconnected { has_answered: self.answers.has_changed().unwrap_or(false) }
    }

    fn announce(&self, kind: ServerEventKind, reason: Option<&str>, exit_status: Option<i32>) {
        let (server, reason) = (self.name.clone(), reason.map(str::to_owned));
        self.events.send(ServerEvent { server, kind, reason, exit_status });
    }

    /// Records in the server's log file that Lockhouse disconnected the server, with the reason `how`.
    fn log_violation(&self, how: &str) {
        if let Some(path) = &self.starter.log {
            ServerLog::new(path).write_line(&format!("[Lockhouse disconnected the server: {how}]"));
        }
    }
}
