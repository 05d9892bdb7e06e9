//! One exchange between front and engine. The front sends a request and inputs, and the engine sends events. The
//! response of the engine ends the exchange.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use lockhouse_link::FrontEndpoint;
use lockhouse_messages::{EVENTS_AHEAD_MAX, Event, ExchangeId, Input, Response, ToFront};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};

/// Maximum number of inputs (such as answers to questions) of one exchange that are queued. It is higher than the number of
/// questions that one execution can have pending at the same time. A front that sends more gets an error.
const INPUTS_MAX: usize = 64;

/// The open exchanges of a front.
#[derive(Clone, Default)]
pub(super) struct OpenExchanges(Arc<Mutex<HashMap<ExchangeId, OpenExchange>>>);

struct OpenExchange {
    inputs: mpsc::Sender<Input>,
    credit: Credit,
}

/// The number of events of one exchange that the engine may still send before the front has passed on earlier ones.
#[derive(Clone)]
pub(super) struct Credit(Arc<Semaphore>);

impl Credit {
    /// Waits until one more event may be sent.
    pub(super) async fn available(&self) {
        // The semaphore is never closed.
        let _ = self.0.acquire().await;
    }

    async fn take(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }

    /// Permits further events. A front cannot permit more than it could at the beginning.
    fn add(&self, count: u32) {
        let room = (EVENTS_AHEAD_MAX as usize).saturating_sub(self.0.available_permits());
        self.0.add_permits(room.min(count as usize));
    }
}

/// The engine's end of an exchange with the front. If this value is dropped without a response, the front gets
/// `Response::DeadlineExceeded` or `Response::EngineFailed`.
pub(super) struct Exchange {
    id: ExchangeId,
    front: Weak<dyn FrontEndpoint>,
    inputs: mpsc::Receiver<Input>,
    credit: Credit,
    /// When the front no longer waits for the response; `None` if it waits until it closes the exchange.
    deadline: Option<Instant>,
    open_exchanges: OpenExchanges,
}

impl OpenExchanges {
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Opens an exchange with a front.
    pub(super) fn open(
        &self,
        id: ExchangeId,
        front: Weak<dyn FrontEndpoint>,
        time_left: Option<Duration>,
    ) -> Exchange {
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let credit = Credit(Arc::new(Semaphore::new(EVENTS_AHEAD_MAX as usize)));
        self.0.lock().insert(id, OpenExchange { inputs: sender, credit: credit.clone() });
        let deadline = time_left.and_then(|time_left| Instant::now().checked_add(time_left));
        Exchange { id, front, inputs, credit, deadline, open_exchanges: self.clone() }
    }

    /// Closes an exchange. Returns whether it was open. Its input ends, which its task notices.
    pub(super) fn close(&self, id: ExchangeId) -> bool {
        self.0.lock().remove(&id).is_some()
    }

    /// Passes an input to its exchange. Returns false if the exchange has too many inputs already, and closes it.
    pub(super) fn input(&self, id: ExchangeId, input: Input) -> bool {
        let mut open = self.0.lock();
        let is_full = open.get(&id).is_some_and(|exchange| {
            matches!(exchange.inputs.try_send(input), Err(mpsc::error::TrySendError::Full(_)))
        });
        if is_full {
            open.remove(&id);
        }
        !is_full
    }

    pub(super) fn add_credit(&self, id: ExchangeId, count: u32) {
        if let Some(exchange) = self.0.lock().get(&id) {
            exchange.credit.add(count);
        }
    }
}

impl Exchange {
    /// Returns the next input from the front, or `None` once the front closed the exchange.
    pub(super) async fn input(&mut self) -> Option<Input> {
        self.inputs.recv().await
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

    /// Sends an event when the front may get one more and the connection to the front has room for it.
    pub(super) async fn send(&self, event: Event) {
        if !event.answers_input() {
            self.credit.take().await;
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

    fn respond(&self, response: Response) -> Option<lockhouse_link::Waiting> {
        let is_open = self.open_exchanges.close(self.id);
        let front = self.front.upgrade().filter(|_| is_open)?;
        front.send(ToFront::Response(self.id, response))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let response = if is_late { Response::DeadlineExceeded } else { Response::EngineFailed };
        drop(self.respond(response));
    }
}
