//! The AI client on whose behalf the front sends a request.

use lockhouse_base::principal::{Identity, Principal};
use lockhouse_policies::ClientName;
use serde::{Deserialize, Serialize};

use crate::InputSupport;

/// The AI client that a request comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caller {
    pub identity: Identity,
    /// The number of the revocable grant under which the request was admitted, named by [`crate::ToEngine::Revoke`];
    /// `None` if the access cannot be revoked.
    pub grant: Option<u64>,
    /// The client's name for the policy and the audit log.
    pub client: Option<ClientName>,
    pub abilities: InputSupport,
}

impl Caller {
    pub fn new(principal: &Principal, client: Option<ClientName>, abilities: InputSupport) -> Self {
        let grant = principal.grant().map(|grant| grant.number());
        Self { identity: principal.identity().clone(), grant, client, abilities }
    }
}
