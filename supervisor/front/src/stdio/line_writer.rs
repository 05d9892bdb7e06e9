//! Writes JSON-RPC messages, one per line.

use std::io::{ErrorKind, Result};
use std::sync::Arc;

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
        let line = raw_results::to_line(message)?;
        let mut output = self.output.lock().await;
        let output = output.as_mut().ok_or(ErrorKind::NotConnected)?;
        output.write_all(&line).await?;
        output.flush().await
    }
}
