//! Errors of the MCP handshake with an upstream server and of listing its tools. Submitted code and the model get fixed
//! texts; users also get the server's own text.

use std::process::ExitStatus;

use lockhouse_base::secrets::Secrets;
use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::inbound_message::{NOT_JSON, TOO_LARGE};
use lockhouse_mcp::client::{HandshakeError, HttpError, HttpErrorKind};
use rmcp::model::ErrorData;

use crate::definition::ProtocolMinimum;

/// Maximum number of characters of a server's error text that are logged.
const SAID_CHARS_MAX: usize = 400;

/// Why the MCP handshake with a server, or the listing of its tools, failed.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// The server exited or closed its streams.
    Closed,
    /// The server answered with a JSON-RPC error.
    Refused(ErrorData),
    /// The server's answer is not valid MCP. The text describes the reason and may quote the server.
    Strange(String),
    /// The HTTP request to the server failed.
    Http(HttpError),
    /// The server answered another protocol version than those from `minimum` on.
    Version { answered: String, minimum: ProtocolMinimum },
}

impl From<ResponseError> for ConnectError {
    fn from(error: ResponseError) -> Self {
        HandshakeError::from(error).into()
    }
}

impl From<HandshakeError> for ConnectError {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::Closed => Self::Closed,
            HandshakeError::Refused(error) => Self::Refused(error),
            HandshakeError::Http(fault) => Self::Http(fault),
            HandshakeError::Invalid(why) => Self::Strange(why),
        }
    }
}

impl ConnectError {
    /// Whether another attempt to connect may succeed if it uses the older MCP handshake (`initialize`).
    pub(super) fn may_need_legacy_handshake(&self) -> bool {
        match self {
            Self::Http(fault) => fault.kind == HttpErrorKind::Answered,
            Self::Version { .. } => false,
            Self::Closed | Self::Refused(_) | Self::Strange(_) => true,
        }
    }

    /// Describes the error without any text of the server. `status` is the exit status of the server's process if the
    /// process exited by itself.
    pub(super) fn reason(&self, status: Option<ExitStatus>) -> String {
        match (self, status) {
            (Self::Closed, Some(status)) => format!("it ended before it was ready ({status})"),
            (Self::Closed, None) => "it closed its output before it was ready".into(),
            (Self::Refused(error), _) if error.message == TOO_LARGE => {
                "an answer in its start exceeds the limit of one message".into()
            }
            (Self::Refused(error), _) if error.message == NOT_JSON => {
                "an answer in its start is not valid JSON, or is nested too deeply".into()
            }
            (Self::Refused(error), _) => {
                format!("it answered with an error while it started (JSON-RPC code {})", error.code.0)
            }
            (Self::Http(fault), _) => fault.reason.clone(),
            (Self::Version { minimum, .. }, _) => format!(
                "its protocol version is not {} or a later one that Lockhouse knows (protocol_minimum)",
                minimum.as_str()
            ),
            (Self::Strange(_), _) => "it does not speak MCP as Lockhouse knows it".into(),
        }
    }

    /// Returns the server's own error text, with secrets redacted, as a clause to append to a log message. Empty if the
    /// server sent no text.
    pub(super) fn server_message(&self, secrets: &Secrets) -> String {
        let server_message = match self {
            Self::Closed => return String::new(),
            Self::Refused(error) => &*error.message,
            Self::Strange(what) | Self::Version { answered: what, .. } => what.as_str(),
            Self::Http(fault) if fault.server_text.is_empty() => return String::new(),
            Self::Http(fault) => &fault.server_text,
        };
        let server_message: String = secrets.redact(server_message).chars().take(SAID_CHARS_MAX).collect();
        format!("; it said: {server_message:?}")
    }
}
