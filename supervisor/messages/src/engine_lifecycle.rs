//! What a front (which speaks MCP with AI clients) knows of the lifecycle of its engine (which runs programs), and what it
//! reports while the engine drains.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine_client::{EngineClient, Shared};
use crate::{LifecycleState, ToEngine};

/// Minimum time that AI clients are told to wait (`Retry-After`) when they are refused because the engine drains.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// The lifecycle of the engine, as its latest message says, and the requests of AI clients in flight.
#[derive(Debug, Default)]
pub(crate) struct EngineLifecycle {
    phase: watch::Sender<Phase>,
    in_flight: Mutex<InFlight>,
    /// How often the engine has asked for the TLS certificate to be read again.
    certificate_reloads: watch::Sender<u64>,
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
#[derive(Debug)]
pub struct RequestInFlight(Weak<Shared>);

impl EngineLifecycle {
    fn set(&self, state: LifecycleState) {
        self.phase.send_replace(match state {
            LifecycleState::Serving => Phase::Serving,
            LifecycleState::Draining { time_left } => {
                Phase::Draining { deadline: Instant::now() + time_left }
            }
            LifecycleState::Closing => Phase::Closing,
        });
    }

    pub(crate) fn request_certificate_reload(&self) {
        self.certificate_reloads.send_modify(|count| *count += 1);
    }
}

impl Shared {
    pub(crate) fn set_lifecycle(&self, state: LifecycleState) {
        self.lifecycle.set(state);
        let mut in_flight = self.lifecycle.in_flight.lock();
        match state {
            LifecycleState::Serving => in_flight.is_reported = false,
            LifecycleState::Draining { .. } => {
                in_flight.is_reported = true;
                self.send(ToEngine::InFlight { requests: in_flight.count });
            }
            LifecycleState::Closing => self.closing.cancel(),
        }
    }

    /// Changes the number of requests in flight. While the engine drains, reports each change from or to zero. The lock
    /// keeps these messages in order.
    fn count_in_flight(&self, change: impl FnOnce(u64) -> u64) {
        let mut in_flight = self.lifecycle.in_flight.lock();
        let before = std::mem::replace(&mut in_flight.count, 0);
        in_flight.count = change(before);
        if in_flight.is_reported && (before == 0) != (in_flight.count == 0) {
            self.send(ToEngine::InFlight { requests: in_flight.count });
        }
    }
}

impl EngineClient {
    /// Tells the engine that AI clients can connect to this front from now on. From then on, a drain of the engine waits
    /// for the requests that this front has not answered ([`Self::begin_request`]).
    pub fn announce_listening(&self) {
        self.shared().send(ToEngine::Listening);
    }

    /// Returns whether the engine drains or ends: a request that begins new work should be refused.
    pub fn is_draining(&self) -> bool {
        *self.shared().lifecycle.phase.borrow() != Phase::Serving
    }

    /// Waits until the engine drains or ends.
    pub async fn draining(&self) {
        let mut phase = self.shared().lifecycle.phase.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
    }

    /// Returns how long an AI client should wait before it retries a request that was refused because the engine drains.
    pub fn retry_after(&self) -> Duration {
        let left = match *self.shared().lifecycle.phase.borrow() {
            Phase::Serving | Phase::Closing => Duration::ZERO,
            Phase::Draining { deadline } => deadline.saturating_duration_since(Instant::now()),
        };
        // Most runs end long before the deadline.
        (left / 4).max(RETRY_MIN)
    }

    /// Counts a request of an AI client as in flight until the returned guard is dropped.
    pub fn begin_request(&self) -> RequestInFlight {
        self.shared().count_in_flight(|count| count + 1);
        RequestInFlight(Arc::downgrade(self.shared()))
    }

    /// Returns a receiver that changes each time when the engine asks for the TLS certificate to be read again.
    pub fn certificate_reloads(&self) -> watch::Receiver<u64> {
        self.shared().lifecycle.certificate_reloads.subscribe()
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.count_in_flight(|count| count.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{EngineEndpoint, FrontEndpoint, ToFront};

    /// An engine that remembers how many requests the front reported as in flight.
    #[derive(Default)]
    struct Engine {
        front: Mutex<Option<Weak<dyn FrontEndpoint>>>,
        reported: Mutex<Vec<u64>>,
    }

    impl EngineEndpoint for Engine {
        fn receive(&self, message: ToEngine) {
            if let ToEngine::InFlight { requests } = message {
                self.reported.lock().push(requests);
            }
        }
    }

    impl Engine {
        fn send(&self, state: LifecycleState) {
            let front = self.front.lock().as_ref().and_then(Weak::upgrade).expect("a front");
            front.send(ToFront::Lifecycle(state));
        }
    }

    fn connect() -> (EngineClient, Arc<Engine>, CancellationToken) {
        let (engine, closing) = (Arc::new(Engine::default()), CancellationToken::new());
        let connected = engine.clone();
        let client = EngineClient::connect(
            |front| {
                *connected.front.lock() = Some(front);
                connected.clone()
            },
            closing.clone(),
        );
        (client, engine, closing)
    }

    fn drain(seconds: u64) -> LifecycleState {
        LifecycleState::Draining { time_left: Duration::from_secs(seconds) }
    }

    #[tokio::test]
    async fn requests_in_flight_are_reported_while_the_engine_drains() {
        let (client, engine, closing) = connect();
        drop(client.begin_request());
        let (one, other) = (client.begin_request(), client.begin_request());
        assert_eq!(*engine.reported.lock(), [] as [u64; 0], "nobody waits for them");
        engine.send(drain(10));
        drop(one);
        drop(other);
        drop(client.begin_request());
        assert_eq!(*engine.reported.lock(), [2, 0, 1, 0]);
        assert!(client.is_draining() && !closing.is_cancelled());
        engine.send(LifecycleState::Closing);
        assert!(client.is_draining() && closing.is_cancelled());
    }

    #[tokio::test]
    async fn the_next_engine_serves_and_waits_for_no_request() {
        let (client, engine, _) = connect();
        engine.send(drain(10));
        engine.send(LifecycleState::Serving);
        drop(client.begin_request());
        assert_eq!(*engine.reported.lock(), [0]);
        assert!(!client.is_draining());
    }

    #[tokio::test]
    async fn those_who_are_turned_away_come_back_later_the_longer_it_may_take() {
        let (client, engine, _) = connect();
        assert_eq!(client.retry_after(), RETRY_MIN);
        engine.send(drain(40));
        client.draining().await;
        assert!((9..=10).contains(&client.retry_after().as_secs()));
    }
}
