//! The MCP session of a connection over streamable HTTP, as far as it is known.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde::Deserialize;

use super::request_head::PROTOCOL_VERSION;

/// The HTTP header with the ID of the MCP session.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// What requests say of their session.
#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    /// `None` if the server has named none.
    id: Option<HeaderValue>,
    /// `None` before the handshake.
    version: Option<HeaderValue>,
    /// How many sessions the connection had before.
    number: usize,
}

impl Session {
    /// Whether the server has named the session.
    pub(super) fn is_named(&self) -> bool {
        self.id.is_some()
    }

    pub(super) fn add_headers(&self, headers: &mut HeaderMap) {
        let Self { id, version, .. } = self.clone();
        headers.extend(version.map(|version| (PROTOCOL_VERSION, version)));
        headers.extend(id.map(|id| (SESSION_ID, id)));
    }
}

/// The session of one connection, which can be replaced.
#[derive(Debug, Default)]
pub(super) struct SessionState(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    session: Session,
    /// Whether the server has refused the session in an answer to a request that could not be repeated.
    is_lost: bool,
    /// The `initialize` request of the handshake, with its id. Begins each later session as well.
    initialize: Option<(i64, Arc<[u8]>)>,
}

impl SessionState {
    pub(super) fn current(&self) -> Session {
        self.0.lock().session.clone()
    }

    /// Returns the request with which sessions begin; `None` if the connection has no sessions.
    pub(super) fn initialize(&self) -> Option<(i64, Arc<[u8]>)> {
        self.0.lock().initialize.clone()
    }

    pub(super) fn set_initialize(&self, id: i64, line: &[u8]) {
        self.0.lock().initialize = Some((id, line.into()));
    }

    pub(super) fn is_lost(&self) -> bool {
        self.0.lock().is_lost
    }

    /// Whether `session` is still the current one.
    pub(super) fn is_current(&self, session: &Session) -> bool {
        self.0.lock().session.number == session.number
    }

    /// Records that the server has refused `session`.
    pub(super) fn lose(&self, session: &Session) {
        let mut state = self.0.lock();
        state.is_lost |= state.session.number == session.number;
    }

    /// Begins a session that the server has named `id`, with the result of its `initialize`.
    pub(super) fn begin(&self, id: Option<HeaderValue>, result: &str) -> Session {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Initialized {
            protocol_version: String,
        }
        let initialized: Option<Initialized> = serde_json::from_str(result).ok();
        let version = initialized.and_then(|result| HeaderValue::from_str(&result.protocol_version).ok());
        let mut state = self.0.lock();
        let number = state.session.number + 1;
        state.session = Session { id, version, number };
        state.is_lost = false;
        state.session.clone()
    }

    /// Records the protocol version of a connection without sessions.
    pub(super) fn set_version(&self, version: Option<HeaderValue>) {
        self.0.lock().session.version = version;
    }
}
