//! The MCP sessions over HTTP that fronts keep here, so that the clients continue them when another front takes the place of
//! theirs. The state of a session is the front's: what is kept is who began it, and what the client said of itself.

use std::collections::HashMap;

use lockhouse_messages::{McpSessionRequest, Owner};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum size of the sessions of all clients together that the engine keeps, in bytes: some 65,000 of most clients. For a new one, the
/// client with the most loses half of its sessions: those that were not used for the longest time.
/// Bound: engines and fronts.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// The size of a session beside what its client says of itself, in bytes.
const BYTES_OF_SESSION: usize = 256;
/// Maximum length of the id of a session, and of what its client says of itself, in bytes. A session with more is not kept.
/// Bound: engines and fronts.
const ID_BYTES_MAX: usize = 64;
const CLIENT_BYTES_MAX: usize = 8 * 1024;

/// The kept sessions.
#[derive(Debug, Default)]
pub(crate) struct McpSessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<String, KeptSession>,
    /// The size of all of them.
    bytes: usize,
}

#[derive(Debug)]
struct KeptSession {
    owner: Owner,
    client: String,
    /// When a front last asked for it. Fronts of a host without a cluster ask only for sessions of other fronts.
    used: Instant,
}

impl McpSessions {
    /// Carries out a request of a front for this owner. Returns what the client of the session said of itself, if the request
    /// asks for it and the session is the owner's.
    pub(crate) fn carry_out(&self, owner: Owner, request: McpSessionRequest) -> Option<String> {
        let mut table = self.0.lock();
        match request {
            McpSessionRequest::Keep { id, client } => {
                table.keep(id, KeptSession { owner, client, used: Instant::now() });
                None
            }
            McpSessionRequest::Find { id } => {
                let session = table.sessions.get_mut(&id).filter(|session| session.owner == owner)?;
                session.used = Instant::now();
                Some(session.client.clone())
            }
            // `Supervisor::deliver` carries it out.
            McpSessionRequest::Deliver { .. } => None,
            McpSessionRequest::End { id } => {
                if table.sessions.get(&id).is_some_and(|session| session.owner == owner) {
                    table.remove(&id);
                }
                None
            }
        }
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

impl Table {
    fn keep(&mut self, id: String, session: KeptSession) {
        if id.len() > ID_BYTES_MAX || session.client.len() > CLIENT_BYTES_MAX {
            return;
        }
        // Nobody gets the session of somebody else.
        if self.sessions.contains_key(&id) {
            return;
        }
        while self.bytes + session.bytes() > BYTES_MAX {
            let evicted = self.sessions_to_evict();
            if evicted.is_empty() {
                return;
            }
            evicted.iter().for_each(|id| self.remove(id));
        }
        self.bytes += session.bytes();
        self.sessions.insert(id, session);
    }

    fn remove(&mut self, id: &str) {
        if let Some(removed) = self.sessions.remove(id) {
            self.bytes -= removed.bytes();
        }
    }

    /// Returns the less recently used half of the sessions of the client with the most.
    fn sessions_to_evict(&self) -> Vec<String> {
        let mut bytes: HashMap<Owner, usize> = HashMap::new();
        self.sessions
            .values()
            .for_each(|session| *bytes.entry(session.owner).or_default() += session.bytes());
        let most = bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(owner, _)| owner);
        let mut of_most: Vec<_> =
            self.sessions.iter().filter(|(_, session)| Some(session.owner) == most).collect();
        of_most.sort_by_key(|(_, session)| session.used);
        of_most.truncate(of_most.len().div_ceil(2));
        of_most.into_iter().map(|(id, _)| id.clone()).collect()
    }
}

impl KeptSession {
    fn bytes(&self) -> usize {
        BYTES_OF_SESSION + self.client.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn keep(sessions: &McpSessions, owner: Owner, id: &str, client: &str) {
        let (id, client) = (id.to_owned(), client.to_owned());
        assert_eq!(sessions.carry_out(owner, McpSessionRequest::Keep { id, client }), None);
    }

    fn find(sessions: &McpSessions, owner: Owner, id: &str) -> Option<String> {
        sessions.carry_out(owner, McpSessionRequest::Find { id: id.to_owned() })
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
    async fn the_size_of_all_sessions_is_bounded_and_that_of_few_is_kept() {
        let (sessions, few, many) =
            (McpSessions::default(), Owner::of_connection(1), Owner::of_connection(2));
        keep(&sessions, few, &"i".repeat(ID_BYTES_MAX + 1), "long id");
        keep(&sessions, few, "c", &"c".repeat(CLIENT_BYTES_MAX + 1));
        assert_eq!(sessions.0.lock().sessions.len(), 0);
        keep(&sessions, few, "of few", "client");
        let client = "c".repeat(CLIENT_BYTES_MAX);
        let count = BYTES_MAX / (BYTES_OF_SESSION + CLIENT_BYTES_MAX);
        for number in 0..=count {
            tokio::time::advance(Duration::from_millis(1)).await;
            keep(&sessions, many, &number.to_string(), &client);
        }
        let kept = sessions.0.lock();
        assert_eq!(kept.bytes, kept.sessions.values().map(KeptSession::bytes).sum::<usize>());
        assert!(kept.bytes <= BYTES_MAX && kept.sessions.contains_key("of few"));
        let (evicted, rest) = (count / 2, count / 2 + 1);
        assert!(!kept.sessions.contains_key(&(evicted - 1).to_string()));
        assert!(
            kept.sessions.contains_key(&rest.to_string()) && kept.sessions.contains_key(&count.to_string())
        );
    }
}
