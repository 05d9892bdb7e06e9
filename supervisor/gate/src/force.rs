//! Which policy a call is judged by: the one that its execution began under, and the one that is in force by now. Of the two
//! the stricter counts, so that a change can take away from what is running, and give to what begins after it.

use std::sync::Arc;

use parking_lot::Mutex;

use lockhouse_audit::digest;
use lockhouse_policies::{ClientName, PermittedCall, Policy, ScopedLimits};

/// One policy, and how it stands to the newest.
#[derive(Debug)]
pub(super) struct Force {
    own: Arc<Policy>,
    /// Of our own, as its files were written.
    digest: Option<String>,
    newest: Arc<Mutex<Arc<Policy>>>,
    /// Made when it is needed: of which newest policy, and what it and our own are together.
    together: Mutex<Option<(Arc<Policy>, Arc<Policy>)>>,
}

impl Force {
    /// The first.
    pub(super) fn of(policy: Policy) -> Self {
        let (digest, own) = (digest_of(&policy), Arc::new(policy));
        Self { newest: Arc::new(Mutex::new(own.clone())), own, digest, together: Mutex::default() }
    }

    /// Puts another one in force.
    pub(super) fn succeeded_by(&self, policy: Policy) -> Self {
        let (digest, own) = (digest_of(&policy), Arc::new(policy));
        *self.newest.lock() = own.clone();
        Self { own, digest, newest: self.newest.clone(), together: Mutex::default() }
    }

    /// The hash of our own.
    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// What counts now.
    pub(super) fn now(&self) -> Arc<Policy> {
        let newest = self.newest.lock().clone();
        if Arc::ptr_eq(&newest, &self.own) {
            return newest;
        }
        let mut together = self.together.lock();
        match &*together {
            Some((of, both)) if Arc::ptr_eq(of, &newest) => both.clone(),
            _ => {
                let both = Arc::new(Policy::clone(&self.own).under(Policy::clone(&newest)));
                *together = Some((newest, both.clone()));
                both
            }
        }
    }

    /// The limits of both. What is the same in both is there twice.
    pub(super) fn limits(&self, call: &PermittedCall, client: Option<&ClientName>) -> Vec<ScopedLimits> {
        let mut limits = self.own.limits(call, client);
        let newest = self.newest.lock().clone();
        if !Arc::ptr_eq(&newest, &self.own) {
            limits.extend(newest.limits(call, client));
        }
        limits
    }
}

fn digest_of(policy: &Policy) -> Option<String> {
    let digests: Vec<String> = policy.texts().map(digest::of_text).collect();
    digest::of_files(&digests)
}
