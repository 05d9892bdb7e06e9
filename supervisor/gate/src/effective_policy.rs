//! The policy that applies to the calls of an execution: the policy with which the execution started, combined with the
//! newest policy. The stricter decision of the two holds. So a changed policy restricts running executions at once, but
//! extends only later ones.

use std::sync::Arc;

use parking_lot::Mutex;

use lockhouse_audit::digest;
use lockhouse_policies::{ClientName, PermittedCall, Policy, ScopedLimits};

/// The policy with which executions of one gate started, combined with the newest policy.
#[derive(Debug)]
pub(super) struct EffectivePolicy {
    /// The policy with which the executions started.
    base: Arc<Policy>,
    /// The SHA-256 digest of the files of `base`; `None` if there are no files.
    digest: Option<String>,
    /// The newest policy, shared with all earlier and later values.
    newest: Arc<Mutex<Arc<Policy>>>,
    /// The newest policy of which the intersection with `base` was computed, and this intersection. A cache.
    intersection: Mutex<Option<(Arc<Policy>, Arc<Policy>)>>,
}

impl EffectivePolicy {
    /// Creates the effective policy of the first policy of the process.
    pub(super) fn new(policy: Policy) -> Self {
        let (digest, base) = (policy_digest(&policy), Arc::new(policy));
        Self { newest: Arc::new(Mutex::new(base.clone())), base, digest, intersection: Mutex::default() }
    }

    /// Returns the effective policy of a new policy, which also restricts the executions that use `self`.
    pub(super) fn replace_with(&self, policy: Policy) -> Self {
        let (digest, base) = (policy_digest(&policy), Arc::new(policy));
        *self.newest.lock() = base.clone();
        Self { base, digest, newest: self.newest.clone(), intersection: Mutex::default() }
    }

    /// Returns the SHA-256 digest of the files of the base policy; `None` if there are no files.
    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Returns the policy that decides about calls: the intersection of the base policy and the newest policy.
    pub(super) fn current(&self) -> Arc<Policy> {
        let newest = self.newest.lock().clone();
        if Arc::ptr_eq(&newest, &self.base) {
            return newest;
        }
        let mut intersection = self.intersection.lock();
        match &*intersection {
            Some((of, both)) if Arc::ptr_eq(of, &newest) => both.clone(),
            _ => {
                let both = Arc::new(Policy::clone(&self.base).restricted_by(Policy::clone(&newest)));
                *intersection = Some((newest, both.clone()));
                both
            }
        }
    }

    /// Returns the limits of a call in the base policy and in the newest policy. A limit that both contain appears
    /// twice.
    pub(super) fn limits(&self, call: &PermittedCall, client: Option<&ClientName>) -> Vec<ScopedLimits> {
        let mut limits = self.base.limits(call, client);
        let newest = self.newest.lock().clone();
        if !Arc::ptr_eq(&newest, &self.base) {
            limits.extend(newest.limits(call, client));
        }
        limits
    }
}

/// Returns the combined SHA-256 digest of all files of a policy; `None` if there are none.
fn policy_digest(policy: &Policy) -> Option<String> {
    let digests: Vec<String> = policy.texts().map(digest::sha256_hex).collect();
    digest::combined_sha256(&digests)
}
