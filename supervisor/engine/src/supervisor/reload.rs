//! A new configuration while we run: it takes the place of the old one whole.
//!
//! What is running keeps the policy and the servers with which it began. A server that is configured as it was keeps its
//! connection; one that is not is closed once nothing that began before is left that could call it.

use parking_lot::MutexGuard;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_audit::{InForceDigests, Reload, ReloadCause};
use lockhouse_gate::Gate;
use lockhouse_policies::Policy;
use lockhouse_upstream::{Notice, Upstreams};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Settings, Supervisor, note};

/// What an execution may take to end after its clock has run out.
const END_MARGIN: Duration = Duration::from_secs(5);

/// Policy and servers, as long as they are in force or something that began under them runs.
#[derive(Debug)]
pub struct InForce {
    gate: Gate,
    /// The hash of the configuration and the servers files.
    configuration: Option<String>,
    /// Cancelled when this goes.
    over: CancellationToken,
    _guard: DropGuard,
}

impl InForce {
    pub(super) fn new(gate: Gate, configuration: Option<String>) -> Arc<Self> {
        let over = CancellationToken::new();
        Arc::new(Self { gate, configuration, over: over.clone(), _guard: over.drop_guard() })
    }

    fn digests(&self) -> InForceDigests<'_> {
        InForceDigests { policy: self.gate.policy_digest(), configuration: self.configuration.as_deref() }
    }
}

impl Deref for InForce {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

impl Supervisor {
    /// What is in force now. Whoever keeps it keeps the servers that it has.
    pub fn gate(&self) -> Arc<InForce> {
        self.in_force.lock().clone()
    }

    /// Another configuration was to be loaded, and cannot be: what was in force stays.
    pub fn reload_refused(&self, cause: ReloadCause, reason: &str) {
        let in_force = self.gate();
        let (now, before) = (in_force.digests(), in_force.digests());
        note(in_force.audit().reload(Reload { cause, refused: Some(reason), now, before }));
    }

    /// Puts another configuration in force. That takes effect even where it cannot be recorded: it may take something away, and
    /// no call is made without a record anyway.
    pub fn reload(&self, cause: ReloadCause, settings: Settings, policy: Policy) {
        for refusal in &settings.refused {
            tracing::warn!("{refusal}");
        }
        let (upstreams, left_over) =
            self.gate().upstreams().succeeded_by(settings.servers.clone(), &settings.places);
        // Those of the servers before are still in use for a while, and are as secret.
        self.gate().audit().keep_out(upstreams.secrets().and(&self.gate().upstreams().secrets()));
        let before = {
            let mut in_force = self.in_force.lock();
            let next = InForce::new(in_force.succeeded_by(policy, upstreams), settings.digest.clone());
            std::mem::replace(&mut *in_force, next)
        };
        self.tell_fronts();
        let in_force = self.gate();
        let digests = (in_force.digests(), before.digests());
        note(in_force.audit().reload(Reload { cause, refused: None, now: digests.0, before: digests.1 }));
        self.life.reloaded();
        self.gate().upstreams().notices().tell(Notice::Everything);
        tracing::info!(
            "the configuration is in force; {} connections of the one before are closed",
            left_over.count()
        );
        self.warn_about_policy(&settings);
        self.retired().push(left_over.clone());
        let patience = self.settings.limits.wall + self.settings.limits.grace + END_MARGIN;
        let over = before.over.clone();
        drop(before);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(patience, over.cancelled()).await;
            left_over.close().await;
        });
    }

    /// Ends every upstream server. Workers end with the process.
    pub async fn close(&self) {
        self.sessions.close();
        let retired = std::mem::take(&mut *self.retired());
        let in_force = self.gate();
        futures_util::future::join_all(retired.iter().chain([in_force.upstreams()]).map(Upstreams::close))
            .await;
        in_force.audit().close();
    }

    /// Servers of configurations that were in force before, as far as they are not closed.
    fn retired(&self) -> MutexGuard<'_, Vec<Upstreams>> {
        let mut retired = self.retired.lock();
        retired.retain(|upstreams| !upstreams.is_closed());
        retired
    }
}
