//! The policy that applies to a call: the stricter combination of the one its execution started with and the current
//! one. So a policy change can restrict running executions, but extends only later ones.

use std::sync::Arc;

use parking_lot::Mutex;

use lockhouse_audit::digest;
use lockhouse_policies::{ClientName, PermittedCall, Policy, ScopedLimits};

/// The policy that an execution started with, combined with the current policy.
#[derive(Debug)]
pub(super) struct EffectivePolicy {
    base: Arc<Policy>,
    /// Digest of the base policy's files.
    digest: Option<String>,
    newest: Arc<Mutex<Arc<Policy>>>,
    /// Cached intersection of the base policy with the current one, and the current policy it was made from.
    intersection: Mutex<Option<(Arc<Policy>, Arc<Policy>)>>,
}

impl EffectivePolicy {
    /// Makes the first policy the current one.
    pub(super) fn new(policy: Policy) -> Self {
        let (digest, base) = (policy_digest(&policy), Arc::new(policy));
        Self { newest: Arc::new(Mutex::new(base.clone())), base, digest, intersection: Mutex::default() }
    }

    /// Makes another policy the current one, also for holders of this one.
    pub(super) fn replace_with(&self, policy: Policy) -> Self {
        let (digest, base) = (policy_digest(&policy), Arc::new(policy));
        *self.newest.lock() = base.clone();
        Self { base, digest, newest: self.newest.clone(), intersection: Mutex::default() }
    }

    /// Digest of the base policy's files; `None` without a policy.
    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Returns the policy to decide by: the intersection of base and current policy.
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

    /// Returns the limits of both policies. A limit that both contain appears twice.
    pub(super) fn limits(&self, call: &PermittedCall, client: Option<&ClientName>) -> Vec<ScopedLimits> {
        let mut limits = self.base.limits(call, client);
        let newest = self.newest.lock().clone();
        if !Arc::ptr_eq(&newest, &self.base) {
            limits.extend(newest.limits(call, client));
        }
        limits
    }
}

fn policy_digest(policy: &Policy) -> Option<String> {
    let digests: Vec<String> = policy.texts().map(digest::sha256_hex).collect();
    digest::combined_sha256(&digests)
}
