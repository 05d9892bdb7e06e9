//! One-time links, each of which begins one session.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{NoRandomNumbers, TokenLogin, digest, random_secret};
use crate::viewer::Viewer;

/// Maximum number of links that can be used at one time. A further link replaces the oldest one.
const LINKS_MAX: usize = 8;

/// The secret of a one-time link.
#[derive(Clone, Debug)]
pub struct LoginLink {
    pub token: String,
}

impl LoginLink {
    /// Returns what follows the address of the page. The secret is in the fragment, which browsers do not send.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/#token={}", self.token)
    }
}

/// The one-time links that were created and not used yet.
pub(super) struct LoginLinks {
    lifetime: Duration,
    open: Mutex<VecDeque<OpenLink>>,
}

struct OpenLink {
    digest: [u8; 32],
    login: TokenLogin,
    created: Instant,
}

impl LoginLinks {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, open: Mutex::default() }
    }

    pub(super) fn create(&self, viewer: Viewer) -> Result<LoginLink, NoRandomNumbers> {
        self.create_login(TokenLogin { viewer, is_valid: Box::new(|| true) })
    }

    /// Creates a link whose session ends when the login is no longer valid.
    pub(super) fn create_login(&self, login: TokenLogin) -> Result<LoginLink, NoRandomNumbers> {
        let token = random_secret()?;
        let mut open = self.open.lock();
        if open.len() == LINKS_MAX {
            open.pop_front();
        }
        open.push_back(OpenLink { digest: digest(&token), login, created: Instant::now() });
        Ok(LoginLink { token })
    }

    /// Returns the login of a link that was not used and has not expired. The link cannot be used again.
    pub(super) fn redeem(&self, token: &str) -> Option<TokenLogin> {
        let digest = digest(token);
        let mut open = self.open.lock();
        open.retain(|link| link.created.elapsed() < self.lifetime);
        let at = open.iter().position(|link| link.digest == digest)?;
        open.remove(at).map(|link| link.login)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer() -> Viewer {
        Viewer::administrator("ann")
    }

    fn redeemed(links: &LoginLinks, token: &str) -> Option<Viewer> {
        links.redeem(token).map(|login| login.viewer)
    }

    #[test]
    fn a_link_can_be_used_once_until_it_expires() {
        let links = LoginLinks::new(Duration::from_secs(60));
        let link = links.create(viewer()).expect("random numbers");
        assert_eq!(link.token.len(), 64);
        assert_eq!(redeemed(&links, "x"), None);
        assert_eq!(redeemed(&links, &link.token), Some(viewer()));
        assert_eq!(redeemed(&links, &link.token), None);
        let expired = LoginLinks::new(Duration::ZERO);
        let link = expired.create(viewer()).expect("random numbers");
        assert_eq!(redeemed(&expired, &link.token), None);
    }

    #[test]
    fn the_oldest_link_is_replaced() {
        let links = LoginLinks::new(Duration::from_secs(60));
        let created: Vec<LoginLink> =
            (0..=LINKS_MAX).map(|_| links.create(viewer()).expect("random numbers")).collect();
        assert_eq!(redeemed(&links, &created[0].token), None);
        assert_eq!(redeemed(&links, &created[1].token), Some(viewer()));
    }
}
