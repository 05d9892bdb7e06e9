//! An entry of the destinations in the configuration: a destination, and how this machine identifies itself to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::destination::{Destination, DestinationError, DestinationKind};

/// An entry of the destinations in the configuration: the destination as a text, or a table with what identifies this machine
/// to it.
#[derive(Clone, PartialEq, Eq)]
pub struct DestinationEntry {
    pub destination: Destination,
    /// Headers of each request to an OpenTelemetry collector. Their values have placeholders for secrets.
    pub headers: BTreeMap<String, String>,
    pub identity: Option<ClientIdentity>,
}

/// The certificate by which this machine identifies itself to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// PEM file with the certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

/// The debug output hides the values of headers.
impl fmt::Debug for DestinationEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        let Self { destination, identity, .. } = self;
        f.debug_struct("DestinationEntry")
            .field("destination", destination)
            .field("headers", &headers)
            .field("identity", identity)
            .finish()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryTable {
    to: Destination,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TryFrom<EntryTable> for DestinationEntry {
    type Error = DestinationError;

    fn try_from(table: EntryTable) -> Result<Self, DestinationError> {
        let EntryTable { to: destination, headers, certificate, key } = table;
        if !headers.is_empty() && !matches!(destination.kind, DestinationKind::Otlp(_)) {
            return Err(DestinationError::Headers(destination.to_string()));
        }
        let identity = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(ClientIdentity { certificate, key }),
            _ => return Err(DestinationError::IncompleteIdentity(destination.to_string())),
        };
        if let Some(ClientIdentity { certificate, key }) = &identity {
            if !destination.uses_tls() {
                return Err(DestinationError::NoTls(destination.to_string()));
            }
            if let Some(relative) = [certificate, key].into_iter().find(|path| !path.is_absolute()) {
                return Err(DestinationError::RelativePath(relative.clone()));
            }
        }
        Ok(Self { destination, headers, identity })
    }
}

impl<'de> Deserialize<'de> for DestinationEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = DestinationEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a destination, or a table with `to` and `headers`, or with `certificate` and `key`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DestinationEntry, E> {
        let destination = text.parse().map_err(E::custom)?;
        Ok(DestinationEntry { destination, headers: BTreeMap::new(), identity: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DestinationEntry, A::Error> {
        let table = EntryTable::deserialize(MapAccessDeserializer::new(map))?;
        table.try_into().map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(json: &str) -> Result<DestinationEntry, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_is_a_text_or_a_table() {
        let text = entry("\"journald\"").expect("an entry");
        assert!(text.headers.is_empty() && text.identity.is_none());
        let table = r#"{"to": "otlp+https://c.example.com", "headers": {"Authorization": "SEKRET"},
            "certificate": "/c.pem", "key": "/k.pem"}"#;
        let table = entry(table).expect("an entry");
        assert_eq!(table.headers["Authorization"], "SEKRET");
        assert_eq!(table.identity.as_ref().map(|identity| identity.key.clone()), Some("/k.pem".into()));
        assert!(!format!("{table:?}").contains("SEKRET"), "{table:?}");
    }

    #[test]
    fn what_a_destination_cannot_use_is_an_error() {
        for (json, words) in [
            ("\"syslog\"", "is no destination"),
            (r#"{"headers": {}}"#, "missing field `to`"),
            (r#"{"to": "journald", "user": "x"}"#, "unknown field"),
            (r#"{"to": "journald", "headers": {"A": "b"}}"#, "has no headers"),
            (r#"{"to": "syslog+tls://x", "headers": {"A": "b"}}"#, "has no headers"),
            (r#"{"to": "syslog+tls://x", "certificate": "/c"}"#, "both `certificate` and `key`"),
            (r#"{"to": "syslog+tls://x", "certificate": "/c", "key": "k"}"#, "not absolute"),
            (r#"{"to": "otlp+http://127.0.0.1", "certificate": "/c", "key": "/k"}"#, "does not use TLS"),
            ("7", "a destination, or a table"),
        ] {
            let error = entry(json).expect_err(json);
            assert!(error.contains(words), "{json}: {error}");
        }
    }
}
