//! On whose behalf the front asks.

use lockhouse_base::principal::{Identity, Principal};
use lockhouse_policies::ClientName;
use serde::{Deserialize, Serialize};

use crate::Abilities;

/// The AI client whose request it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caller {
    pub identity: Identity,
    /// The grant that a message [`crate::ToEngine::Revoke`] takes back; none for what lasts.
    pub grant: Option<u64>,
    /// Its name for the policy and the audit log.
    pub client: Option<ClientName>,
    pub abilities: Abilities,
}

impl Caller {
    pub fn new(principal: &Principal, client: Option<ClientName>, abilities: Abilities) -> Self {
        let grant = principal.grant().map(|grant| grant.number());
        Self { identity: principal.identity().clone(), grant, client, abilities }
    }
}
