//! The AI client on whose behalf the front (which speaks MCP with AI clients) sends a request to the engine
//! (which runs programs).

use lockhouse_base::principal::{Identity, Principal};
use lockhouse_policies::ClientName;
use serde::{Deserialize, Serialize};

use crate::InputSupport;

/// The AI client that a request comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caller {
    pub identity: Identity,
    /// The number of the grant (the client's revocable permission) under which the request was accepted.
    /// [`crate::ToEngine::Revoke`] revokes the grant by this number. `None` if the access cannot be revoked.
    pub grant: Option<u64>,
    /// The AI client's name for the policy and the audit log. `None` if the client gave no name.
    pub client: Option<ClientName>,
    pub abilities: InputSupport,
}

impl Caller {
    pub fn new(principal: &Principal, client: Option<ClientName>, abilities: InputSupport) -> Self {
        let grant = principal.grant().map(|grant| grant.number());
        Self { identity: principal.identity().clone(), grant, client, abilities }
    }
}
