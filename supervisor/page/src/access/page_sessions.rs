//! The sessions of pages: each has begun with a login, and lasts for a bounded time.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::Mutex;

use super::{NoRandomNumbers, SESSION_LIFETIME, TokenLogin, digest, random_secret};
use crate::viewer::Viewer;

/// Maximum number of sessions of one viewer. A further login ends the viewer's oldest session.
const SESSIONS_OF_VIEWER_MAX: usize = 32;
/// Maximum number of sessions of all viewers. A further login ends the oldest session.
/// Bound: the live page.
const SESSIONS_MAX: usize = 1_000;

/// The sessions, oldest first.
#[derive(Default)]
pub(super) struct PageSessions(Mutex<VecDeque<PageSession>>);

struct PageSession {
    cookie: [u8; 32],
    key: [u8; 32],
    login: TokenLogin,
    begun: Instant,
}

/// The two secrets of a new session. This process stores only their digests.
pub(super) struct SessionSecrets {
    pub(super) cookie: String,
    pub(super) key: String,
}

impl PageSessions {
    pub(super) fn begin(&self, login: TokenLogin) -> Result<SessionSecrets, NoRandomNumbers> {
        let secrets = SessionSecrets { cookie: random_secret()?, key: random_secret()? };
        let mut sessions = self.0.lock();
        let is_own = |session: &PageSession| session.login.viewer.is_same_person(&login.viewer);
        if sessions.iter().filter(|session| is_own(session)).count() == SESSIONS_OF_VIEWER_MAX
            && let Some(oldest) = sessions.iter().position(is_own)
        {
            sessions.remove(oldest);
        }
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        let (cookie, key) = (digest(&secrets.cookie), digest(&secrets.key));
        sessions.push_back(PageSession { cookie, key, login, begun: Instant::now() });
        Ok(secrets)
    }

    /// Returns the viewer of the session with both secrets.
    pub(super) fn find(&self, cookie: &str, key: &str) -> Option<Viewer> {
        let (cookie, key) = (digest(cookie), digest(key));
        let mut sessions = self.0.lock();
        sessions.retain(|session| session.begun.elapsed() < SESSION_LIFETIME && (session.login.is_valid)());
        let found = sessions.iter().find(|session| session.cookie == cookie && session.key == key)?;
        Some(found.login.viewer.clone())
    }

    pub(super) fn end(&self, cookie: &str) {
        let cookie = digest(cookie);
        self.0.lock().retain(|session| session.cookie != cookie);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn viewer(name: &str) -> Viewer {
        Viewer::administrator(name)
    }

    fn login(name: &str) -> TokenLogin {
        TokenLogin { viewer: viewer(name), is_valid: Box::new(|| true) }
    }

    #[test]
    fn a_session_needs_both_of_its_secrets() {
        let sessions = PageSessions::default();
        let ann = sessions.begin(login("ann")).expect("random numbers");
        let ben = sessions.begin(login("ben")).expect("random numbers");
        assert_eq!(sessions.find(&ann.cookie, &ann.key), Some(viewer("ann")));
        assert_eq!(sessions.find(&ben.cookie, &ben.key), Some(viewer("ben")));
        assert_eq!(sessions.find(&ann.cookie, &ben.key), None);
        assert_eq!(sessions.find(&ann.key, &ann.cookie), None);
        sessions.end(&ann.cookie);
        assert_eq!(sessions.find(&ann.cookie, &ann.key), None);
    }

    #[test]
    fn many_logins_end_only_sessions_of_the_same_viewer() {
        let sessions = PageSessions::default();
        let ann = sessions.begin(login("ann")).expect("random numbers");
        let first = sessions.begin(login("eve")).expect("random numbers");
        for _ in 0..SESSIONS_OF_VIEWER_MAX {
            sessions.begin(login("eve")).expect("random numbers");
        }
        assert_eq!(sessions.find(&first.cookie, &first.key), None);
        assert_eq!(sessions.find(&ann.cookie, &ann.key), Some(viewer("ann")));
    }

    #[test]
    fn a_session_ends_with_the_token_that_began_it() {
        let (sessions, valid) = (PageSessions::default(), Arc::new(AtomicBool::new(true)));
        let check = valid.clone();
        let is_valid = Box::new(move || check.load(Ordering::Relaxed));
        let ann = sessions.begin(TokenLogin { viewer: viewer("ann"), is_valid }).expect("random numbers");
        assert!(sessions.find(&ann.cookie, &ann.key).is_some());
        valid.store(false, Ordering::Relaxed);
        assert_eq!(sessions.find(&ann.cookie, &ann.key), None);
    }
}
