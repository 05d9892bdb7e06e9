//! Where messages to an AI client go: to the lines of standard output, or to an event stream over HTTP.

use futures_util::future::BoxFuture;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest};

/// The connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Takes the messages of a connection, or of one request. Each is JSON text on one line, without its line feed.
pub(crate) trait Output: Send + Sync + 'static {
    /// Sends a message. Waits while the client does not read.
    fn send(&self, message: String) -> BoxFuture<'_, Result<(), Closed>>;

    /// Sends the answer to a request, and expects no more messages for it.
    fn answer(&self, id: RequestId, answer: Result<String, ErrorData>) -> BoxFuture<'_, Result<(), Closed>> {
        self.send(answer_text(id, answer))
    }

    /// Expects no more messages for a request that is not answered, since the client has cancelled it.
    fn abandon(&self) {}
}

/// Returns the message that answers a request.
pub(super) fn answer_text(id: RequestId, answer: Result<String, ErrorData>) -> String {
    match answer {
        Ok(result) => {
            let id = serde_json::to_string(&id).unwrap_or_default();
            let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
            // A large result stays where it is in memory.
            let mut message = result;
            message.reserve(head.len() + 2);
            message.insert_str(0, &head);
            message.push('}');
            message
        }
        Err(error) => error_text(Some(id), error),
    }
}

/// Returns an error as a message. `id` is the id of the request that it answers, if one is known.
pub(super) fn error_text(id: Option<RequestId>, error: ErrorData) -> String {
    to_text(&ServerJsonRpcMessage::error(error, id))
}

pub(super) fn notification_text(notification: ServerNotification) -> String {
    to_text(&ServerJsonRpcMessage::notification(notification))
}

pub(super) fn request_text(request: ServerRequest, id: RequestId) -> String {
    to_text(&ServerJsonRpcMessage::request(request, id))
}

/// Serializes a message. rmcp's types have no keys that are not strings, so this does not fail.
fn to_text(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
