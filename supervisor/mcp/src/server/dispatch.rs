//! Passes each message of an AI client to what handles it.

use std::sync::Arc;

use http::request::Parts;

use super::client_message::{ClientMessage, ClientNotification, ClientRequest};
use super::connection::{ClientConnection, IdInUse};
use super::context::RequestContext;
use super::lifecycle::{RequestHandler, answer};
use super::output::Output;

/// The head of the HTTP request that carried a message; `None` on standard input.
pub(super) type HttpHead = Option<Arc<Parts>>;

/// Begins to serve a request, in a task of its own. Its messages and its answer go to `output`.
///
/// # Errors
/// Another request with this id is in flight.
pub(super) fn begin_request(
    connection: &ClientConnection,
    request: ClientRequest,
    handler: impl RequestHandler,
    output: Arc<dyn Output>,
    http: HttpHead,
) -> Result<(), IdInUse> {
    let ClientRequest { id, method, meta, parameters } = request;
    let (cancelled, channel) = connection.add_request(&id, output)?;
    let context = RequestContext { id, meta, http, channel, cancelled };
    tokio::spawn(async move {
        let answer = answer(&handler, &method, parameters, &context).await;
        let RequestContext { id, cancelled, channel, .. } = context;
        channel.answer(id, &cancelled, answer).await;
    });
    Ok(())
}

/// Handles a notification, or an answer to a request of the server.
pub(super) fn receive(
    connection: &ClientConnection,
    message: ClientMessage,
    handler: &impl RequestHandler,
    http: &HttpHead,
) {
    match message {
        ClientMessage::Notification(ClientNotification::Initialized) => {
            if connection.begin() {
                handler.begin(connection, http.as_ref());
            }
        }
        ClientMessage::Notification(ClientNotification::Cancelled(id)) => connection.cancel(&id),
        ClientMessage::Notification(ClientNotification::Other) | ClientMessage::Request(_) => {}
        ClientMessage::Answer(id, answer) => connection.complete(&id, answer),
    }
}
