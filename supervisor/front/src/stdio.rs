//! One AI client over standard input and output.

use lockhouse_base::principal::Principal;
use lockhouse_messages::EngineClient;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use thiserror::Error;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use super::direct::raw::Unpacking;
use super::stdin::ClosingReader;
use super::{Door, Front};

/// One line of JSON from the AI client, bytes. Far above the limit for code, so that what is too long gets an answer.
const LINE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Why the AI client is served no more.
#[derive(Debug, Error)]
pub enum StdioError {
    #[error("the connection to the AI client failed: {0}")]
    NotBegun(#[from] Box<ServerInitializeError>),
    #[error("the connection to the AI client failed: {0}")]
    Broken(#[from] JoinError),
}

/// Serves one AI client over standard input and output, until it closes or `closing`.
pub async fn serve_stdio(engine: EngineClient, closing: CancellationToken) -> Result<(), StdioError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let input = ClosingReader::new(input, closing.clone());
    let transport =
        AsyncRwTransport::new_server(input, Unpacking::new(output)).with_max_line_length(LINE_BYTES_MAX);
    let door = Door::Pipe(Principal::of_connection());
    let front = Front::new(engine, door, closing.clone());
    let running = tokio::select! {
        running = front.serve(transport) => running,
        () = closing.cancelled() => return Ok(()),
    };
    match running {
        Ok(running) => tokio::select! {
            ended = running.waiting() => Ok(ended.map(drop)?),
            () = closing.cancelled() => Ok(()),
        },
        // It left before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Box::new(error).into()),
    }
}
