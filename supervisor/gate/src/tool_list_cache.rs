//! Caches the answers to the worker request `ListTools`, for executions whose scope contains all tools of the
//! server. Such an answer depends only on the server's tool catalogue, the AI client, the language and the policy.

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_catalog::Catalogue;
use lockhouse_policies::{ClientName, Policy};
use lockhouse_protocol::{Language, ServerName};
use parking_lot::Mutex;

/// Maximum number of cached tool lists. When it is reached, the cache is emptied.
const ENTRIES_MAX: usize = 256;

/// The key of a cached list: the server, the AI client, and the language of the signatures.
pub(super) type CacheKey = (ServerName, Option<ClientName>, Option<Language>);

/// A cache of the lists of permitted tools that workers request.
#[derive(Debug, Default)]
pub(super) struct ToolListCache(Mutex<HashMap<CacheKey, CachedList>>);

/// A cached tool list, with the tool catalogue and the policy from which it was made.
#[derive(Debug)]
struct CachedList {
    catalogue: Arc<Catalogue>,
    policy: Arc<Policy>,
    json: Arc<[u8]>,
}

impl ToolListCache {
    /// Returns the cached tool list as JSON text. Returns `None` if no list is cached for this key, or if the list
    /// was made from another catalogue or policy.
    pub(super) fn get(
        &self,
        key: &CacheKey,
        catalogue: &Arc<Catalogue>,
        policy: &Arc<Policy>,
    ) -> Option<Arc<[u8]>> {
        let answers = self.0.lock();
        let answer = answers.get(key).filter(|answer| {
            Arc::ptr_eq(&answer.catalogue, catalogue) && Arc::ptr_eq(&answer.policy, policy)
        })?;
        Some(answer.json.clone())
    }

    /// Stores a tool list (JSON text) in the cache, with the tool catalogue and the policy from which it was made.
    pub(super) fn insert(
        &self,
        key: CacheKey,
        catalogue: Arc<Catalogue>,
        policy: Arc<Policy>,
        json: Arc<[u8]>,
    ) {
        let mut answers = self.0.lock();
        // AI clients choose their names, so the number of possible keys has no limit.
        if answers.len() >= ENTRIES_MAX {
            answers.clear();
        }
        answers.insert(key, CachedList { catalogue, policy, json });
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_policies::Source;

    use super::*;

    fn policy() -> Arc<Policy> {
        let source = Source { path: "policy.toml".into(), text: "version = 1\n".into() };
        Arc::new(Policy::parse(source).expect("a policy"))
    }

    #[test]
    fn an_answer_is_cached_only_for_the_same_tools_and_policy() {
        let (briefs, tools, rules) = (ToolListCache::default(), Arc::new(Catalogue::default()), policy());
        let key = |client: usize| {
            let server = ServerName::new("s").expect("a name");
            (server, Some(ClientName::new(&client.to_string())), None)
        };
        let json: Arc<[u8]> = b"[]".as_slice().into();
        briefs.insert(key(0), tools.clone(), rules.clone(), json.clone());
        assert_eq!(briefs.get(&key(0), &tools, &rules), Some(json.clone()));
        assert_eq!(briefs.get(&key(1), &tools, &rules), None);
        assert_eq!(briefs.get(&key(0), &Arc::new(Catalogue::default()), &rules), None);
        assert_eq!(briefs.get(&key(0), &tools, &policy()), None);
        for client in 0..=ENTRIES_MAX {
            briefs.insert(key(client), tools.clone(), rules.clone(), json.clone());
        }
        assert!(briefs.0.lock().len() <= ENTRIES_MAX, "however many clients there are");
    }
}
