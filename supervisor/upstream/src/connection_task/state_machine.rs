//! State machine of the connection to one upstream server, without I/O: decides which effects follow each event.
//!
//! The connection task performs the effects in order and then waits for the next event.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::restart_backoff::{DoublingDelay, RestartBackoff, RestartDelay};
use lockhouse_mcp::client::ConnectionFailure;

/// The shortest and the longest delay before a server's tools are listed again after the server announced a change of
/// its tools. The delay doubles with each listing. It is reset if the previous listing was more than twice the longest
/// delay ago.
/// Bound: upstream servers.
const LISTING_BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// An event of the connection to an upstream server.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    /// A caller needs the server.
    Demanded,
    /// The server has started and has listed its tools.
    Connected,
    /// The server could not be started.
    StartFailed {
        /// Whether the start failed because the server exceeded a limit or broke the protocol.
        is_violation: bool,
    },
    /// The server announced that its tools have changed.
    ToolsChanged,
    /// The server's tools were listed again, or listing them failed.
    ToolsListed,
    /// A call was not answered within its timeout, or a request could not be sent.
    Suspected,
    /// The server has not answered the ping in time.
    PingMissed,
    /// The server has answered a ping after it had missed one.
    PingAnswered,
    /// The server has missed a ping, and the calls that were in flight then have ended. Contains why the last ping failed.
    CallsEnded(ConnectionFailure),
    /// The server ended the connection, or the connection failed. Contains the reason; `None` if it is not known.
    Lost(Option<ConnectionFailure>),
    /// No caller has used the server for the configured idle time.
    IdleTimeout,
    /// Lockhouse does not need the server any more, so the connection must be closed.
    CloseRequested,
    /// No call is in flight any more, or the time limit for draining has passed.
    Drained,
    /// The MCP connection has ended. The process of a server over standard input and output has exited.
    Disconnected {
        /// Whether any call was answered since the server was started.
        has_answered: bool,
    },
    /// The delay before a restart of the server has passed.
    RestartDue,
}

/// An effect of an event: an action that the connection task must perform.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConnectionEffect {
    /// Show to callers that the server is not started (`ConnectionState::Idle`).
    PublishIdle,
    /// Show to callers that the server is being started, or that its connection was lost or is being closed
    /// (`ConnectionState::Connecting`).
    PublishConnecting,
    /// Wait until a caller needs the server.
    AwaitDemand,
    /// Start the server and connect to it.
    Connect,
    /// List the server's tools again after this delay.
    ListTools(Duration),
    /// Show to callers that the server does not answer (`ConnectionState::Failed`), so that no call is sent to it.
    PublishUnresponsive,
    /// Show to callers that the server answers again (`ConnectionState::Connected`).
    PublishConnected,
    /// Ping the server.
    Ping,
    /// Wait until no call is in flight, at most for the drain timeout.
    Drain,
    /// Close the connection for this reason, and end the server's process if there is one.
    Disconnect(EndReason),
    /// Wait for this delay before the next attempt to connect to the server.
    BackOff(RestartDelay),
    /// End the connection task.
    Finish,
}

/// Why the connection to an upstream server ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EndReason {
    /// The server ended the connection, or the connection failed. Contains the reason; `None` if it is not known.
    Lost(Option<ConnectionFailure>),
    /// No caller has used the server for the configured idle time.
    Idle,
    /// Lockhouse closes the connection.
    Closing,
}

/// The phase of the connection to an upstream server: its current state, on which the effects of an event depend.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The server is not started. It is started when a caller needs it.
    Idle,
    /// This attempt to connect to the server is in progress.
    Connecting(Attempt),
    /// The server is connected, as the result of this attempt.
    Connected(Attempt),
    /// The server, which was connected as the result of this attempt, has missed a ping. It may be busy with the calls in
    /// flight, so it is not restarted before these have ended or used up their time.
    Unresponsive(Attempt),
    /// Lockhouse waits for the end of the calls in flight, at most for the drain timeout, and then closes the
    /// connection.
    Draining,
    /// The connection is being closed. This action follows.
    Disconnecting(Next),
    /// The delay before the next attempt to connect is running.
    BackingOff,
    /// The connection task has ended or is about to end.
    Ended,
}

/// Identifies an attempt to connect by the time when it began.
type Attempt = Instant;

/// The action that the connection task takes once the connection has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    /// Wait until a caller needs the server again.
    AwaitDemand,
    /// Restart the server after a delay, which depends on when the last attempt began and whether it ended by a
    /// violation.
    Restart { attempt: Attempt, is_violation: bool },
    /// End the connection task.
    End,
}

/// The state machine of one connection: its phase, and the delays before a restart and before tools are listed again.
pub(super) struct StateMachine {
    phase: Phase,
    backoff: RestartBackoff,
    listing_delay: DoublingDelay,
    /// When the server's tools were last listed.
    listed_at: Instant,
}

impl StateMachine {
    /// Creates the state machine of a connection and returns it with the first effects. If `is_lazy` is true, the
    /// server is not started until a caller needs it.
    pub(super) fn new(is_lazy: bool, now: Instant) -> (Self, Vec<ConnectionEffect>) {
        let (phase, first) = match is_lazy {
            true => (Phase::Idle, ConnectionEffect::AwaitDemand),
            false => (Phase::Connecting(now), ConnectionEffect::Connect),
        };
        let (backoff, listing_delay) = (RestartBackoff::new(), DoublingDelay::new(LISTING_BACKOFF));
        (Self { phase, backoff, listing_delay, listed_at: now }, vec![first])
    }

