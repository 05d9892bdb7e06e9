//! Lets each peer use the event loop for one of its connections at one time. Without it, a peer whose hundreds of connections
//! are ready at once would delay everyone by the work of all of them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use futures_util::future::BoxFuture;
use futures_util::task::{ArcWake, AtomicWaker, waker};
use hyper::rt::Executor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limit_key::LimitKey;
use crate::access::ClientTurns;

/// The turns of all peers.
#[derive(Debug)]
pub(super) struct PeerTurns(ClientTurns);

/// The turns of one peer, for each of its connections; of a trusted proxy nothing waits, as it serves many clients. As an executor,
/// it runs the requests of an HTTP/2 connection in these turns.
#[derive(Clone, Debug)]
pub(super) struct Turns(Option<Arc<Semaphore>>);

impl Default for PeerTurns {
    fn default() -> Self {
        Self(ClientTurns::new(1))
    }
}

impl PeerTurns {
    /// Returns the turns of the peer `key`; `None` stands for a trusted proxy.
    pub(super) fn of(&self, key: Option<LimitKey>) -> Turns {
        Turns(key.map(|key| self.0.of(key)))
    }
}

impl Turns {
    /// Returns a future that is polled only in a turn. A turn lasts until the event loop has polled everything else that is ready.
    pub(super) fn run<F: Future>(self, future: F) -> InTurns<F> {
        let wake = Arc::new(Wake { is_woken: AtomicBool::new(true), task: AtomicWaker::new() });
        InTurns {
            future: Box::pin(future),
            turns: self.0,
            waker: waker(wake.clone()),
            wake,
            phase: Phase::Idle,
        }
    }
}

impl<F> Executor<F> for Turns
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        tokio::spawn(self.clone().run(future));
    }
}

/// Remembers whether the future was woken, since its task is also woken for its turns.
struct Wake {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl ArcWake for Wake {
    fn wake_by_ref(wake: &Arc<Self>) {
        wake.is_woken.store(true, Ordering::Release);
        wake.task.wake();
    }
}

/// A future that waits for a turn whenever it was woken.
pub(super) struct InTurns<F> {
    /// On the heap, because the task that polls it copies this value.
    future: Pin<Box<F>>,
    turns: Option<Arc<Semaphore>>,
    wake: Arc<Wake>,
    /// Wakes `wake`.
    waker: Waker,
    phase: Phase,
}

enum Phase {
    /// The future waits for what it was polled for.
    Idle,
    /// The future was woken and waits for a turn. `None` would mean that the semaphore is closed, and none is.
    Waiting(BoxFuture<'static, Option<OwnedSemaphorePermit>>),
    /// The future was polled in this turn, and others are polled before the turn ends.
    Polled { _turn: OwnedSemaphorePermit, others: BoxFuture<'static, ()> },
}

impl<F: Future> Future for InTurns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Some(turns) = &this.turns else { return this.future.as_mut().poll(context) };
        this.wake.task.register(context.waker());
        loop {
            match &mut this.phase {
                Phase::Idle if this.wake.is_woken.swap(false, Ordering::Acquire) => {
                    let turns = turns.clone();
                    this.phase = Phase::Waiting(Box::pin(async { turns.acquire_owned().await.ok() }));
                }
                Phase::Idle => return Poll::Pending,
                Phase::Waiting(turn) => {
                    let turn = ready!(turn.as_mut().poll(context));
                    if let Poll::Ready(output) =
                        this.future.as_mut().poll(&mut Context::from_waker(&this.waker))
                    {
                        return Poll::Ready(output);
                    }
                    this.phase = match turn {
                        Some(_turn) => Phase::Polled { _turn, others: Box::pin(tokio::task::yield_now()) },
                        None => Phase::Idle,
                    };
                }
                Phase::Polled { others, .. } => {
                    ready!(others.as_mut().poll(context));
                    this.phase = Phase::Idle;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::task::{JoinSet, yield_now};

    use super::*;

    fn peer(address: &str) -> Option<LimitKey> {
        Some(LimitKey::Address(address.parse().expect("an address")))
    }

    /// Runs `count` futures of a peer, each of which is ready three times, and records each time as `name`.
    fn start(tasks: &mut JoinSet<()>, turns: &Turns, count: usize, name: char, polls: &Arc<Mutex<String>>) {
        for _ in 0..count {
            let polls = polls.clone();
            tasks.spawn(turns.clone().run(async move {
                for _ in 0..3 {
                    polls.lock().push(name);
                    yield_now().await;
                }
            }));
        }
    }

    async fn order(others: Option<LimitKey>) -> String {
        let (turns, polls, mut tasks) = (PeerTurns::default(), Arc::default(), JoinSet::new());
        start(&mut tasks, &turns.of(others), 50, 'a', &polls);
        start(&mut tasks, &turns.of(peer("192.0.2.2")), 1, 'b', &polls);
        while tasks.join_next().await.is_some() {}
        polls.lock().clone()
    }

    #[tokio::test]
    async fn one_connection_of_a_peer_is_polled_as_often_as_all_of_another() {
        let order_of = order(peer("192.0.2.1")).await;
        let before_last = order_of.rfind('b').expect("a poll of the second peer");
        assert_eq!(order_of.matches('a').count(), 150);
        assert!(before_last < 10, "{order_of}");
    }

    #[tokio::test]
    async fn without_turns_it_waits_for_all_of_the_others() {
        let order = order(None).await;
        assert!(order.rfind('b').is_some_and(|last| last > 100), "{order}");
    }

    #[tokio::test]
    async fn a_future_that_is_dropped_gives_its_turn_to_others() {
        let turns = PeerTurns::default().of(peer("192.0.2.1"));
        let endless = tokio::spawn(turns.clone().run(std::future::pending::<()>()));
        let waiting = tokio::spawn(turns.clone().run(std::future::pending::<()>()));
        yield_now().await;
        endless.abort();
        waiting.abort();
        assert_eq!(turns.run(async { 1 }).await, 1);
    }
}
