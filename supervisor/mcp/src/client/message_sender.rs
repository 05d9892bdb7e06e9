//! How messages go to an upstream server: as lines, or as HTTP requests.

use futures_util::future::BoxFuture;

use crate::answer_error::ResponseError;

/// Sends the messages of one connection. Each is one line of JSON text, with its line feed.
pub trait MessageSender: Send + Sync + 'static {
    /// Begins to send a request with this id, and does not wait. If sending fails later, the request is completed with the
    /// error.
    ///
    /// # Errors
    /// Fails if the connection has ended, or if too many requests wait to be sent.
    fn send_request(&self, id: i64, line: Vec<u8>) -> Result<(), ResponseError>;

    /// Begins to cancel the request with this id at the server, and does not wait. `notification` is the message with which
    /// the server is told, if the transport has no other way.
    fn cancel_request(&self, id: i64, notification: Vec<u8>);

    /// Sends a notification, or an answer to a request of the server, and waits until it is sent.
    fn send(&self, line: Vec<u8>) -> BoxFuture<'_, Result<(), ResponseError>>;

    /// Ends the connection, and waits until the server is told.
    fn close(&self) -> BoxFuture<'_, ()>;
}
