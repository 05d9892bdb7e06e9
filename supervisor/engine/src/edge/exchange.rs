//! One exchange, as the task that serves it has it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockhouse_messages::{Event, ExchangeId, FrontEnd, Input, Response, ToFront};
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// The task's end of an exchange. One that is dropped without a response has failed, and its front hears so.
pub(super) struct Exchange {
    pub(super) id: ExchangeId,
    pub(super) front: Weak<dyn FrontEnd>,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) open: Arc<Mutex<HashMap<ExchangeId, mpsc::Sender<Input>>>>,
}

impl Exchange {
    /// What the front says next. None once nobody follows it.
    pub(super) async fn input(&mut self) -> Option<Input> {
        self.inputs.recv().await
    }

    /// Waits until nobody follows it.
    pub(super) async fn closed(&mut self) {
        while self.input().await.is_some() {}
    }

    pub(super) fn send(&self, event: Event) {
        if let Some(front) = self.front.upgrade() {
            front.send(ToFront::Event(self.id, event));
        }
    }

    pub(super) fn end(self, response: Response) {
        self.respond(response);
    }

    fn respond(&self, response: Response) {
        let is_open = self.open.lock().remove(&self.id).is_some();
        if let Some(front) = self.front.upgrade().filter(|_| is_open) {
            front.send(ToFront::Response(self.id, response));
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.respond(Response::Broken);
    }
}
