//! Standard input that says when it ends: executions stop with their client, at once.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Passes bytes on, and cancels a token at the end of them.
pub(super) struct ClosingReader<R> {
    inner: R,
    closing: CancellationToken,
}

impl<R> ClosingReader<R> {
    pub(super) fn new(inner: R, closing: CancellationToken) -> Self {
        Self { inner, closing }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ClosingReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if matches!(polled, Poll::Ready(_)) && buf.filled().len() == before {
            self.closing.cancel();
        }
        polled
    }
}
