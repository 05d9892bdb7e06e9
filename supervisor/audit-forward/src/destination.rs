//! The destinations of the audit log, as the configuration names them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lockhouse_base::url_protection::is_protected;
use serde::Deserialize;
use url::Url;

/// The socket of the journal for entries with fields.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";
/// The port of syslog over TLS (RFC 5425).
const SYSLOG_TLS_PORT: u16 = 6514;
/// The path of an OpenTelemetry collector for logs (OTLP/HTTP).
const OTLP_PATH: &str = "/v1/logs";

/// A destination to which the audit log is forwarded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Destination {
    /// The destination as it is configured. It contains no secret.
    text: String,
    pub(crate) kind: DestinationKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DestinationKind {
    /// The systemd journal of this machine, at a Unix domain socket.
    Journald(PathBuf),
    /// A syslog server over TLS.
    SyslogTls { host: String, port: u16 },
    /// An OpenTelemetry collector over HTTP.
    Otlp(Url),
}

/// Why a text names no destination.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    #[error(
        "{0:?} is no destination: use \"journald\", \"syslog+tls://HOST:PORT\" or \"otlp+https://HOST/v1/logs\""
    )]
    Unknown(String),
    #[error("the destination {0:?} has no host")]
    NoHost(String),
    #[error("the destination {0:?} may only have a host and a port")]
    SyslogPath(String),
    #[error(
        "the destination {0:?} may not have a user, a password, a query or a fragment: these could be secrets"
    )]
    Secret(String),
    #[error("the destination {0:?} is not encrypted: use otlp+https, or a loopback address")]
    NotEncrypted(String),
    #[error("the path in {0:?} is not absolute: use journald:/PATH")]
    NotAbsolute(String),
    #[error("the destination {0:?} has no headers: only OpenTelemetry collectors have")]
    Headers(String),
    #[error("the destination {0:?} needs both `certificate` and `key`, or none of them")]
    IncompleteIdentity(String),
    #[error("the destination {0:?} does not use TLS, and so no certificate")]
    NoTls(String),
    #[error("the path {0:?} is not absolute")]
    RelativePath(PathBuf),
}

impl Destination {
    /// Whether certificates verify the destination.
    pub(crate) fn uses_tls(&self) -> bool {
        match &self.kind {
            DestinationKind::Journald(_) => false,
            DestinationKind::SyslogTls { .. } => true,
            DestinationKind::Otlp(url) => url.scheme() == "https",
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Destination {
    type Error = DestinationError;

    fn try_from(text: String) -> Result<Self, DestinationError> {
        text.parse()
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let kind = match text.split_once(':') {
            None if text == "journald" => DestinationKind::Journald(JOURNAL_SOCKET.into()),
            Some(("journald", path)) if Path::new(path).is_absolute() => {
                DestinationKind::Journald(path.into())
            }
            Some(("journald", _)) => return Err(DestinationError::NotAbsolute(text.into())),
            Some(("syslog+tls", _)) => syslog_tls(text)?,
            Some(("otlp+https" | "otlp+http", _)) => otlp(text)?,
            _ => return Err(DestinationError::Unknown(text.into())),
        };
        Ok(Self { text: text.into(), kind })
    }
}

fn syslog_tls(text: &str) -> Result<DestinationKind, DestinationError> {
    let url = parse_url(text, text)?;
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| DestinationError::NoHost(text.into()))?;
    if !matches!(url.path(), "" | "/") {
        return Err(DestinationError::SyslogPath(text.into()));
    }
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok(DestinationKind::SyslogTls { host, port: url.port().unwrap_or(SYSLOG_TLS_PORT) })
}

fn otlp(text: &str) -> Result<DestinationKind, DestinationError> {
    let mut url = parse_url(text.strip_prefix("otlp+").unwrap_or(text), text)?;
    if url.host().is_none() {
        return Err(DestinationError::NoHost(text.into()));
    }
    if !is_protected(&url) {
        return Err(DestinationError::NotEncrypted(text.into()));
    }
    if url.path() == "/" {
        url.set_path(OTLP_PATH);
    }
    Ok(DestinationKind::Otlp(url))
}

fn parse_url(url: &str, text: &str) -> Result<Url, DestinationError> {
    let url = Url::parse(url).map_err(|_| DestinationError::Unknown(text.into()))?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user || url.query().is_some() || url.fragment().is_some() {
        // The error is shown: it must not have what may be a secret.
        return Err(DestinationError::Secret(format!("{}://…", url.scheme())));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_what_their_texts_say() {
        let kind = |text: &str| text.parse::<Destination>().map(|destination| destination.kind);
        let syslog = |host: &str, port| Ok(DestinationKind::SyslogTls { host: host.into(), port });
        let otlp = |url: &str| Ok(DestinationKind::Otlp(Url::parse(url).expect("a URL")));
        assert_eq!(kind("journald"), Ok(DestinationKind::Journald(JOURNAL_SOCKET.into())));
        assert_eq!(kind("journald:/run/j"), Ok(DestinationKind::Journald("/run/j".into())));
        assert_eq!(kind("syslog+tls://logs.example.com"), syslog("logs.example.com", 6514));
        assert_eq!(kind("syslog+tls://logs.example.com:10514"), syslog("logs.example.com", 10514));
        assert_eq!(kind("syslog+tls://[2001:db8::1]:1"), syslog("2001:db8::1", 1));
        assert_eq!(kind("otlp+https://c.example.com"), otlp("https://c.example.com/v1/logs"));
        assert_eq!(kind("otlp+https://c.example.com/x/v1/logs"), otlp("https://c.example.com/x/v1/logs"));
        assert_eq!(kind("otlp+http://127.0.0.1:4318"), otlp("http://127.0.0.1:4318/v1/logs"));
    }

    #[test]
    fn other_texts_are_rejected_and_no_secret_is_repeated() {
        for (text, words) in [
            ("", "is no destination"),
            ("syslog", "is no destination"),
            ("syslog+tcp://x", "is no destination"),
            ("https://x", "is no destination"),
            ("journald:x", "journald:/PATH"),
            ("syslog+tls://", "no host"),
            ("syslog+tls://x/y", "only have a host and a port"),
            ("otlp+http://c.example.com", "not encrypted"),
            ("otlp+http://localhost.example.com", "not encrypted"),
            ("otlp+https://u:SEKRET@x", "could be secrets"),
            ("otlp+https://x/v1/logs?key=SEKRET", "could be secrets"),
            ("syslog+tls://SEKRET@x", "could be secrets"),
        ] {
            let error = text.parse::<Destination>().expect_err(text).to_string();
            assert!(error.contains(words) && !error.contains("SEKRET"), "{text}: {error}");
        }
    }
}
