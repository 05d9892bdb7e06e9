//! Why records could not be delivered to a destination.

use std::io;
use std::time::Duration;

use tokio_rustls::rustls;

/// Maximum number of characters of an error text of a library, which may quote the destination's certificate.
const TEXT_CHARS_MAX: usize = 300;

/// Why a batch was not delivered. The batch is sent again later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeliveryError {
    #[error("cannot connect: {}", shortened(.0))]
    Connect(#[source] io::Error),
    #[error("the TLS connection was refused: {}", shortened(.0))]
    Handshake(#[source] io::Error),
    #[error("the connection broke off: {}", shortened(.0))]
    Broken(#[source] io::Error),
    #[error("the destination closed the connection")]
    Closed,
    #[error("the destination does not answer")]
    Silent,
    #[error("the request failed: {0}")]
    Request(String),
    #[error("the destination answered with HTTP status {0}")]
    Status(u16),
    #[error("the destination is busy (HTTP status {status})")]
    Busy { status: u16, retry_after: Option<Duration> },
    /// The destination rejects this batch for good.
    #[error("the destination rejects the records (HTTP status {0})")]
    Rejected(u16),
    #[error("the response of the destination has more than {0} bytes")]
    LongResponse(usize),
    #[error("the response of the destination is not valid")]
    InvalidResponse,
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] TlsError),
    #[error("{path} cannot be read: {source}")]
    Log { path: std::path::PathBuf, source: io::Error },
    #[error("the cursor cannot be written: {0}")]
    Cursor(#[source] io::Error),
}

/// Why the configured certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("{path}, which {key} names, cannot be read: {source}")]
    Unreadable { path: std::path::PathBuf, key: &'static str, source: io::Error },
    #[error("{path}, which {key} names, has no valid certificate in PEM format")]
    NoCertificate { path: std::path::PathBuf, key: &'static str },
    #[error("{path}, which key names, has no private key in PEM format")]
    NoKey { path: std::path::PathBuf },
    #[error(transparent)]
    Protocol(#[from] rustls::Error),
    #[error("the host name is not valid")]
    HostName,
    #[error("the HTTP client cannot be created")]
    Client,
}

/// Returns the text of an error, without its end if it is long.
fn shortened(error: &io::Error) -> String {
    error.to_string().chars().take(TEXT_CHARS_MAX).collect()
}

/// Returns the text of an HTTP error with its causes and without its URL.
pub(crate) fn request_error(error: reqwest::Error) -> DeliveryError {
    if error.is_timeout() {
        return DeliveryError::Silent;
    }
    let error = error.without_url();
    let mut words = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    DeliveryError::Request(words.chars().take(TEXT_CHARS_MAX).collect())
}
