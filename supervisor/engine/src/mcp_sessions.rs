//! The MCP sessions over HTTP that fronts keep here, so that the clients continue them when another front takes the place of
//! theirs. The state of a session is the front's: what is kept is who began it, and what the client said of itself.

use std::collections::HashMap;
use std::time::Duration;

use lockhouse_messages::{McpSessionRequest, Owner};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum size of the sessions of all clients together that the engine keeps, in bytes: 65,000 of most clients. For a new one, the client
/// with the most loses the one that was not used for the longest time.
/// Bound: engines and fronts.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The size of a session beside what its client says of itself, in bytes.
const BYTES_OF_SESSION: usize = 256;
/// Maximum length of the id of a session, and of what its client says of itself, in bytes. A session with more is not kept.
/// Bound: engines and fronts.
const ID_BYTES_MAX: usize = 64;
const CLIENT_BYTES_MAX: usize = 8 * 1024;

/// The kept sessions, by id.
#[derive(Debug, Default)]
pub(crate) struct McpSessions(Mutex<HashMap<String, KeptSession>>);

#[derive(Debug)]
struct KeptSession {
    owner: Owner,
    client: String,
    /// When a front last asked for it. Fronts of a host without a cluster ask only for sessions of other fronts.
    used: Instant,
}

impl McpSessions {
    /// Carries out a request of a front for this owner. Returns what the client of the session said of itself, if the request
    /// asks for it and the session is the owner's. In a cluster, a session ends that no host has asked for in the time `idle`.
    pub(crate) fn carry_out(
        &self,
        owner: Owner,
        request: McpSessionRequest,
        idle: Option<Duration>,
    ) -> Option<String> {
        match request {
            McpSessionRequest::Keep { id, client } => {
                self.keep(id, KeptSession { owner, client, used: Instant::now() });
                None
            }
            McpSessionRequest::Find { id } => self.find(owner, &id, idle),
            // `Supervisor::deliver` carries it out.
            McpSessionRequest::Deliver { .. } => None,
            McpSessionRequest::End { id } => {
                let mut sessions = self.0.lock();
                if sessions.get(&id).is_some_and(|session| session.owner == owner) {
                    sessions.remove(&id);
                }
                None
            }
        }
    }

    fn find(&self, owner: Owner, id: &str, idle: Option<Duration>) -> Option<String> {
        let mut sessions = self.0.lock();
        let session = sessions.get_mut(id).filter(|session| session.owner == owner)?;
        if idle.is_some_and(|idle| session.used.elapsed() >= idle) {
            sessions.remove(id);
            return None;
        }
        session.used = Instant::now();
        Some(session.client.clone())
    }

    fn keep(&self, id: String, session: KeptSession) {
        if id.len() > ID_BYTES_MAX || session.client.len() > CLIENT_BYTES_MAX {
            return;
        }
        let mut sessions = self.0.lock();
        // Nobody gets the session of somebody else.
        if sessions.contains_key(&id) {
            return;
        }
        while sessions.values().map(KeptSession::bytes).sum::<usize>() + session.bytes() > BYTES_MAX {
            let Some(evicted) = session_to_evict(&sessions) else { break };
            sessions.remove(&evicted);
        }
        sessions.insert(id, session);
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

impl KeptSession {
    fn bytes(&self) -> usize {
        BYTES_OF_SESSION + self.client.len()
    }
}

/// Returns the least recently used session of the client with the most.
fn session_to_evict(sessions: &HashMap<String, KeptSession>) -> Option<String> {
    let mut bytes: HashMap<Owner, usize> = HashMap::new();
    sessions.values().for_each(|session| *bytes.entry(session.owner).or_default() += session.bytes());
    let (most, _) = bytes.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    let of_most = sessions.iter().filter(|(_, session)| session.owner == most);
    of_most.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    fn keep(sessions: &McpSessions, owner: Owner, id: &str, client: &str) {
        let (id, client) = (id.to_owned(), client.to_owned());
        assert_eq!(sessions.carry_out(owner, McpSessionRequest::Keep { id, client }, None), None);
    }

    fn find(sessions: &McpSessions, owner: Owner, id: &str) -> Option<String> {
        sessions.carry_out(owner, McpSessionRequest::Find { id: id.to_owned() }, Some(IDLE))
    }

    #[test]
    fn a_session_is_found_by_its_owner_alone_until_it_ends() {
        let (sessions, owner, other) =
            (McpSessions::default(), Owner::of_connection(1), Owner::of_connection(2));
        keep(&sessions, owner, "s", "one");
        keep(&sessions, other, "s", "two");
        assert_eq!(find(&sessions, owner, "s").as_deref(), Some("one"));
        assert_eq!(find(&sessions, other, "s"), None);
        assert_eq!(find(&sessions, owner, "t"), None);
        sessions.forget("t");
        assert_eq!(find(&sessions, owner, "s").as_deref(), Some("one"), "control");
        sessions.forget("s");
        assert_eq!(find(&sessions, owner, "s"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_nobody_asks_for_it_any_more() {
        let (sessions, owner) = (McpSessions::default(), Owner::of_connection(1));
        keep(&sessions, owner, "s", "one");
        for _ in 0..3 {
            tokio::time::advance(IDLE * 2 / 3).await;
            assert_eq!(find(&sessions, owner, "s").as_deref(), Some("one"));
        }
        tokio::time::advance(IDLE).await;
        assert_eq!(find(&sessions, owner, "s"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_size_of_all_sessions_is_bounded_and_that_of_few_is_kept() {
        let (sessions, few, many) =
            (McpSessions::default(), Owner::of_connection(1), Owner::of_connection(2));
        keep(&sessions, few, &"i".repeat(ID_BYTES_MAX + 1), "long id");
        keep(&sessions, few, "c", &"c".repeat(CLIENT_BYTES_MAX + 1));
        assert_eq!(sessions.0.lock().len(), 0);
        keep(&sessions, few, "of few", "client");
        let client = "c".repeat(CLIENT_BYTES_MAX);
        let count = BYTES_MAX / (BYTES_OF_SESSION + CLIENT_BYTES_MAX);
        for number in 0..=count {
            tokio::time::advance(Duration::from_millis(1)).await;
            keep(&sessions, many, &number.to_string(), &client);
        }
        let kept = sessions.0.lock();
        assert!(kept.values().map(KeptSession::bytes).sum::<usize>() <= BYTES_MAX);
        assert!(kept.contains_key("of few") && !kept.contains_key("0") && kept.contains_key("2"));
        assert!(kept.contains_key(&count.to_string()));
    }
}
