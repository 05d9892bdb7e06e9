//! Why a request to an upstream server has no result.

use std::time::Duration;

use rmcp::model::ErrorData;

use crate::client::HttpError;

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ResponseError {
    /// The server answered with a JSON-RPC error, or Lockhouse replaced its answer by one.
    #[error("{}", .0.message)]
    Refused(ErrorData),
    /// The HTTP request failed.
    #[error("{0}")]
    Http(#[from] HttpError),
    /// The server does not know the MCP session any more, and refused the request in a new one as well.
    #[error("the MCP session is lost")]
    SessionLost,
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The connection ended.
    #[error("the connection ended")]
    Closed,
    /// A message cannot be sent or is not valid MCP.
    #[error("a message is not valid MCP")]
    Invalid,
}
