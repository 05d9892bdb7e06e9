//! Servers that AI clients have directly: the names under which clients know their tools, resources and prompts, and what each
//! client may know of.

mod find;
mod lists;
mod names;

use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_catalog::Catalogue;
use lockhouse_messages::Abilities;
use lockhouse_policies::ClientName;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ai_client::{Followed, Line};
use parking_lot::Mutex;

pub(crate) use find::{Unknown, name_as_the_server_does};
use names::Names;

/// An AI client, for one request.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) principal: Principal,
    /// For the policy and the audit log.
    pub(crate) name: Option<ClientName>,
    pub(crate) abilities: Abilities,
}

impl Client {
    /// The way to it during one execution.
    pub(crate) fn line(&self) -> (Line, Followed) {
        Line::new(self.name.clone(), self.principal.clone(), self.abilities)
    }
}

/// What is remembered of servers that AI clients have directly.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    /// The names of tools, and of which tools.
    named: Mutex<Option<(Vec<Arc<Catalogue>>, Arc<Names>)>>,
}

impl Direct {
    fn names_of(&self, direct: &[(&ServerName, &str, Arc<Catalogue>)]) -> Arc<Names> {
        let of: Vec<Arc<Catalogue>> = direct.iter().map(|(.., catalogue)| catalogue.clone()).collect();
        let same = |known: &[Arc<Catalogue>]| {
            known.len() == of.len() && known.iter().zip(&of).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let mut named = self.named.lock();
        if let Some((known, names)) = &*named
            && same(known)
        {
            return names.clone();
        }
        let things = direct.iter().flat_map(|(server, prefix, catalogue)| {
            catalogue.tools.iter().map(move |tool| (*server, *prefix, tool.name.as_str()))
        });
        let names = Arc::new(Names::of(things));
        if !names.refused.is_empty() {
            tracing::warn!(
                "tools that AI clients do not get, since another has their name: {}; give one of the servers another prefix",
                names.refused.join(", ")
            );
        }
        *named = Some((of, names.clone()));
        names
    }
}
