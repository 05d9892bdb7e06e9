//! An access that the engine granted, as the front uses it: until when it is valid, and whether the engine has refused a
//! request under it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use lockhouse_messages::{Access, AccessRefusal, GrantId, Owner};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of ended grants that a front remembers. It needs them only for the moment between the engine's
/// response and its use.
const ENDED_MAX: usize = 1_024;
/// Number of grants above which a front forgets those that nobody uses any more.
const KNOWN_MIN: usize = 64;

/// The access of one AI client, for one HTTP request or one connection over standard input and output. Clones share it.
#[derive(Clone, Debug)]
pub struct GrantedAccess(Arc<GrantedAccessInner>);

#[derive(Debug)]
struct GrantedAccessInner {
    access: Access,
    expires_at: Option<Instant>,
    /// Cancelled when the engine ends the grant. All values with the same grant share it.
    ended: Arc<CancellationToken>,
    refusal: OnceLock<AccessRefusal>,
}

impl GrantedAccess {
    pub fn new(access: Access, ended: Arc<CancellationToken>) -> Self {
        let expires_at = access.expires_in.and_then(|left| Instant::now().checked_add(left));
        Self(Arc::new(GrantedAccessInner { access, expires_at, ended, refusal: OnceLock::new() }))
    }

    /// Returns the same access for another request, which the engine has not refused.
    #[must_use]
    pub fn for_another_request(&self) -> Self {
        let GrantedAccessInner { access, expires_at, ended, .. } = &*self.0;
        let (access, ended) = (access.clone(), ended.clone());
        Self(Arc::new(GrantedAccessInner {
            access,
            expires_at: *expires_at,
            ended,
            refusal: OnceLock::new(),
        }))
    }

    /// Whether the access has expired or the engine has ended it.
    pub fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled() || self.0.expires_at.is_some_and(|end| end <= Instant::now())
    }

    pub fn grant(&self) -> GrantId {
        self.0.access.grant
    }

    pub fn owner(&self) -> Owner {
        self.0.access.owner
    }

    /// Whether the client may use all upstream servers that the policy permits.
    pub fn is_unrestricted(&self) -> bool {
        self.0.access.only.is_none()
    }

    /// Returns the client's name in the policy and the audit log: its authenticated name, or `reported_name`, which the
    /// client reports itself. `None` if it has neither.
    pub fn client(&self, reported_name: Option<&str>) -> Option<String> {
        self.0.access.client.clone().or_else(|| reported_name.map(str::to_owned))
    }

    /// Waits until the access expires or the engine ends it. Waits for ever if neither happens.
    pub async fn ended(&self) {
        let expired = async {
            match self.0.expires_at {
                Some(end) => tokio::time::sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.0.ended.cancelled() => {}
            () = expired => {}
        }
    }

    /// Returns why the engine refused a request under this value, if it did.
    pub fn refusal(&self) -> Option<&AccessRefusal> {
        self.0.refusal.get()
    }

    pub(crate) fn set_refusal(&self, refusal: AccessRefusal) {
        // The first reason counts.
        let _ = self.0.refusal.set(refusal);
    }
}

/// The grants that a front knows, to pass their ends on.
#[derive(Debug, Default)]
pub(crate) struct KnownGrants {
    used: HashMap<GrantId, Weak<CancellationToken>>,
    /// The number of grants at which unused ones are forgotten.
    prune_at: usize,
    /// Grants that ended while no value used them. The end of a grant may arrive before its first use.
    ended: VecDeque<GrantId>,
}

impl KnownGrants {
    /// Returns the token that is cancelled when the grant ends.
    pub(crate) fn end_of(&mut self, grant: GrantId) -> Arc<CancellationToken> {
        if let Some(known) = self.used.get(&grant).and_then(Weak::upgrade) {
            return known;
        }
        let end = Arc::new(CancellationToken::new());
        if self.ended.contains(&grant) {
            end.cancel();
            return end;
        }
        if self.used.len() >= self.prune_at {
            self.used.retain(|_, known| known.strong_count() > 0);
            self.prune_at = (2 * self.used.len()).max(KNOWN_MIN);
        }
        self.used.insert(grant, Arc::downgrade(&end));
        end
    }

    pub(crate) fn end(&mut self, grant: GrantId) {
        if let Some(known) = self.used.remove(&grant).and_then(|known| known.upgrade()) {
            known.cancel();
        }
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(grant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_grant_reaches_earlier_and_later_uses_of_it_alone() {
        let mut grants = KnownGrants::default();
        let [first, second] = [GrantId::new_random(), GrantId::new_random()];
        let (early, other) = (grants.end_of(first), grants.end_of(second));
        assert!(Arc::ptr_eq(&early, &grants.end_of(first)));
        grants.end(first);
        assert!(early.is_cancelled() && grants.end_of(first).is_cancelled());
        assert!(!other.is_cancelled() && !grants.end_of(second).is_cancelled());
        let unused = GrantId::new_random();
        grants.end(unused);
        assert!(grants.end_of(unused).is_cancelled(), "its end arrived before its first use");
    }

    #[test]
    fn what_a_front_remembers_is_bounded() {
        let mut grants = KnownGrants::default();
        let kept = grants.end_of(GrantId::new_random());
        for _ in 0..10_000 {
            drop(grants.end_of(GrantId::new_random()));
            grants.end(GrantId::new_random());
        }
        assert!(grants.used.len() <= KNOWN_MIN && grants.ended.len() == ENDED_MAX);
        assert!(!kept.is_cancelled());
    }
}
