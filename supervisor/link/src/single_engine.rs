//! The connection of a front to one engine: that whose process started the front's process, or that of another host. No other
//! engine takes its place.

use std::sync::{Arc, Weak};

use lockhouse_messages::{ExchangeId, Greeting, GreetingReply, LifecycleState, Response, ToEngine, ToFront};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

use crate::assembler::MessageLimits;
use crate::connection;
use crate::encoding::to_parts;
use crate::endpoints::{EngineEndpoint, FromEngine, FrontEndpoint};
use crate::greetings;
use crate::outbox::{OutboxSender, OutboxWriter, Queued, Waiting};

/// The front's end of the connection.
pub(crate) struct SingleEngine {
    front: Weak<dyn FrontEndpoint>,
    sender: OutboxSender,
}

/// Greets the engine, and waits until it serves the front.
///
/// # Errors
/// The engine ended, or does not serve the front.
pub(crate) async fn greet(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    setup: Option<String>,
) -> std::io::Result<()> {
    greetings::write(writer, &Greeting::new(setup)).await?;
    match greetings::read(reader).await? {
        Some(GreetingReply::Welcome { .. }) => Ok(()),
        Some(GreetingReply::Unsupported { .. }) => {
            Err(std::io::Error::other("the engine is of another version"))
        }
        Some(GreetingReply::OtherSetup | GreetingReply::Busy) => {
            Err(std::io::Error::other("the engine does not accept the connection"))
        }
        None => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

impl SingleEngine {
    pub(crate) fn new(front: Weak<dyn FrontEndpoint>, sender: OutboxSender) -> Arc<Self> {
        Arc::new(Self { front, sender })
    }

    /// Reads and writes messages until the connection ends, and then ends the front.
    pub(crate) async fn serve(
        &self,
        reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
        limits: MessageLimits,
        outbox: OutboxWriter,
    ) {
        let mut reader = BufReader::new(reader);
        let mut from_engine = FromEngine(self.front.clone());
        let served =
            connection::serve(&mut reader, &mut writer, limits, &self.sender, outbox, &mut from_engine).await;
        if let Err(error) = served {
            tracing::warn!("the connection to the engine is lost: {error}");
        }
        if let Some(front) = self.front.upgrade() {
            drop(front.receive(ToFront::Lifecycle(LifecycleState::Closing)));
        }
    }
}

impl EngineEndpoint for SingleEngine {
    fn begin(&self) {}

    fn receive(&self, message: ToEngine) -> Option<Waiting> {
        let id = message.exchange().unwrap_or(ExchangeId(0));
        let is_request = matches!(message, ToEngine::Request(..));
        let Ok(parts) = to_parts(message) else { return None };
        if !is_request {
            self.sender.send_urgent(id, parts);
            return None;
        }
        match self.sender.send(id, parts) {
            Queued::Done => None,
            Queued::Waits(waiting) => Some(waiting),
            Queued::Refused(_) => {
                let reason = "too many large requests are open; wait for their answers first".to_owned();
                if let Some(front) = self.front.upgrade() {
                    drop(front.receive(ToFront::Response(id, Response::Unavailable(reason))));
                }
                None
            }
        }
    }
}
