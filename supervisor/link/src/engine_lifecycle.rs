//! What a front knows of the lifecycle of its engine, and what it reports while the engine drains.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::{LifecycleState, ToEngine};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::EngineEndpoint;
use crate::endpoints::round_trip_in_debug;

/// Minimum time that AI clients are told to wait (`Retry-After`) when they are refused because the engine drains.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// The lifecycle of the engine, as its latest message says, and the requests of AI clients in flight in this front. Clones
/// share both.
#[derive(Clone)]
pub struct EngineLifecycle(Arc<EngineLifecycleInner>);

struct EngineLifecycleInner {
    engine: Arc<dyn EngineEndpoint>,
    /// Cancelled when the engine ends.
    closing: CancellationToken,
    phase: watch::Sender<Phase>,
    in_flight: Mutex<InFlight>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Serving,
    /// The engine cancels the runs that have not ended at `deadline`.
    Draining {
        deadline: Instant,
    },
    Closing,
}

/// The requests of AI clients that the front has not answered yet.
#[derive(Debug, Default)]
struct InFlight {
    count: u64,
    /// Whether the engine drains, and therefore waits for these requests.
    is_reported: bool,
}

/// Guard that counts one request of an AI client as in flight until it is dropped. A drain of the engine waits for it.
pub struct RequestInFlight(Arc<EngineLifecycleInner>);

impl EngineLifecycle {
    pub(crate) fn new(engine: Arc<dyn EngineEndpoint>, closing: CancellationToken) -> Self {
        let (phase, in_flight) = (watch::Sender::default(), Mutex::default());
        Self(Arc::new(EngineLifecycleInner { engine, closing, phase, in_flight }))
    }

    /// Records the state that the engine has sent.
    pub(crate) fn set(&self, state: LifecycleState) {
        self.0.phase.send_replace(match state {
            LifecycleState::Serving => Phase::Serving,
            LifecycleState::Draining { time_left } => {
                let now = Instant::now();
                Phase::Draining { deadline: now.checked_add(time_left).unwrap_or(now) }
            }
            LifecycleState::Closing => Phase::Closing,
        });
        let mut in_flight = self.0.in_flight.lock();
        match state {
            LifecycleState::Serving => in_flight.is_reported = false,
            LifecycleState::Draining { .. } => {
                in_flight.is_reported = true;
                self.0.report(&in_flight);
            }
            LifecycleState::Closing => self.0.closing.cancel(),
        }
    }

    /// Tells the engine that AI clients can connect to this front from now on. From then on, a drain of the engine waits
    /// for the requests that this front has not answered ([`Self::begin_request`]).
    pub fn announce_listening(&self) {
        self.0.send(ToEngine::Listening);
    }

    /// Returns whether the engine drains or ends: a request that begins new work should be refused.
    pub fn is_draining(&self) -> bool {
        *self.0.phase.borrow() != Phase::Serving
    }

    /// Waits until the engine drains or ends.
    pub async fn draining(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.0.phase.subscribe().wait_for(|phase| *phase != Phase::Serving).await;
    }

    /// Returns how long an AI client should wait before it retries a request that was refused because the engine drains.
    pub fn retry_after(&self) -> Duration {
        let left = match *self.0.phase.borrow() {
            Phase::Serving | Phase::Closing => Duration::ZERO,
            Phase::Draining { deadline } => deadline.saturating_duration_since(Instant::now()),
        };
        // Most runs end long before the deadline.
        (left / 4).max(RETRY_MIN)
    }

    /// Counts a request of an AI client as in flight until the returned guard is dropped.
    pub fn begin_request(&self) -> RequestInFlight {
        self.0.count(|count| count + 1);
        RequestInFlight(self.0.clone())
    }
}

impl EngineLifecycleInner {
    fn send(&self, message: ToEngine) {
        // These messages never wait.
        drop(self.engine.receive(round_trip_in_debug(message)));
    }

    /// Changes the number of requests in flight. While the engine drains, reports each change from or to zero. The lock
    /// keeps these messages in order.
    fn count(&self, change: impl FnOnce(u64) -> u64) {
        let mut in_flight = self.in_flight.lock();
        let before = in_flight.count;
        in_flight.count = change(before);
        if in_flight.is_reported && (before == 0) != (in_flight.count == 0) {
            self.report(&in_flight);
        }
    }

    fn report(&self, in_flight: &InFlight) {
        self.send(ToEngine::InFlight { requests: in_flight.count });
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.count(|count| count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiting;

    /// An engine that remembers how many requests a front reported as in flight.
    #[derive(Default)]
    struct Engine(Mutex<Vec<u64>>);

    impl EngineEndpoint for Engine {
        fn begin(&self) {}

        fn receive(&self, message: ToEngine) -> Option<Waiting> {
            if let ToEngine::InFlight { requests } = message {
                self.0.lock().push(requests);
            }
            None
        }
    }

    fn connect() -> (EngineLifecycle, Arc<Engine>, CancellationToken) {
        let (engine, closing) = (Arc::new(Engine::default()), CancellationToken::new());
        (EngineLifecycle::new(engine.clone(), closing.clone()), engine, closing)
    }

    fn drain(seconds: u64) -> LifecycleState {
        LifecycleState::Draining { time_left: Duration::from_secs(seconds) }
    }

    #[tokio::test]
    async fn requests_in_flight_are_reported_while_the_engine_drains() {
        let (lifecycle, engine, closing) = connect();
        drop(lifecycle.begin_request());
        let (one, other) = (lifecycle.begin_request(), lifecycle.begin_request());
        assert_eq!(*engine.0.lock(), [] as [u64; 0], "nobody waits for them");
        lifecycle.set(drain(10));
        drop(one);
        drop(other);
        drop(lifecycle.begin_request());
        assert_eq!(*engine.0.lock(), [2, 0, 1, 0]);
        assert!(lifecycle.is_draining() && !closing.is_cancelled());
        lifecycle.set(LifecycleState::Closing);
        assert!(lifecycle.is_draining() && closing.is_cancelled());
    }

    #[tokio::test]
    async fn the_next_engine_serves_and_waits_for_no_request() {
        let (lifecycle, engine, _) = connect();
        lifecycle.set(drain(10));
        lifecycle.set(LifecycleState::Serving);
        drop(lifecycle.begin_request());
        assert_eq!(*engine.0.lock(), [0]);
        assert!(!lifecycle.is_draining());
    }

    #[tokio::test]
    async fn those_who_are_turned_away_come_back_later_the_longer_it_may_take() {
        let (lifecycle, _, _) = connect();
        assert_eq!(lifecycle.retry_after(), RETRY_MIN);
        lifecycle.set(drain(40));
        lifecycle.draining().await;
        assert!((9..=10).contains(&lifecycle.retry_after().as_secs()));
    }
}