    /// Handles an event that occurs at the time `now`, and returns the effects that the connection task must perform.
    /// An event that has no meaning in the current phase has no effects.
    pub(super) fn handle(&mut self, event: ConnectionEvent, now: Instant) -> Vec<ConnectionEffect> {
        let (phase, effects) = match (self.phase, event) {
            (Phase::Idle, ConnectionEvent::Demanded) => {
                (Phase::Connecting(now), vec![ConnectionEffect::PublishConnecting, ConnectionEffect::Connect])
            }
            (Phase::BackingOff, ConnectionEvent::RestartDue) => {
                (Phase::Connecting(now), vec![ConnectionEffect::Connect])
            }
            (Phase::Connecting(attempt), ConnectionEvent::Connected) => {
                (self.listing_delay, self.listed_at) = (DoublingDelay::new(LISTING_BACKOFF), now);
                (Phase::Connected(attempt), Vec::new())
            }
            (Phase::Connecting(attempt), ConnectionEvent::StartFailed { is_violation }) => {
                self.back_off(now, attempt, is_violation, false)
            }
            (Phase::Connected(attempt), ConnectionEvent::Suspected) => {
                (Phase::Connected(attempt), vec![ConnectionEffect::Ping])
            }
            (Phase::Connected(attempt), ConnectionEvent::PingMissed) => {
                (Phase::Unresponsive(attempt), vec![ConnectionEffect::PublishUnresponsive])
            }
            (Phase::Unresponsive(attempt), ConnectionEvent::PingAnswered) => {
                (Phase::Connected(attempt), vec![ConnectionEffect::PublishConnected])
            }
            (Phase::Unresponsive(attempt), ConnectionEvent::CallsEnded(reason)) => self.handle_live(
                Phase::Unresponsive(attempt),
                attempt,
                ConnectionEvent::Lost(Some(reason)),
                now,
            ),
            (phase @ (Phase::Connected(attempt) | Phase::Unresponsive(attempt)), event) => {
                self.handle_live(phase, attempt, event, now)
            }
            (Phase::Draining, ConnectionEvent::Drained) => disconnect(EndReason::Closing, Next::End),
            (Phase::Disconnecting(next), ConnectionEvent::Disconnected { has_answered }) => match next {
                Next::AwaitDemand => (Phase::Idle, vec![ConnectionEffect::AwaitDemand]),
                Next::Restart { attempt, is_violation } => {
                    self.back_off(now, attempt, is_violation, has_answered)
                }
                Next::End => (Phase::Ended, vec![ConnectionEffect::Finish]),
            },
            (Phase::Idle | Phase::Connecting(_) | Phase::BackingOff, ConnectionEvent::CloseRequested) => {
                (Phase::Ended, vec![ConnectionEffect::Finish])
            }
            (phase, _) => (phase, Vec::new()),
        };
        self.phase = phase;
        effects
    }

    /// Handles an event that has the same meaning whether the connected server answers or not. `stays` is the current phase.
    /// Returns the next phase and the effects.
    fn handle_live(
        &mut self,
        stays: Phase,
        attempt: Attempt,
        event: ConnectionEvent,
        now: Instant,
    ) -> (Phase, Vec<ConnectionEffect>) {
        match event {
            ConnectionEvent::Lost(reason) => {
                let is_violation = reason.as_ref().is_some_and(|reason| reason.is_violation);
                disconnect(EndReason::Lost(reason), Next::Restart { attempt, is_violation })
            }
            ConnectionEvent::IdleTimeout => disconnect(EndReason::Idle, Next::AwaitDemand),
            ConnectionEvent::CloseRequested => (Phase::Draining, vec![ConnectionEffect::Drain]),
            ConnectionEvent::ToolsChanged => {
                (stays, vec![ConnectionEffect::ListTools(self.listing_delay.current)])
            }
            ConnectionEvent::ToolsListed => {
                let is_calm = now.duration_since(self.listed_at) > 2 * self.listing_delay.max;
                if is_calm {
                    self.listing_delay.reset()
                } else {
                    self.listing_delay.double()
                }
                self.listed_at = now;
                (stays, Vec::new())
            }
            _ => (stays, Vec::new()),
        }
    }

    fn back_off(
        &mut self,
        now: Instant,
        attempt: Attempt,
        is_violation: bool,
        has_answered: bool,
    ) -> (Phase, Vec<ConnectionEffect>) {
        let delay = self.backoff.next_delay(now, attempt, is_violation, has_answered);
        (Phase::BackingOff, vec![ConnectionEffect::BackOff(delay)])
    }
}

/// Returns the phase and the effects that end the connection, after which the task continues with `next`. The first
/// effect changes the connection state that callers see, so that new callers do not use this connection. The second
/// effect closes the connection.
fn disconnect(reason: EndReason, next: Next) -> (Phase, Vec<ConnectionEffect>) {
    let publish = if reason == EndReason::Idle {
        ConnectionEffect::PublishIdle
    } else {
        ConnectionEffect::PublishConnecting
    };
    (Phase::Disconnecting(next), vec![publish, ConnectionEffect::Disconnect(reason)])
}
