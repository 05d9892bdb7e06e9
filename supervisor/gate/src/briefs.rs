//! Answers to `ListTools`. They depend on a server's tools, the client, the language and the policy alone, so each is made
//! once.

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::language::Language;
use lockhouse_catalog::Catalogue;
use lockhouse_policies::{ClientName, Policy};
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;

/// Answers that are kept.
const KEPT_MAX: usize = 256;

/// The server, whose list it is, and for which language.
pub(super) type Key = (ServerName, Option<ClientName>, Option<Language>);

/// Answers that were made.
#[derive(Debug, Default)]
pub(super) struct Briefs(Mutex<HashMap<Key, Answer>>);

/// An answer, and what it was made of.
#[derive(Debug)]
struct Answer {
    of: Arc<Catalogue>,
    by: Arc<Policy>,
    json: Arc<[u8]>,
}

impl Briefs {
    /// The answer that was made of the same tools under the same policy.
    pub(super) fn get(&self, key: &Key, of: &Arc<Catalogue>, by: &Arc<Policy>) -> Option<Arc<[u8]>> {
        let answers = self.0.lock();
        let answer =
            answers.get(key).filter(|answer| Arc::ptr_eq(&answer.of, of) && Arc::ptr_eq(&answer.by, by))?;
        Some(answer.json.clone())
    }

    pub(super) fn keep(&self, key: Key, of: Arc<Catalogue>, by: Arc<Policy>, json: Arc<[u8]>) {
        let mut answers = self.0.lock();
        // Clients choose their names.
        if answers.len() >= KEPT_MAX {
            answers.clear();
        }
        answers.insert(key, Answer { of, by, json });
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
    fn an_answer_is_kept_for_the_same_tools_under_the_same_policy_alone() {
        let (briefs, tools, rules) = (Briefs::default(), Arc::new(Catalogue::default()), policy());
        let key = |client: usize| {
            let server = ServerName::new("s").expect("a name");
            (server, Some(ClientName::of(&client.to_string())), None)
        };
        let json: Arc<[u8]> = b"[]".as_slice().into();
        briefs.keep(key(0), tools.clone(), rules.clone(), json.clone());
        assert_eq!(briefs.get(&key(0), &tools, &rules), Some(json.clone()));
        assert_eq!(briefs.get(&key(1), &tools, &rules), None);
        assert_eq!(briefs.get(&key(0), &Arc::new(Catalogue::default()), &rules), None);
        assert_eq!(briefs.get(&key(0), &tools, &policy()), None);
        for client in 0..=KEPT_MAX {
            briefs.keep(key(client), tools.clone(), rules.clone(), json.clone());
        }
        assert!(briefs.0.lock().len() <= KEPT_MAX, "however many clients there are");
    }
}
