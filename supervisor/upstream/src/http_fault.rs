//! Why a request over HTTP came to nothing.

use std::error::Error;

use reqwest::StatusCode;
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Characters of a server's answer that are kept for a person.
const SAID_CHARS_MAX: usize = 400;

/// What went wrong.
#[derive(Clone)]
pub(crate) struct HttpFault {
    pub(crate) kind: Kind,
    /// In words of ours alone: code and the model read them.
    pub(crate) reason: String,
    /// What the server wrote, or a library about it: for a person.
    pub(crate) said: String,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is no connection.
    Unreachable,
    /// The server wants another token, or any.
    Unauthorized,
    /// The server is what it is: no other way of asking helps.
    Unusable,
    /// The server answered, with a status that is none of the above.
    Answered,
}

impl HttpFault {
    pub(crate) fn new(kind: Kind, reason: impl Into<String>, said: &str) -> Self {
        Self { kind, reason: reason.into(), said: said.chars().take(SAID_CHARS_MAX).collect() }
    }

    /// There was no answer. `place` is `HOST:PORT`, from our own configuration.
    pub(crate) fn unanswered(error: &reqwest::Error, place: &str) -> Self {
        let chain = || causes(error);
        let said = chain().last().map(ToString::to_string).unwrap_or_default();
        let input = chain().filter_map(|error| error.downcast_ref::<std::io::Error>()).last();
        let why = if error.is_timeout() {
            "it does not answer".into()
        } else if said.contains("certificate") {
            format!("its TLS certificate is not accepted{}", certificate(&said))
        } else if chain().any(|error| error.to_string().contains("dns error")) {
            "its name cannot be resolved".into()
        } else if let Some(code) = input.and_then(std::io::Error::raw_os_error) {
            let why = nix::errno::Errno::from_raw(code).desc().to_lowercase();
            return Self::new(Kind::Unreachable, format!("cannot connect to {place}: {why}"), "");
        } else if error.is_connect() {
            "the connection was not accepted as TLS or by a proxy".into()
        } else {
            return Self::new(
                Kind::Unreachable,
                format!("the connection to {place} broke off, or what came is not HTTP"),
                &said,
            );
        };
        Self::new(Kind::Unreachable, format!("cannot connect to {place}: {why}"), &said)
    }

    /// The status of the answer says that it is none.
    pub(crate) fn status(status: StatusCode, said: &str) -> Self {
        let reason = match status.as_u16() {
            300..400 => format!(
                "it redirects to another address, which is not followed (HTTP {status}); configure that address \
                 if it is the server's own"
            ),
            404 | 405 => format!("there is no MCP endpoint at its URL (HTTP {})", status.as_u16()),
            429 => "it refuses requests for now: too many (HTTP 429)".into(),
            code => format!("it answered with HTTP status {code}"),
        };
        Self::new(Kind::Answered, reason, said)
    }

    /// What a failed request of rmcp's was, where it was ours.
    pub(crate) fn in_service(error: &ServiceError) -> Option<&Self> {
        match error {
            ServiceError::TransportSend(error) => Self::behind(error.error.as_ref()),
            _ => None,
        }
    }

    pub(crate) fn behind<'a>(error: &'a (dyn Error + Send + Sync + 'static)) -> Option<&'a Self> {
        match error.downcast_ref::<StreamableHttpError<Self>>()? {
            StreamableHttpError::Client(fault) => Some(fault),
            _ => None,
        }
    }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |error: &&'a (dyn Error + 'static)| (**error).source())
}

/// Which fault of a certificate it is. Names in one are its owner's to choose, and stay out.
fn certificate(said: &str) -> &'static str {
    if said.contains("UnknownIssuer") {
        ": no authority that this host trusts has signed it"
    } else if said.contains("xpired") {
        ": it has expired"
    } else if said.contains("not valid for name") {
        ": it is for another name"
    } else {
        ""
    }
}

impl std::fmt::Display for HttpFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Without what the server said, which is shown once its secrets are taken out.
impl std::fmt::Debug for HttpFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for HttpFault {}
