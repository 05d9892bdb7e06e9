//! Direct requests: AI clients use the tools, resources and prompts of upstream servers with `direct` access without
//! writing code. This module defines the names under which AI clients see them, and which of them each AI client may
//! see.

mod exposed_names;
mod listings;
mod name_resolution;
mod search;
mod suspended_calls;

use std::sync::Arc;

use lockhouse_catalog::Catalogue;
use lockhouse_messages::BuiltinTools;
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;

use exposed_names::ExposedNames;
pub(crate) use name_resolution::{LookupError, completion_request, json_rpc_error};
pub(crate) use suspended_calls::{ActiveCall, NotResumed, SuspendedCalls};

/// The upstream servers with `direct` access, whose tools AI clients can call without code. Caches the names of these
/// tools.
#[derive(Debug, Default)]
pub(crate) struct DirectServers {
    /// `None` until the names are first needed.
    named: Mutex<Option<NamedTools>>,
}

/// The exposed tool names, with the catalogues (each server's list of tools) from which they were computed.
#[derive(Debug)]
struct NamedTools {
    catalogues: Vec<Arc<Catalogue>>,
    names: Arc<ExposedNames>,
}

impl DirectServers {
    fn exposed_names(
        &self,
        direct: &[(&ServerName, &str, Arc<Catalogue>)],
        own: &BuiltinTools,
    ) -> Arc<ExposedNames> {
        let catalogues: Vec<Arc<Catalogue>> =
            direct.iter().map(|(.., catalogue)| catalogue.clone()).collect();
        let same = |known: &[Arc<Catalogue>]| {
            known.len() == catalogues.len()
                && known.iter().zip(&catalogues).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        let mut named = self.named.lock();
        if let Some(NamedTools { catalogues: known, names }) = &*named
            && same(known)
        {
            return names.clone();
        }
        let targets = direct.iter().flat_map(|(server, prefix, catalogue)| {
            catalogue.tools.iter().map(move |tool| (*server, *prefix, tool.name.as_str()))
        });
        let names = Arc::new(ExposedNames::new(targets, own));
        if !names.refused.is_empty() {
            tracing::warn!(
                "tools that AI clients cannot see, because another tool has the same name: {}; configure another `prefix` for one of the servers",
                names.refused.join(", ")
            );
        }
        *named = Some(NamedTools { catalogues, names: names.clone() });
        names
    }
}
