//! The tokens with which users authenticate to the service, for an exchange into tokens for upstream servers. They are in the
//! memory of this process alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::expiring_map::ExpiringMap;
use lockhouse_messages::Owner;
use parking_lot::Mutex;

/// Maximum number of users whose tokens are remembered. A further one replaces the oldest.
/// Bound: upstream servers.
const USERS_MAX: usize = 4_096;
/// Maximum time for which a token is remembered.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The latest token of each user. Clones share them.
#[derive(Clone)]
pub struct SubjectTokens(Arc<Mutex<ExpiringMap<Owner, SubjectToken>>>);

struct SubjectToken {
    token: Arc<str>,
    expires: Instant,
}

impl Default for SubjectTokens {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(ExpiringMap::new(USERS_MAX, LIFETIME))))
    }
}

/// Prints no token.
impl std::fmt::Debug for SubjectTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SubjectTokens")
    }
}

impl SubjectTokens {
    /// Remembers the token with which a user has authenticated now.
    pub fn note(&self, user: Owner, token: &str, expires_in: Duration) {
        let expires = Instant::now() + expires_in.min(LIFETIME);
        self.0.lock().insert(user.user(), SubjectToken { token: token.into(), expires });
    }

    /// Forgets the token of a user.
    pub fn forget(&self, user: Owner) {
        self.0.lock().remove(&user.user());
    }

    /// Returns the token of a user. `None` if the user has none that is valid.
    pub(crate) fn get(&self, user: Owner) -> Option<Arc<str>> {
        let tokens = self.0.lock();
        let subject = tokens.get(&user.user())?;
        (subject.expires > Instant::now()).then(|| subject.token.clone())
    }
}
