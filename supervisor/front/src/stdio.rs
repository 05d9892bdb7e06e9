//! The MCP server over standard input and output, for one AI client.

mod line_parser;
mod line_transport;
mod line_writer;
#[cfg(test)]
mod tests;
mod tool_calls;

use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_link::EngineClient;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use thiserror::Error;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::cancel_on_eof::CancelOnEof;
use super::{AnswerSettings, ClientTransport, McpHandler};
use line_transport::LineTransport;
use tool_calls::ToolCalls;

/// Maximum size of a message from the AI client, in bytes. It is larger than the size limit for code, so that code that
/// is too long is answered with an error.
const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why serving an AI client over standard input and output failed.
#[derive(Debug, Error)]
pub enum StdioError {
    #[error("the connection to the AI client failed: {0}")]
    NotBegun(#[from] Box<ServerInitializeError>),
    #[error("the connection to the AI client failed: {0}")]
    Broken(#[from] JoinError),
}

/// Serves one AI client over standard input and output, until the client closes the pipe or `closing` is
/// cancelled.
pub async fn serve_stdio(
    engine: EngineClient,
    answers: AnswerSettings,
    closing: CancellationToken,
) -> Result<(), StdioError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let input = CancelOnEof::new(input, closing.clone());
    let client = ClientTransport::Stdio(Principal::for_new_connection());
    let handler = McpHandler::new(engine, client, answers, closing.clone());
    let tool_calls = Arc::new(ToolCalls::new(handler.clone(), closing.clone()));
    let transport = LineTransport::new(input, output, LINE_BYTES_MAX, tool_calls.clone());
    let running = tokio::select! {
        running = handler.serve(transport) => running,
        () = closing.cancelled() => return Ok(()),
    };
    match running {
        Ok(running) => {
            tool_calls.begin(running.peer().clone());
            tokio::select! {
                ended = running.waiting() => Ok(ended.map(drop)?),
                () = closing.cancelled() => Ok(()),
            }
        }
        // The AI client closed the pipe before `initialize`.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Box::new(error).into()),
    }
}
