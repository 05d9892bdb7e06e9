//! The MCP server over standard input and output, for one AI client.

use lockhouse_link::EngineClient;
use lockhouse_mcp::server::serve_lines;
use lockhouse_messages::{AccessRefusal, Credential};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::{AnswerSettings, ClientTransport, McpHandler};

/// Maximum size of a message from the AI client, in bytes. It is larger than the size limit for code, so that code that
/// is too long is answered with an error.
/// Bound: AI clients.
const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why serving an AI client over standard input and output failed.
#[derive(Debug, Error)]
pub enum StdioError {
    #[error("the connection to the AI client failed: {0}")]
    Broken(#[from] std::io::Error),
    #[error("the engine refused the connection: {}", .0.description())]
    Refused(AccessRefusal),
}

impl From<AccessRefusal> for StdioError {
    fn from(refusal: AccessRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Serves one AI client over standard input and output, until the client closes the pipe, which cancels `closing`, or
/// `closing` is cancelled.
///
/// # Errors
/// [`StdioError`]
pub async fn serve_stdio(
    engine: EngineClient,
    answers: AnswerSettings,
    closing: CancellationToken,
) -> Result<(), StdioError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let client = ClientTransport::Stdio(engine.authenticate(Credential::Connection).await?);
    let handler = McpHandler::new(engine, client, answers, closing.clone());
    Ok(serve_lines(input, output, LINE_BYTES_MAX, handler, closing).await?)
}
