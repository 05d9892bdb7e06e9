//! An operator's connection to the process of one engine. It is not opened again when it is lost: the next process is
//! another one, which an operator asks for itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use lockhouse_messages::{
    Credential, ExchangeId, Greeting, GreetingReply, InputSupport, OperatorRequest, OperatorResponse,
    Request, Response, ToEngine, ToFront, VERSIONS, WatcherRole,
};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{self, FROM_ENGINE};
use crate::encoding::to_parts;
use crate::endpoints::FromEngine;
use crate::engine_client::{EngineClient, Exchange};
use crate::granted_access::GrantedAccess;
use crate::greetings;
use crate::outbox::{OutboxSender, Waiting, outbox};
use crate::{EngineEndpoint, FrontEndpoint};

/// Why an engine did not answer an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorError {
    /// The process is of a version that does not know the request, or this protocol.
    OtherVersion,
    /// The process refused the operator. The text is the reason.
    Refused(String),
    /// The process has closed the connection, or failed.
    NoAnswer,
}

/// An operator's connection to the process of one engine. Dropping this value closes it.
pub struct OperatorClient {
    client: EngineClient,
    access: GrantedAccess,
    _closing: DropGuard,
}

impl OperatorClient {
    /// Exchanges greetings with an engine, and gets the access of the connection. The caller limits the time.
    ///
    /// # Errors
    /// Why the engine does not serve this connection.
    pub async fn connect<S>(stream: S) -> Result<Self, OperatorError>
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut reader = BufReader::new(reader);
        shake_hands(&mut reader, &mut writer).await?;
        let (sender, outbox) = outbox();
        let (closing, lost) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let mut front = None;
        let client = EngineClient::connect(
            |end| {
                let front = front.insert(end).clone();
                Arc::new(Link { front, sender: sender.clone(), lost: lost.clone() })
            },
            closing.clone(),
        );
        let front: Weak<dyn FrontEndpoint> = front.ok_or(OperatorError::NoAnswer)?;
        let (ends, shared) = (closing.clone(), Arc::downgrade(client.shared()));
        tokio::spawn(async move {
            let mut receiver = FromEngine(front);
            let serving =
                connection::serve(&mut reader, &mut writer, FROM_ENGINE, &sender, outbox, &mut receiver);
            if let Some(Err(error)) = ends.run_until_cancelled(serving).await {
                tracing::debug!("the connection to an engine ended: {error}");
            }
            // First, so that no request is added after the open ones have ended.
            lost.store(true, Ordering::Release);
            if let Some(shared) = shared.upgrade() {
                shared.end_all();
            }
        });
        let closing = closing.drop_guard();
        let access = client.authenticate(Credential::Connection).await;
        let access = access.map_err(|refusal| OperatorError::Refused(refusal.description().into_owned()))?;
        Ok(Self { client, access, _closing: closing })
    }

    /// Sends a request, and waits for its response. The caller limits the time.
    ///
    /// # Errors
    /// Why the engine did not carry the request out, as far as is known.
    pub async fn ask(&self, request: OperatorRequest) -> Result<OperatorResponse, OperatorError> {
        match self.client.ask(&self.access, None, Request::Operator(request)).await {
            Response::Operator(response) => Ok(response),
            Response::Refused(refusal) => Err(OperatorError::Refused(refusal.description().into_owned())),
            Response::Invalid(_) => Err(OperatorError::OtherVersion),
            _ => Err(OperatorError::NoAnswer),
        }
    }

    /// Watches the questions about calls that require approval, until the exchange is dropped.
    pub async fn watch_approvals(&self, role: WatcherRole) -> Exchange {
        let request = Request::WatchApprovals(role);
        self.client.open(&self.access, None, InputSupport::default(), request).await
    }
}

/// Sends the greeting, and reads the reply. Engines of versions before this protocol read a line, and answer with a line
/// that begins with `{`, while the length of a reply begins with zero.
async fn shake_hands(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<(), OperatorError> {
    let broken = |_| OperatorError::NoAnswer;
    greetings::write_line(writer, &Greeting::new(None)).await.map_err(broken)?;
    if reader.fill_buf().await.map_err(broken)?.first() == Some(&b'{') {
        return Err(OperatorError::OtherVersion);
    }
    match greetings::read(reader).await.map_err(broken)? {
        Some(GreetingReply::Welcome { .. }) => Ok(()),
        Some(GreetingReply::Unsupported { version }) => {
            tracing::debug!("an engine speaks version {version}, and this program {}", VERSIONS.newest);
            Err(OperatorError::OtherVersion)
        }
        Some(GreetingReply::OtherSetup | GreetingReply::Busy) | None => Err(OperatorError::NoAnswer),
    }
}

/// The sending side of the connection.
struct Link {
    front: Weak<dyn FrontEndpoint>,
    sender: OutboxSender,
    /// Set when the connection has ended.
    lost: Arc<AtomicBool>,
}

impl EngineEndpoint for Link {
    fn begin(&self) {}

    fn receive(&self, message: ToEngine) -> Option<Waiting> {
        let id = message.exchange();
        let is_request = matches!(message, ToEngine::Request(..));
        if is_request && self.lost.load(Ordering::Acquire) {
            let reason = "the connection to the engine has ended".to_owned();
            if let (Some(id), Some(front)) = (id, self.front.upgrade()) {
                drop(front.receive(ToFront::Response(id, Response::Unavailable(reason))));
            }
            return None;
        }
        let parts = to_parts(message).ok()?;
        // What an operator sends is short.
        self.sender.send_urgent(id.unwrap_or(ExchangeId(0)), parts);
        None
    }
}

#[cfg(test)]
mod tests;
