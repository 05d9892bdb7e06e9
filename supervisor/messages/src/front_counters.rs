//! What a front counts for the metrics of the engine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Events that a front has counted since its previous report, and what is open now. The engine adds them to its metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontCounters {
    /// The number of HTTP responses by their status code: 100 to 599, or 0 for all other codes.
    pub responses: BTreeMap<u16, u64>,
    pub refusals: BTreeMap<HttpRefusal, u64>,
    /// The number of HTTP requests whose authentication failed.
    pub authentication_failures: u64,
    /// The number of HTTP connections that were opened.
    pub opened_connections: u64,
    /// The number of HTTP connections that are open now. Zero again for a front that has disconnected.
    pub open_connections: u64,
}

/// Why an HTTP request or connection of an AI client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpRefusal {
    /// The client exceeded its rate limit.
    Rate,
    /// Too many MCP sessions are in use.
    Quota,
    /// Too many connections are open, or a peer opens too many at once.
    Connections,
    /// A connection was closed in favour of another one.
    Evicted,
    /// The head of the request is ambiguous, or the headers of a trusted proxy cannot be read.
    Head,
    /// The body is too large, is no JSON-RPC message, or has the id of a request in flight.
    Body,
    Host,
    Origin,
    Timeout,
    Draining,
}

impl HttpRefusal {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Rate,
        Self::Quota,
        Self::Connections,
        Self::Evicted,
        Self::Head,
        Self::Body,
        Self::Host,
        Self::Origin,
        Self::Timeout,
        Self::Draining,
    ];

    /// Returns the value of the label `reason` of the metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Quota => "quota",
            Self::Connections => "connections",
            Self::Evicted => "evicted",
            Self::Head => "head",
            Self::Body => "body",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Timeout => "timeout",
            Self::Draining => "draining",
        }
    }
}
