//! A byte stream that validates the heads of the HTTP/1 requests that are read from it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::request_head_validator::HeadValidator;

/// A connection whose HTTP/1 request heads are validated before hyper parses them. After a fault, hyper reads an invalid
/// head, answers 400 and closes the connection.
#[derive(Debug)]
pub struct HeadCheckedStream<S> {
    stream: S,
    heads: HeadValidator,
    on_refusal: fn(),
}

impl<S> HeadCheckedStream<S> {
    /// `head_bytes` is hyper's limit for the head of a request (`max_buf_size`).
    pub fn new(stream: S, head_bytes: usize) -> Self {
        Self { stream, heads: HeadValidator::new(head_bytes), on_refusal: || {} }
    }

    /// Calls `on_refusal` for each head that is refused.
    #[must_use]
    pub fn on_refusal(self, on_refusal: fn()) -> Self {
        Self { on_refusal, ..self }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadCheckedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(refusal) = self.heads.replacement(buffer.remaining()) {
            buffer.put_slice(refusal);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled_mut().get_mut(before..).unwrap_or_default();
        if let Err(fault) = self.heads.validate(read) {
            (self.on_refusal)();
            tracing::debug!("the head of a request is refused: {fault}");
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadCheckedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
