//! The sessions of pages: each has begun with a login, and lasts for a bounded time.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::Mutex;

use super::{SESSION_LIFETIME, digest, random_secret};
use crate::viewer::Viewer;

/// Maximum number of sessions. A further login ends the oldest session.
const SESSIONS_MAX: usize = 32;

/// The sessions, oldest first.
#[derive(Default)]
pub(super) struct PageSessions(Mutex<VecDeque<PageSession>>);

struct PageSession {
    cookie: [u8; 32],
    key: [u8; 32],
    viewer: Viewer,
    begun: Instant,
}

/// The two secrets of a new session. This process stores only their digests.
pub(super) struct SessionSecrets {
    pub(super) cookie: String,
    pub(super) key: String,
}

impl PageSessions {
    pub(super) fn begin(&self, viewer: Viewer) -> Result<SessionSecrets, getrandom::Error> {
        let secrets = SessionSecrets { cookie: random_secret()?, key: random_secret()? };
        let mut sessions = self.0.lock();
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        let (cookie, key) = (digest(&secrets.cookie), digest(&secrets.key));
        sessions.push_back(PageSession { cookie, key, viewer, begun: Instant::now() });
        Ok(secrets)
    }

    /// Returns the viewer of the session with both secrets.
    pub(super) fn find(&self, cookie: &str, key: &str) -> Option<Viewer> {
        let (cookie, key) = (digest(cookie), digest(key));
        let mut sessions = self.0.lock();
        sessions.retain(|session| session.begun.elapsed() < SESSION_LIFETIME);
        let found = sessions.iter().find(|session| session.cookie == cookie && session.key == key)?;
        Some(found.viewer.clone())
    }

    pub(super) fn end(&self, cookie: &str) {
        let cookie = digest(cookie);
        self.0.lock().retain(|session| session.cookie != cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_needs_both_of_its_secrets() {
        let sessions = PageSessions::default();
        let viewer = |name: &str| Viewer::Administrator { name: name.into() };
        let ann = sessions.begin(viewer("ann")).expect("random numbers");
        let ben = sessions.begin(viewer("ben")).expect("random numbers");
        assert_eq!(sessions.find(&ann.cookie, &ann.key), Some(viewer("ann")));
        assert_eq!(sessions.find(&ben.cookie, &ben.key), Some(viewer("ben")));
        assert_eq!(sessions.find(&ann.cookie, &ben.key), None);
        assert_eq!(sessions.find(&ann.key, &ann.cookie), None);
        sessions.end(&ann.cookie);
        assert_eq!(sessions.find(&ann.cookie, &ann.key), None);
        for _ in 0..SESSIONS_MAX {
            sessions.begin(viewer("eve")).expect("random numbers");
        }
        assert_eq!(sessions.find(&ben.cookie, &ben.key), None, "the oldest session has ended");
    }
}
