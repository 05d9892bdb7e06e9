//! The AI client on whose behalf the front sends a request to the engine.

use serde::{Deserialize, Serialize};

use crate::{GrantId, InputSupport};

/// The AI client that a request comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caller {
    /// The grant of the client, which the engine issued on this connection. The engine takes the client's identity from
    /// its own record of the grant. `None` for [`Request::Authenticate`](crate::Request::Authenticate), which needs none.
    pub grant: Option<GrantId>,
    /// The name that the AI client reports itself. The engine uses it only if the client has no authenticated name.
    pub client: Option<String>,
    pub abilities: InputSupport,
}
