//! Why a server cannot be used: in fixed words for code and the model, and in the server's own for a person.

use std::process::ExitStatus;

use lockhouse_base::secrets::Secrets;
use rmcp::model::ErrorData;
use rmcp::service::{ClientInitializeError, ServiceError};

use super::http_fault::{HttpFault, Kind};
use super::inbound::{NOT_JSON, TOO_LARGE};

/// Characters of a server's error text that are logged.
const SAID_CHARS_MAX: usize = 400;

/// What went wrong in the handshake or the listing of tools.
#[derive(Debug)]
pub(super) enum Fault {
    /// It ended, or closed its streams.
    Closed,
    /// It answered with an error.
    Refused(ErrorData),
    /// It answered with something that is not MCP: what exactly, possibly with words of its own.
    Strange(String),
    /// HTTP did not carry it.
    Http(HttpFault),
}

impl From<ServiceError> for Fault {
    fn from(error: ServiceError) -> Self {
        if let Some(fault) = HttpFault::in_service(&error) {
            return Self::Http(fault.clone());
        }
        match error {
            ServiceError::McpError(error) => Self::Refused(error),
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => Self::Closed,
            error => Self::Strange(error.to_string()),
        }
    }
}

impl From<ClientInitializeError> for Fault {
    fn from(error: ClientInitializeError) -> Self {
        use ClientInitializeError as Error;
        match error {
            Error::TransportError { error, .. } => match HttpFault::behind(&*error.error) {
                Some(fault) => Self::Http(fault.clone()),
                None => Self::Closed,
            },
            Error::ConnectionClosed(_) => Self::Closed,
            Error::JsonRpcError(error) => Self::Refused(error),
            Error::LegacyFallbackFailed { discover, fallback } => match Self::from(*discover) {
                // With it the transport ended, and the fallback has nothing to tell.
                http @ Self::Http(_) => http,
                _ => Self::from(*fallback),
            },
            error => Self::Strange(error.to_string()),
        }
    }
}

impl Fault {
    /// Whether the older handshake may fare better.
    pub(super) fn may_be_older(&self) -> bool {
        !matches!(self, Self::Http(fault) if fault.kind != Kind::Answered)
    }

    /// In words of ours alone. A status is there if the process ended by itself.
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
            (Self::Strange(_), _) => "it does not speak MCP as Lockhouse knows it".into(),
        }
    }

    /// What the server said, as a clause for the log.
    pub(super) fn said(&self, secrets: &Secrets) -> String {
        let said = match self {
            Self::Closed => return String::new(),
            Self::Refused(error) => &*error.message,
            Self::Strange(what) => what.as_str(),
            Self::Http(fault) if fault.said.is_empty() => return String::new(),
            Self::Http(fault) => &fault.said,
        };
        let said: String = secrets.redact(said).chars().take(SAID_CHARS_MAX).collect();
        format!("; it said: {said:?}")
    }
}
