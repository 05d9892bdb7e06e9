//! One exchange between front and engine. The front sends a request and inputs, and the engine sends events. The
//! response of the engine ends the exchange.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockhouse_link::FrontEndpoint;
use lockhouse_messages::{Event, ExchangeId, Input, Response, ToFront};
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// The engine's end of an exchange with the front (the part that serves AI clients). If this value is dropped
/// without a response, the front gets `Response::EngineFailed`.
pub(super) struct Exchange {
    pub(super) id: ExchangeId,
    pub(super) front: Weak<dyn FrontEndpoint>,
    pub(super) inputs: mpsc::Receiver<Input>,
    pub(super) open_exchanges: Arc<Mutex<HashMap<ExchangeId, mpsc::Sender<Input>>>>,
}

impl Exchange {
    /// Returns the next input from the front (the part that serves AI clients), or `None` once the front
    /// closed the exchange.
    pub(super) async fn input(&mut self) -> Option<Input> {
        self.inputs.recv().await
    }

    /// Waits until the front (the part that serves AI clients) closes the exchange. Ignores the front's
    /// inputs.
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
        let is_open = self.open_exchanges.lock().remove(&self.id).is_some();
        if let Some(front) = self.front.upgrade().filter(|_| is_open) {
            front.send(ToFront::Response(self.id, response));
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.respond(Response::EngineFailed);
    }
}
