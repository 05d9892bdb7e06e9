//! Reloads the configuration of a running `lockhouse serve` or `lockhouse engine`: on SIGHUP, on a request of `lockhouse reload`, and after
//! approvals that change the policy.

use std::convert::Infallible;

use lockhouse_audit::ReloadCause;
use lockhouse_base::telemetry;
use lockhouse_config::{Files, Settings};
use lockhouse_engine::supervisor::{ReloadRequest, Supervisor};
use lockhouse_engine::systemd_notify;
use lockhouse_messages::ReloadReport;
use lockhouse_policies::Policy;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::load_settings_and_policy;

/// Maximum length of the error in the report of a reload, in characters. The rest of a longer error is only in the log.
const ERROR_CHARS_MAX: usize = 32 * 1024;

/// Reloads the configuration of this process whenever something requires it.
pub(super) struct Reloader<'a> {
    supervisor: &'a Supervisor,
    /// The settings at the start of the process. All settings except upstream servers and policy keep these values.
    first: &'a Settings,
    files: &'a Files,
    requests: mpsc::Receiver<ReloadRequest>,
    /// Called immediately before a new configuration becomes active.
    observer: Option<&'a ReloadObserver<'a>>,
}

/// Learns of a new configuration and policy, and whether nothing in them requires a restart to become active.
pub(super) type ReloadObserver<'a> = dyn Fn(&Settings, &Policy, bool) + 'a;

impl<'a> Reloader<'a> {
    /// Creates the reloader, which accepts requests of `lockhouse reload` from now on. They wait until it runs.
    pub(super) fn new(supervisor: &'a Supervisor, first: &'a Settings, files: &'a Files) -> Self {
        let requests = supervisor.accept_reload_requests();
        Self { supervisor, first, files, requests, observer: None }
    }

    /// Calls `observer` immediately before a new configuration becomes active.
    pub(super) fn with_observer(self, observer: &'a ReloadObserver<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Reloads the configuration whenever something requires it, until this future is dropped. If a new configuration is
    /// invalid, the previous one stays active and the error is logged.
    pub(super) async fn run(mut self) -> Infallible {
        let mut hangup = signal(SignalKind::hangup())
            .inspect_err(|error| tracing::warn!("SIGHUP cannot be handled: {error}"))
            .ok();
        loop {
            let hung_up = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => None,
                }
            };
            tokio::select! {
                Some(()) = hung_up => {
                    self.reload_all(ReloadCause::Signal).await;
                }
                Some(request) = self.requests.recv() => {
                    // The operator's command may have ended meanwhile.
                    let _ = request.send(self.reload_all(ReloadCause::Operator).await);
                }
                // The approved call waits until the new policy is active, and continues then.
                Some(waits) = self.supervisor.approvers().next_policy_change() => {
                    self.reload(ReloadCause::Approval);
                    let _ = waits.send(());
                }
                else => return std::future::pending().await,
            }
        }
    }

    /// Reloads the configuration and the certificate.
    async fn reload_all(&self, cause: ReloadCause) -> ReloadReport {
        self.supervisor.reload_certificates().await;
        self.reload(cause)
    }

    /// Reloads the upstream servers and the policy. If the new configuration is invalid, the previous one stays active.
    /// `cause` is recorded in the audit log.
    fn reload(&self, cause: ReloadCause) -> ReloadReport {
        systemd_notify::reloading();
        let loaded = load_settings_and_policy(self.files);
        telemetry::count_reload(loaded.is_ok());
        let mut report = ReloadReport { in_force: loaded.is_ok(), ..ReloadReport::default() };
        match loaded {
            Ok((settings, policy)) => {
                let changed = self.first.tables_requiring_restart(&settings);
                if !changed.is_empty() {
                    let changed = changed.join(", ");
                    tracing::warn!("changes in {changed} take effect when Lockhouse is restarted");
                }
                if let Some(observer) = self.observer {
                    observer(&settings, &policy, changed.is_empty());
                }
                report.restart_required = changed.into_iter().map(str::to_owned).collect();
                self.supervisor.reload(cause, settings.engine, policy);
            }
            Err(error) => {
                tracing::error!(
                    "the configuration was not reloaded, and the previous one stays active:\n{error}"
                );
                report.error = Some(error.to_string().chars().take(ERROR_CHARS_MAX).collect());
                self.supervisor.reload_refused(cause, &error.without_excerpts());
            }
        }
        report.generation = self.supervisor.lifecycle().config_generation();
        systemd_notify::reloaded();
        report
    }
}
