//! One exchange between front and engine. The front sends a request and inputs, and the engine sends events. The
//! response of the engine ends the exchange.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lockhouse_link::{Counted, FrontEndpoint, Waiting};
use lockhouse_messages::{EVENTS_AHEAD_MAX, Event, ExchangeId, Input, Response, ToFront};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

/// Maximum number of inputs (such as answers to questions) of one exchange that are queued. It is higher than the number of
/// questions that one execution can have pending at the same time. A front that sends more gets an error.
/// Bound: engines and fronts.
const INPUTS_MAX: usize = 64;
/// Number of bytes that the open requests of a front in another process may use together. One request may need more.
/// Bound: engines and fronts.
const REQUEST_MEMORY_MAX: usize = 256 * 1024 * 1024;
/// Number of bytes that the inputs of a front in another process that no exchange has taken yet may use together.
/// Bound: engines and fronts.
const INPUT_MEMORY_MAX: usize = 64 * 1024 * 1024;

/// The open exchanges of a front.
#[derive(Clone, Default)]
pub(super) struct OpenExchanges(Arc<OpenExchangesInner>);

#[derive(Default)]
struct OpenExchangesInner {
    open: Mutex<HashMap<ExchangeId, OpenExchange>>,
    /// Number of responses that wait for room in the queue of the connection.
    unsent: Arc<AtomicUsize>,
    request_memory: Arc<AtomicUsize>,
    input_memory: Arc<AtomicUsize>,
}

struct OpenExchange {
    inputs: mpsc::Sender<QueuedInput>,
    credit: Credit,
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        // A task that waits for credit would wait for ever.
        self.credit.0.close();
    }
}

/// An input that its exchange has not taken yet.
struct QueuedInput {
    input: Input,
    _memory: Counted,
}

/// Why an input does not reach its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyInputs;

/// The number of events of one exchange that the engine may still send before the front has passed on earlier ones.
#[derive(Clone)]
pub(super) struct Credit(Arc<Semaphore>);

impl Credit {
    /// Waits until one more event may be sent, or the exchange is closed.
    pub(super) async fn available(&self) {
        let _ = self.0.acquire().await;
    }

    /// Takes the credit for one event. Returns false if the exchange is closed.
    async fn take(&self) -> bool {
        self.0.acquire().await.map(SemaphorePermit::forget).is_ok()
    }

    /// Permits further events. A front cannot permit more than it could at the beginning.
    fn add(&self, count: u32) {
        let room = (EVENTS_AHEAD_MAX as usize).saturating_sub(self.0.available_permits());
        self.0.add_permits(room.min(count as usize));
    }
}

/// The engine's end of an exchange with the front. If this value is dropped without a response, the front gets
/// `Response::DeadlineExceeded` or `Response::EngineFailed`.
pub(super) struct EngineExchange {
    id: ExchangeId,
    front: Weak<dyn FrontEndpoint>,
    inputs: mpsc::Receiver<QueuedInput>,
    credit: Credit,
    /// When the front no longer waits for the response; `None` if it waits until it closes the exchange.
    deadline: Option<Instant>,
    open_exchanges: OpenExchanges,
}

impl OpenExchanges {
    /// Returns the number of exchanges that need memory: those that are open, and those whose response the front has not
    /// read.
    pub(super) fn len(&self) -> usize {
        self.0.open.lock().len() + self.0.unsent.load(Ordering::Relaxed)
    }

    pub(super) fn contains(&self, id: ExchangeId) -> bool {
        self.0.open.lock().contains_key(&id)
    }

    /// Counts the memory of a request. Returns `None` if the open requests need too much.
    pub(super) fn reserve(&self, bytes: usize) -> Option<Counted> {
        Counted::new(&self.0.request_memory, bytes, REQUEST_MEMORY_MAX)
    }

