//! The MCP sessions over HTTP that fronts keep here, so that the clients continue them when another front takes the place of
//! theirs. The state of a session is the front's: what is kept is who began it, and what the client said of itself.

use std::collections::{HashMap, VecDeque};

use lockhouse_messages::{McpSessionRequest, Owner};
use parking_lot::Mutex;

/// Maximum number of sessions of all clients together that the engine keeps. The oldest is forgotten for a new one.
/// Bound: engines and fronts.
const SESSIONS_MAX: usize = 4_096;
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
    /// The ids in the order in which the sessions began.
    order: VecDeque<String>,
}

#[derive(Debug)]
struct KeptSession {
    owner: Owner,
    client: String,
}

impl McpSessions {
    /// Carries out a request of a front for this owner. Returns what the client of the session said of itself, if the request
    /// asks for it and the session is the owner's.
    pub(crate) fn carry_out(&self, owner: Owner, request: McpSessionRequest) -> Option<String> {
        match request {
            McpSessionRequest::Keep { id, client } => {
                self.keep(id, KeptSession { owner, client });
                None
            }
            McpSessionRequest::Find { id } => {
                let table = self.0.lock();
                Some(table.sessions.get(&id).filter(|session| session.owner == owner)?.client.clone())
            }
            // `Supervisor::deliver` carries it out.
            McpSessionRequest::Deliver { .. } => None,
            McpSessionRequest::End { id } => {
                let is_own = self.0.lock().sessions.get(&id).is_some_and(|session| session.owner == owner);
                if is_own {
                    self.forget(&id);
                }
                None
            }
        }
    }

    fn keep(&self, id: String, session: KeptSession) {
        if id.len() > ID_BYTES_MAX || session.client.len() > CLIENT_BYTES_MAX {
            return;
        }
        let mut table = self.0.lock();
        // Nobody gets the session of somebody else.
        if table.sessions.contains_key(&id) {
            return;
        }
        while table.sessions.len() >= SESSIONS_MAX {
            let Some(oldest) = table.order.pop_front() else { break };
            table.sessions.remove(&oldest);
        }
        table.order.push_back(id.clone());
        table.sessions.insert(id, session);
    }

    /// Forgets a session that has ended.
    pub(crate) fn forget(&self, id: &str) {
        let mut table = self.0.lock();
        if table.sessions.remove(id).is_some() {
            table.order.retain(|kept| kept != id);
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_number_and_size_of_sessions_are_bounded() {
        let (sessions, owner) = (McpSessions::default(), Owner::of_connection(1));
        keep(&sessions, owner, &"i".repeat(ID_BYTES_MAX + 1), "long id");
        keep(&sessions, owner, "c", &"c".repeat(CLIENT_BYTES_MAX + 1));
        assert_eq!(sessions.0.lock().sessions.len(), 0);
        for number in 0..=SESSIONS_MAX {
            keep(&sessions, owner, &number.to_string(), "client");
        }
        let table = sessions.0.lock();
        assert_eq!((table.sessions.len(), table.order.len()), (SESSIONS_MAX, SESSIONS_MAX));
        assert!(!table.sessions.contains_key("0") && table.sessions.contains_key("1"));
    }
}
