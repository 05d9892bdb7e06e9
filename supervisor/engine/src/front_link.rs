//! The engine's end of the connection to a front or an operator's command in another process.

use std::io::Result;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_link::{
    self as link, EngineEndpoint, FROM_FRONT, FROM_HOST, FROM_OPERATOR, FromFront, FrontEndpoint,
    OutboxSender, Parts, Queued, Receiver, Waiting, greetings, memory_of, outbox, read_from_front, to_parts,
};
use lockhouse_messages::{ExchangeId, GreetingReply, Repetition, Response, ToEngine, ToFront};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::front_connection::{FrontConnection, FrontKind};
use crate::supervisor::Supervisor;

/// Maximum time for the answers that are still in the queue of a connection when it ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Welcomes a front whose greeting was accepted, and serves it until its connection ends, or this process stops serving.
/// `has_successor` says whether the front sends requests that arrive during a drain to the next engine.
///
/// # Errors
/// The connection is broken, or the front does not keep to the protocol.
pub(crate) async fn serve(
    supervisor: &Arc<Supervisor>,
    version: u32,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    kind: FrontKind,
    has_successor: bool,
) -> Result<()> {
    let incarnation = Some(supervisor.incarnation());
    greetings::write(writer, &GreetingReply::Welcome { version, incarnation }).await?;
    let limits = match &kind {
        FrontKind::Operator(_) => FROM_OPERATOR,
        FrontKind::Client(_) | FrontKind::Http(_) => FROM_FRONT,
        FrontKind::Host(_) => FROM_HOST,
    };
    let needs_begun = !matches!(kind, FrontKind::Http(_) | FrontKind::Host(_));
    let (sender, outbox) = outbox();
    let front: Arc<dyn FrontEndpoint> = Arc::new(SocketFront(sender.clone()));
    let connection = FrontConnection::remote(supervisor, Arc::downgrade(&front), kind);
    connection.begin();
    let lifecycle = supervisor.lifecycle();
    let closed = async {
        lifecycle.closing().cancelled().await;
        // A front without another engine closes the connection itself, when it has sent its last responses.
        if has_successor {
            // What is in the queue is still sent.
            sender.close();
        }
        std::future::pending::<()>().await;
    };
    let draining = has_successor.then(|| lifecycle.draining());
    let mut receiver =
        FromFrontReceiver { connection: &connection, front: &front, sender: &sender, draining, needs_begun };
    let serving = link::serve(reader, writer, limits, &sender, outbox, &mut receiver);
    let closing = async {
        lifecycle.closing().cancelled().await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
    };
    let result = tokio::select! {
        result = serving => result,
        () = closed => Ok(()),
        () = closing => Ok(()),
    };
    drop(connection.receive(ToEngine::Goodbye));
    result
}

/// The sending side of the connection to a front.
#[derive(Debug)]
struct SocketFront(OutboxSender);

impl FrontEndpoint for SocketFront {
    fn receive(&self, message: ToFront) -> Option<Waiting> {
        let id = message.exchange().unwrap_or(ExchangeId(0));
        let is_session_message = matches!(message, ToFront::SessionMessage(_));
        let (can_wait, is_response) = match &message {
            ToFront::Event(..) => (true, false),
            ToFront::Response(..) => (true, true),
            ToFront::Settings(_)
            | ToFront::Lifecycle(_)
            | ToFront::AccessEnded { .. }
            | ToFront::SessionMessage(_)
            | ToFront::Begun(_) => (false, false),
        };
        let parts = match to_parts(message) {
            Ok(parts) => parts,
            Err(error) => {
                tracing::error!("a message to a front was dropped: {error}");
                if is_response {
                    self.send_urgent(ToFront::Response(id, Response::EngineFailed));
                }
                return None;
            }
        };
        if is_session_message {
            if !matches!(self.0.send(id, parts), Queued::Done) {
                tracing::debug!("a message for an MCP session is dropped: the front does not read");
            }
            return None;
        }
        if !can_wait {
            self.0.send_urgent(id, parts);
            return None;
        }
        match self.0.send(id, parts) {
            Queued::Done => None,
            Queued::Waits(waiting) => Some(waiting),
            Queued::Refused(_) if is_response => {
                let reason = "too many large answers wait until this client has read them; ask again later";
                self.send_urgent(ToFront::Response(id, Response::Unavailable(reason.to_owned())));
                None
            }
            // Events are short, and the front must not miss one.
            Queued::Refused(parts) => {
                self.0.send_urgent(id, parts);
                None
            }
        }
    }
}

impl SocketFront {
    fn send_urgent(&self, message: ToFront) {
        let id = message.exchange().unwrap_or(ExchangeId(0));
        if let Ok(parts) = to_parts(message) {
            self.0.send_urgent(id, parts);
        }
    }
}

/// Takes the messages of a front.
struct FromFrontReceiver<'f> {
    connection: &'f FrontConnection,
    front: &'f Arc<dyn FrontEndpoint>,
    sender: &'f OutboxSender,
    /// Cancelled when requests with effects are left to the next engine. `None` if there is no next engine.
    draining: Option<&'f CancellationToken>,
    /// Whether the front needs [`ToFront::Begun`]: one for HTTP ends with its engine, and another host repeats nothing.
    needs_begun: bool,
}

impl Receiver for FromFrontReceiver<'_> {
    async fn receive(&mut self, _: ExchangeId, parts: Parts) -> Result<()> {
        let bytes = memory_of(&parts);
        let waiting = match read_from_front(parts)? {
            FromFront::Message(message) => {
                if let ToEngine::Request(id, _, request) = &message
                    && request.repetition() == Repetition::Never
                {
                    // The front sends it to the next engine, since this one does not begin it.
                    if self.draining.is_some_and(CancellationToken::is_cancelled) {
                        return Ok(());
                    }
                    if self.needs_begun {
                        self.sender.send_urgent_and_wait(*id, to_parts(ToFront::Begun(*id))?).await?;
                    }
                }
                self.connection.receive_from_process(message, bytes)
            }
            FromFront::Refused(id, response) => {
                // A request of which an input cannot be read ends here too.
                drop(self.connection.receive(ToEngine::Close(id)));
                self.front.send(ToFront::Response(id, response))
            }
            FromFront::Skipped => {
                tracing::debug!("skipped a message of a newer version of a front");
                None
            }
        };
        // A front that does not read its responses is not read either.
        if let Some(waiting) = waiting {
            waiting.await;
        }
        Ok(())
    }
}