    /// Opens an exchange with a front.
    pub(super) fn open(
        &self,
        id: ExchangeId,
        front: Weak<dyn FrontEndpoint>,
        time_left: Option<Duration>,
    ) -> EngineExchange {
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let credit = Credit(Arc::new(Semaphore::new(EVENTS_AHEAD_MAX as usize)));
        self.0.open.lock().insert(id, OpenExchange { inputs: sender, credit: credit.clone() });
        let deadline = time_left.and_then(|time_left| Instant::now().checked_add(time_left));
        EngineExchange { id, front, inputs, credit, deadline, open_exchanges: self.clone() }
    }

    /// Closes an exchange. Returns whether it was open. Its input ends, which its task notices.
    pub(super) fn close(&self, id: ExchangeId) -> bool {
        self.0.open.lock().remove(&id).is_some()
    }

    /// Closes all exchanges: the front has disconnected.
    pub(super) fn close_all(&self) {
        let open = std::mem::take(&mut *self.0.open.lock());
        drop(open);
    }

    /// Passes an input, which needs this number of bytes, to its exchange.
    ///
    /// # Errors
    /// Too many inputs wait already. The exchange is then closed.
    pub(super) fn input(&self, id: ExchangeId, input: Input, bytes: usize) -> Result<(), TooManyInputs> {
        let mut open = self.0.open.lock();
        let Some(exchange) = open.get(&id) else { return Ok(()) };
        let is_queued = Counted::new(&self.0.input_memory, bytes, INPUT_MEMORY_MAX).is_some_and(|memory| {
            let queued = exchange.inputs.try_send(QueuedInput { input, _memory: memory });
            !matches!(queued, Err(mpsc::error::TrySendError::Full(_)))
        });
        if is_queued {
            return Ok(());
        }
        open.remove(&id);
        Err(TooManyInputs)
    }

    pub(super) fn add_credit(&self, id: ExchangeId, count: u32) {
        if let Some(exchange) = self.0.open.lock().get(&id) {
            exchange.credit.add(count);
        }
    }

    /// Returns a future that waits until a response is in the queue of the connection. Until then, the exchange counts as
    /// open.
    fn count_unsent(&self, waiting: Waiting) -> Waiting {
        let counted = Counted::new(&self.0.unsent, 1, usize::MAX);
        Box::pin(async move {
            waiting.await;
            drop(counted);
        })
    }
}

impl EngineExchange {
    /// Returns the next input from the front, or `None` once the front closed the exchange.
    pub(super) async fn input(&mut self) -> Option<Input> {
        Some(self.inputs.recv().await?.input)
    }

    /// Waits until the front closes the exchange. Ignores the front's inputs.
    pub(super) async fn closed(&mut self) {
        while self.input().await.is_some() {}
    }

    /// Returns the credit of the exchange. Whoever produces events waits for it first, so that [`Self::send`] does not wait
    /// while an input arrives.
    pub(super) fn credit(&self) -> Credit {
        self.credit.clone()
    }

    /// Sends an event when the front may get one more and the connection to the front has room for it. Does nothing if the
    /// exchange is closed.
    pub(super) async fn send(&self, event: Event) {
        if !event.answers_input() && !self.credit.take().await {
            return;
        }
        let waiting = self.front.upgrade().and_then(|front| front.send(ToFront::Event(self.id, event)));
        if let Some(waiting) = waiting {
            waiting.await;
        }
    }

    /// Ends the exchange with a response, when the connection to the front has room for it.
    pub(super) async fn end(self, response: Response) {
        if let Some(waiting) = self.respond(response) {
            waiting.await;
        }
    }

    fn respond(&self, response: Response) -> Option<Waiting> {
        let is_open = self.open_exchanges.close(self.id);
        let front = self.front.upgrade().filter(|_| is_open)?;
        let waiting = front.send(ToFront::Response(self.id, response))?;
        Some(self.open_exchanges.count_unsent(waiting))
    }
}

impl Drop for EngineExchange {
    fn drop(&mut self) {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let response = if is_late { Response::DeadlineExceeded } else { Response::EngineFailed };
        if let (Some(waiting), Ok(runtime)) = (self.respond(response), Handle::try_current()) {
            // A front that gets no response would wait for ever.
            runtime.spawn(waiting);
        }
    }
}

#[cfg(test)]
mod tests;
