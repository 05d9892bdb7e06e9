//! A reader that cancels a `CancellationToken` at end of file, so that executions stop as soon as their AI client
//! closes the pipe.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// A reader that passes on the bytes of `inner`. At end of file or after a read error, it cancels the token `closing`.
pub(super) struct CancelOnEof<R> {
    inner: R,
    closing: CancellationToken,
}

impl<R> CancelOnEof<R> {
    pub(super) fn new(inner: R, closing: CancellationToken) -> Self {
        Self { inner, closing }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for CancelOnEof<R> {
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
