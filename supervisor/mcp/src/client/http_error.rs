//! Errors of HTTP requests to upstream servers.

use std::error::Error;

use reqwest::StatusCode;

/// Maximum number of characters of a server's error text that are kept. The text is shown only to users.
const SERVER_TEXT_CHARS_MAX: usize = 400;

/// Why an HTTP request to an upstream server failed.
#[derive(Clone, thiserror::Error)]
#[error("{reason}")]
pub struct HttpError {
    pub kind: HttpErrorKind,
    /// Describes the error without any text of the server; submitted code and the model may read it.
    pub reason: String,
    /// The error text of the server or of the HTTP library. Shown only to users; may contain secrets.
    pub server_text: String,
}

/// The kind of an HTTP error. Decides whether the server is started again with the older MCP handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpErrorKind {
    /// No connection to the server could be established, or the connection broke.
    Unreachable,
    /// The server requires an access token that Lockhouse does not have, or refused the token that was sent.
    Unauthorized,
    /// No request to the endpoint can succeed: the endpoint's configuration is invalid, or the URL is not that of an
    /// MCP endpoint.
    Unusable,
    /// The server answered with an HTTP error status.
    Answered,
}

impl HttpError {
    pub fn new(kind: HttpErrorKind, reason: impl Into<String>, server_text: &str) -> Self {
        Self {
            kind,
            reason: reason.into(),
            server_text: server_text.chars().take(SERVER_TEXT_CHARS_MAX).collect(),
        }
    }

    /// Creates the error of a request that got no complete response. `host_and_port` is the configured server, which
    /// the message names.
    pub fn from_reqwest(error: &reqwest::Error, host_and_port: &str) -> Self {
        let chain = || causes(error);
        let server_text = chain().last().map(ToString::to_string).unwrap_or_default();
        let input = chain().filter_map(|error| error.downcast_ref::<std::io::Error>()).last();
        let why = if error.is_timeout() {
            "it does not answer".into()
        } else if server_text.contains("certificate") {
            format!("its TLS certificate is not accepted{}", certificate_fault(&server_text))
        } else if chain().any(|error| error.to_string().contains("dns error")) {
            "its name cannot be resolved".into()
        } else if let Some(code) = input.and_then(std::io::Error::raw_os_error) {
            let why = nix::errno::Errno::from_raw(code).desc().to_lowercase();
            return Self::new(
                HttpErrorKind::Unreachable,
                format!("cannot connect to {host_and_port}: {why}"),
                "",
            );
        } else if error.is_connect() {
            "the connection was not accepted as TLS or by a proxy".into()
        } else {
            return Self::new(
                HttpErrorKind::Unreachable,
                format!("the connection to {host_and_port} broke off, or what came is not HTTP"),
                &server_text,
            );
        };
        Self::new(
            HttpErrorKind::Unreachable,
            format!("cannot connect to {host_and_port}: {why}"),
            &server_text,
        )
    }

    /// Creates the error of a request that the server answered with an HTTP error status.
    pub fn from_status(status: StatusCode, server_text: &str) -> Self {
        let reason = match status.as_u16() {
            300..400 => format!(
                "it redirects to another address, which is not followed (HTTP {status}); configure that address \
                 if it is the server's own"
            ),
            404 | 405 => format!("there is no MCP endpoint at its URL (HTTP {})", status.as_u16()),
            429 => "it refuses requests for now: too many (HTTP 429)".into(),
            code => format!("it answered with HTTP status {code}"),
        };
        Self::new(HttpErrorKind::Answered, reason, server_text)
    }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |error: &&'a (dyn Error + 'static)| (**error).source())
}

/// Describes why a server's TLS certificate was not accepted; empty if the reason is not known. The names in the
/// certificate are left out, since the server chooses them and the model may read the description.
fn certificate_fault(server_text: &str) -> &'static str {
    if server_text.contains("UnknownIssuer") {
        ": no authority that this host trusts has signed it"
    } else if server_text.contains("xpired") {
        ": it has expired"
    } else if server_text.contains("not valid for name") {
        ": it is for another name"
    } else {
        ""
    }
}

/// Prints the reason without the server's text, which may contain secrets.
impl std::fmt::Debug for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}
