//! Writes JSON-RPC messages, one per line.

use std::io::{ErrorKind, Result};
use std::sync::Arc;

use rmcp::model::RequestId;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::direct::raw_results;

/// Writes messages, one per line. Clones write to the same output.
pub(super) struct LineWriter<W> {
    /// `None` after [`close`](Self::close).
    output: Arc<Mutex<Option<W>>>,
}

impl<W> Clone for LineWriter<W> {
    fn clone(&self) -> Self {
        Self { output: self.output.clone() }
    }
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output: Arc::new(Mutex::new(Some(output))) }
    }

    /// Closes the output. Nothing is written any more.
    pub(super) async fn close(&self) {
        drop(self.output.lock().await.take());
    }

    pub(super) async fn write(&self, message: &impl Serialize) -> Result<()> {
        self.write_line(&raw_results::to_line(message)?).await
    }

    /// Writes the response to a request. `result` is its JSON, without line breaks.
    pub(super) async fn write_result(&self, id: &RequestId, result: String) -> Result<()> {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, serde_json::to_string(id)?);
        // A large result stays where it is in memory.
        let mut line = result;
        line.reserve(head.len() + 2);
        line.insert_str(0, &head);
        line.push_str("}\n");
        self.write_line(line.as_bytes()).await
    }

    async fn write_line(&self, line: &[u8]) -> Result<()> {
        let mut output = self.output.lock().await;
        let output = output.as_mut().ok_or(ErrorKind::NotConnected)?;
        output.write_all(line).await?;
        output.flush().await
    }
}
