//! The connection of a front to the engine whose process started the front's process. The front ends with this connection:
//! no other engine has its AI clients.

use std::sync::{Arc, Weak};

use interprocess::local_socket::tokio::Stream;
use lockhouse_messages::{ExchangeId, Greeting, GreetingReply, LifecycleState, Response, ToEngine, ToFront};
use tokio::io::BufReader;

use crate::connection::{self, FROM_ENGINE};
use crate::encoding::to_parts;
use crate::endpoints::{EngineEndpoint, FromEngine, FrontEndpoint};
use crate::greetings;
use crate::outbox::{OutboxSender, OutboxWriter, Queued, Waiting};

/// The front's end of the connection.
pub(crate) struct ParentEngine {
    front: Weak<dyn FrontEndpoint>,
    sender: OutboxSender,
}

/// Greets the engine, and waits until it serves the front.
///
/// # Errors
/// The engine ended, or does not serve the front.
pub(crate) async fn greet(stream: &Stream) -> std::io::Result<()> {
    greetings::write(&mut &*stream, &Greeting::new(None)).await?;
    match greetings::read(&mut &*stream).await? {
        Some(GreetingReply::Welcome { .. }) => Ok(()),
        Some(GreetingReply::Unsupported { .. } | GreetingReply::OtherSetup | GreetingReply::Busy) => {
            Err(std::io::Error::other("the engine is of another version"))
        }
        None => Err(std::io::ErrorKind::UnexpectedEof.into()),
    }
}

impl ParentEngine {
    pub(crate) fn new(front: Weak<dyn FrontEndpoint>, sender: OutboxSender) -> Arc<Self> {
        Arc::new(Self { front, sender })
    }

    /// Reads and writes messages until the connection ends, and then ends the front.
    pub(crate) async fn serve(&self, stream: &Stream, outbox: OutboxWriter) {
        let mut reader = BufReader::new(stream);
        let mut from_engine = FromEngine(self.front.clone());
        let mut writer = stream;
        let served =
            connection::serve(&mut reader, &mut writer, FROM_ENGINE, &self.sender, outbox, &mut from_engine)
                .await;
        if let Err(error) = served {
            tracing::warn!("the connection to the engine is lost: {error}");
        }
        if let Some(front) = self.front.upgrade() {
            drop(front.receive(ToFront::Lifecycle(LifecycleState::Closing)));
        }
    }
}

impl EngineEndpoint for ParentEngine {
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
