//! Replaces the configuration while the process runs.
//!
//! Active runs keep the policy and the upstream servers with which they started. An upstream server whose
//! configuration is unchanged keeps its connection. A connection of the old configuration is closed once no active
//! run can call its server; if the administrator's requirements no longer permit the server, it is closed at once.

use parking_lot::MutexGuard;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_audit::{ActiveDigests, Reload, ReloadCause};
use lockhouse_gate::Gate;
use lockhouse_policies::Policy;
use lockhouse_upstream::{ChangeNotice, Upstreams};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{EngineSettings, Supervisor, log_audit_error};

/// A reload closes the upstream connections that the new configuration does not use once the runs of the replaced
/// configuration have ended. It waits for the end of these runs at most for the sum of the time limit of a run, the
/// grace time of a run, and this margin.
const END_MARGIN: Duration = Duration::from_secs(5);

/// Maximum time until the ends of cancelled runs are recorded when the process ends. Killed workers exit sooner.
const LAST_RECORDS_TIMEOUT: Duration = Duration::from_secs(3);

/// A policy with its upstream servers. The value exists while it is the active configuration, or while runs that
/// started under it are active.
#[derive(Debug)]
pub struct ActiveConfiguration {
    gate: Gate,
    /// SHA-256 of the configuration file and the servers files. `None` if there is no file.
    configuration: Option<String>,
    /// SHA-256 of the administrator's requirements and of the policies that they name. `None` if there are none.
    requirements: Option<String>,
    /// The token that is cancelled when the last reference to this configuration is dropped.
    unused: CancellationToken,
    _guard: DropGuard,
}

impl ActiveConfiguration {
    pub(super) fn new(gate: Gate, settings: &EngineSettings) -> Arc<Self> {
        let unused = CancellationToken::new();
        let (configuration, requirements) = (settings.digest.clone(), settings.requirements_digest.clone());
        let (unused, _guard) = (unused.clone(), unused.drop_guard());
        Arc::new(Self { gate, configuration, requirements, unused, _guard })
    }

    pub(super) fn digests(&self) -> ActiveDigests<'_> {
        ActiveDigests {
            policy: self.gate.policy_digest(),
            configuration: self.configuration.as_deref(),
            requirements: self.requirements.as_deref(),
        }
    }
}

impl Deref for ActiveConfiguration {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

impl Supervisor {
    /// Returns the active configuration. While the caller holds this reference, the upstream servers of the
    /// configuration stay connected.
    pub fn gate(&self) -> Arc<ActiveConfiguration> {
        self.in_force.lock().clone()
    }

    /// Writes an audit record that a new configuration could not be loaded, with the reason. `cause` is what triggered
    /// the reload. The active configuration stays in force.
    pub fn reload_refused(&self, cause: ReloadCause, reason: &str) {
        let in_force = self.gate();
        let (now, before) = (in_force.digests(), in_force.digests());
        log_audit_error(in_force.audit().reload(Reload { cause, refused: Some(reason), now, before }));
    }

    /// Activates a new configuration, and writes an audit record of the change with `cause`, which is what triggered
    /// the reload. The configuration takes effect even if the record cannot be written, because the configuration may
    /// revoke permissions. Calls stay audited: each call is made only after a record of that call was written.
    pub fn reload(&self, cause: ReloadCause, settings: EngineSettings, policy: Policy) {
        self.set_stop(settings.stop.as_deref());
        for refusal in &settings.refused {
            tracing::warn!("{refusal}");
        }
        let (upstreams, unused_upstreams) =
            self.gate().upstreams().replace_servers(settings.servers.clone(), &settings.places);
        // Runs of the old configuration still use its upstream servers, so the log keeps redacting their secrets too.
        self.gate()
            .audit()
            .redact_secrets(upstreams.secrets().merged_with(&self.gate().upstreams().secrets()));
        let before = {
            let mut in_force = self.in_force.lock();
            let next = ActiveConfiguration::new(
                in_force.reconfigured(policy, upstreams, settings.host_files.clone()),
                &settings,
            );
            std::mem::replace(&mut *in_force, next)
        };
        self.approvers.queue().set_policy(self.gate().policy());
        if cause == ReloadCause::Requirements {
            self.gate().require_files();
            self.withdraw(&unused_upstreams);
        }
        self.pools.set_packages(settings.packages.clone());
        self.send_settings_to_fronts();
        let in_force = self.gate();
        let digests = (in_force.digests(), before.digests());
        log_audit_error(in_force.audit().reload(Reload {
            cause,
            refused: None,
            now: digests.0,
            before: digests.1,
        }));
        self.lifecycle.record_reload();
        self.gate().upstreams().notices().send(ChangeNotice::Everything);
        tracing::info!(
            "the configuration is in force; {} connections of the previous configuration are being closed",
            unused_upstreams.count()
        );
        self.warn_about_policy(&settings);
        self.retired_upstreams().push(unused_upstreams.clone());
        let patience = self.settings.limits.wall + self.settings.limits.grace + END_MARGIN;
        let unused = before.unused.clone();
        drop(before);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(patience, unused.cancelled()).await;
            unused_upstreams.close().await;
        });
    }

    /// Closes at once the connections that the requirements do not permit any more, also those that runs of earlier
    /// configurations use: these runs continue without them.
    fn withdraw(&self, unused: &Upstreams) {
        for upstreams in self.retired_upstreams().iter().chain([unused]) {
            upstreams.withdraw();
            let upstreams = upstreams.clone();
            tokio::spawn(async move { upstreams.close().await });
        }
    }

    /// Ends all sessions, closes the connections to all upstream servers, and closes the audit log when the ends of all runs
    /// are recorded. The workers end with the process.
    pub async fn close(&self) {
        self.sessions.close();
        let retired_upstreams = std::mem::take(&mut *self.retired_upstreams());
        let in_force = self.gate();
        futures_util::future::join_all(
            retired_upstreams.iter().chain([in_force.upstreams()]).map(Upstreams::close),
        )
        .await;
        // The process has cancelled its runs, and their ends are recorded first.
        let _ = tokio::time::timeout(LAST_RECORDS_TIMEOUT, self.lifecycle.runs_ended()).await;
        self.record_end(&in_force.audit());
        in_force.audit().close();
        self.result_files.close();
    }

    /// Returns the upstream servers of earlier configurations whose connections are not closed yet.
    fn retired_upstreams(&self) -> MutexGuard<'_, Vec<Upstreams>> {
        let mut retired_upstreams = self.retired_upstreams.lock();
        retired_upstreams.retain(|upstreams| !upstreams.is_closed());
        retired_upstreams
    }
}
