//! The life of one connection without its I/O: what each event leads to.
//!
//! The task that holds the connection carries out the effects in their order, then waits for the next event.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::broken::Reason;

/// Before a server is started again: at first, and at last.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// A server that lasted so long, or answered a call, is started again without the delay that it had earned before.
const STEADY: Duration = Duration::from_secs(60);
/// A server that was disconnected because it sent more than a server may is started again after the first of these, and after
/// twice as long each further time up to the second, whatever it answered meanwhile.
const EXCESS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(600));
/// Announced changes of a server's tools are looked at together, and no more often than the first of these; of a server that
/// goes on announcing them, less and less often.
const LISTING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What happens to a connection.
#[derive(Debug)]
pub(super) enum Event {
    /// A caller needs the server.
    Wanted,
    /// The server has started, and its tools are listed.
    Connected,
    /// The server could not be started.
    Refused {
        is_excess: bool,
    },
    /// The server announced that its tools have changed.
    ToolsChanged,
    /// The tools were listed again, or could not be.
    ToolsListed,
    CallTimedOut,
    /// The server's side ended the connection, or the connection is of no more use, for this reason.
    Lost(Option<Reason>),
    /// Nobody has needed the server for the configured time.
    IdleLimit,
    /// Lockhouse does not need the server any more.
    CloseRequested,
    /// No call runs any more, or calls have had their time.
    Drained,
    /// The conversation is over and the process is gone. `has_answered`: whether any call was answered since the start.
    Disconnected {
        has_answered: bool,
    },
    PauseOver,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    PublishIdle,
    PublishConnecting,
    AwaitDemand,
    Connect,
    /// Lists the tools again after this time.
    ListTools(Duration),
    /// Asks the server whether it answers anything at all. One that does not is lost.
    Ping,
    /// Waits for the calls in flight, for a limited time.
    Drain,
    Disconnect(Over),
    Pause(Pause),
    /// The task ends.
    Finish,
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Over {
    Lost(Option<Reason>),
    /// Nobody has needed the server for a while.
    Idle,
    Closing,
}

/// The time before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pause {
    Exactly(Duration),
    /// From half of it to one and a half: servers that went down together do not come back at one moment.
    About(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Not started before somebody needs it.
    Idle,
    Connecting(Attempt),
    Connected(Attempt),
    /// It is to be closed, and calls are still in flight.
    Draining,
    Disconnecting(Next),
    BackingOff,
    Ended,
}

/// When the attempt to connect began.
type Attempt = Instant;

/// What follows a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Demand,
    Retry { attempt: Attempt, is_excess: bool },
    End,
}

pub(super) struct Lifecycle {
    phase: Phase,
    backoff: Doubling,
    excess: Doubling,
    listing: Doubling,
    /// When the tools were last listed.
    listed: Instant,
}

impl Lifecycle {
    /// With what is to be done first.
    pub(super) fn begin(is_lazy: bool, now: Instant) -> (Self, Vec<Effect>) {
        let (phase, first) = match is_lazy {
            true => (Phase::Idle, Effect::AwaitDemand),
            false => (Phase::Connecting(now), Effect::Connect),
        };
        let (backoff, excess) = (Doubling::new(BACKOFF), Doubling::new(EXCESS));
        (Self { phase, backoff, excess, listing: Doubling::new(LISTING), listed: now }, vec![first])
    }

    /// What an event leads to. One that has no meaning in the present phase leads to nothing.
    pub(super) fn on(&mut self, event: Event, now: Instant) -> Vec<Effect> {
        let (phase, effects) = match (self.phase, event) {
            (Phase::Idle, Event::Wanted) => {
                (Phase::Connecting(now), vec![Effect::PublishConnecting, Effect::Connect])
            }
            (Phase::BackingOff, Event::PauseOver) => (Phase::Connecting(now), vec![Effect::Connect]),
            (Phase::Connecting(attempt), Event::Connected) => {
                (self.listing, self.listed) = (Doubling::new(LISTING), now);
                (Phase::Connected(attempt), Vec::new())
            }
            (Phase::Connecting(attempt), Event::Refused { is_excess }) => {
                (Phase::BackingOff, vec![self.pause(now, attempt, is_excess, false)])
            }
            (Phase::Connected(attempt), event) => self.on_connected(attempt, event, now),
            (Phase::Draining, Event::Drained) => over(Over::Closing, Next::End),
            (Phase::Disconnecting(next), Event::Disconnected { has_answered }) => match next {
                Next::Demand => (Phase::Idle, vec![Effect::AwaitDemand]),
                Next::Retry { attempt, is_excess } => {
                    (Phase::BackingOff, vec![self.pause(now, attempt, is_excess, has_answered)])
                }
                Next::End => (Phase::Ended, vec![Effect::Finish]),
            },
            (Phase::Idle | Phase::Connecting(_) | Phase::BackingOff, Event::CloseRequested) => {
                (Phase::Ended, vec![Effect::Finish])
            }
            (phase, _) => (phase, Vec::new()),
        };
        self.phase = phase;
        effects
    }

    fn on_connected(&mut self, attempt: Attempt, event: Event, now: Instant) -> (Phase, Vec<Effect>) {
        let stays = Phase::Connected(attempt);
        match event {
            Event::Lost(reason) => {
                let is_excess = reason.as_ref().is_some_and(|reason| reason.is_excess);
                over(Over::Lost(reason), Next::Retry { attempt, is_excess })
            }
            Event::IdleLimit => over(Over::Idle, Next::Demand),
            Event::CloseRequested => (Phase::Draining, vec![Effect::Drain]),
            Event::CallTimedOut => (stays, vec![Effect::Ping]),
            Event::ToolsChanged => (stays, vec![Effect::ListTools(self.listing.current)]),
            Event::ToolsListed => {
                let is_calm = now.duration_since(self.listed) > 2 * self.listing.max;
                if is_calm {
                    self.listing.reset()
                } else {
                    self.listing.double()
                }
                self.listed = now;
                (stays, Vec::new())
            }
            _ => (stays, Vec::new()),
        }
    }

    /// The pause after an attempt that has come to nothing, or after its connection.
    fn pause(&mut self, now: Instant, attempt: Attempt, is_excess: bool, has_answered: bool) -> Effect {
        let lasted = now.duration_since(attempt);
        if lasted > self.excess.max {
            self.excess.reset();
        }
        Effect::Pause(if is_excess {
            Pause::Exactly(self.excess.take())
        } else {
            if lasted >= STEADY || has_answered {
                self.backoff.reset();
            }
            Pause::About(self.backoff.take())
        })
    }
}

/// A caller that comes from now on waits for the next connection.
fn over(why: Over, next: Next) -> (Phase, Vec<Effect>) {
    let publish = if why == Over::Idle { Effect::PublishIdle } else { Effect::PublishConnecting };
    (Phase::Disconnecting(next), vec![publish, Effect::Disconnect(why)])
}

/// A time that doubles up to a limit.
struct Doubling {
    min: Duration,
    max: Duration,
    current: Duration,
}

impl Doubling {
    fn new((min, max): (Duration, Duration)) -> Self {
        Self { min, max, current: min }
    }

    fn double(&mut self) {
        self.current = (self.current * 2).min(self.max);
    }

    fn reset(&mut self) {
        self.current = self.min;
    }

    /// The present time; the next one is twice as long.
    fn take(&mut self) -> Duration {
        let current = self.current;
        self.double();
        current
    }
}
