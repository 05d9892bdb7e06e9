//! What every request of a front carries beside the request itself.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Caller, SpanId};

/// The id of a request. A front that sends a request again, because it does not know whether the engine got it, sends it
/// with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Uuid);

impl RequestId {
    /// Creates an id that no other request has.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Returns the id that an AI client chose for its request, as a UUID in one of its usual forms. `None` if the text is no
    /// UUID.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The incarnation of an engine: each start of an engine has another one. Handles, sessions and request ids of one
/// incarnation mean nothing to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(Uuid);

impl Incarnation {
    /// Creates the incarnation of an engine that starts.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What every request carries: its id, who asks, and how long the front waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestHead {
    pub id: RequestId,
    /// Whether the AI client chose the id, and can ask for the run of the request by it. The engine then keeps the answer
    /// of the run.
    #[serde(default)]
    pub is_chosen: bool,
    pub caller: Caller,
    /// The time after which the front no longer waits for the response. The engine then ends the request. `None` if the
    /// front waits until it closes the exchange.
    #[serde(default)]
    pub deadline: Option<Duration>,
    /// The span of the AI client's call on whose behalf the request is sent ([`crate::ToEngine::BeginSpan`]).
    #[serde(default)]
    pub span: Option<SpanId>,
}
