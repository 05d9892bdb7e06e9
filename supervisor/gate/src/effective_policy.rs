//! The policy that applies to the calls of an execution. Each call is evaluated with the policy with which the
//! execution started and with the newest policy, and the stricter decision applies. So a changed policy restricts
//! running executions at once, but permits more only to later executions.

use std::sync::Arc;

use parking_lot::Mutex;

use lockhouse_audit::digest;
use lockhouse_policies::{ClientName, PermittedCall, Policy, ScopedLimits};

/// The effective policy of all executions that started with the same policy. It combines the policy at their start
/// with the newest policy, so that both policies must permit a call.
#[derive(Debug)]
pub(super) struct EffectivePolicy {
    /// The policy with which the executions started.
    base: Arc<Policy>,
    /// The SHA-256 digest of the files of `base`; `None` if there are no files.
    digest: Option<String>,
    /// The newest policy of the process. All `EffectivePolicy` values share it.
    newest: Arc<Mutex<Arc<Policy>>>,
    /// Caches the last computed intersection, as the second element. The first element is the value of `newest` from
    /// which this intersection with `base` was computed.
    intersection: Mutex<Option<(Arc<Policy>, Arc<Policy>)>>,
}

impl EffectivePolicy {
    /// Creates the effective policy at the start of the process, from the first policy.
    pub(super) fn new(policy: Policy) -> Self {
        let (digest, base) = (policy_digest(&policy), Arc::new(policy));
        Self { newest: Arc::new(Mutex::new(base.clone())), base, digest, intersection: Mutex::default() }
    }

    /// Returns the effective policy for executions that start with `policy`. From now on, `policy` also restricts
    /// the executions that use `self`.
    pub(super) fn replace_with(&self, policy: Policy) -> Self {
        let (digest, base) = (policy_digest(&policy), Arc::new(policy));
        *self.newest.lock() = base.clone();
        Self { base, digest, newest: self.newest.clone(), intersection: Mutex::default() }
    }

    /// Returns the SHA-256 digest of the files of the policy with which the executions started; `None` if that
    /// policy has no files.
    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Returns the policy that decides about calls: the intersection of the policy with which the execution
    /// started and the newest policy.
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

    /// Returns the limits of a call from the policy with which the execution started, and from the newest policy if
    /// it is a different one. A limit that both policies contain appears twice.
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
