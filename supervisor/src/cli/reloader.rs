//! Reloads the configuration of a running process: on SIGHUP, on a request of `lockhouse reload`, after approvals that change
//! the policy, and when the administrator's requirements change.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_audit::ReloadCause;
use lockhouse_base::telemetry;
use lockhouse_config::{ConfigError, Configuration, Files, Settings};
use lockhouse_engine::supervisor::{ReloadRequest, Supervisor};
use lockhouse_engine::systemd_notify;
use lockhouse_messages::ReloadReport;
use lockhouse_policies::Policy;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::serve::HttpService;

/// Maximum length of the error in the report of a reload, in characters. The rest of a longer error is only in the log.
const ERROR_CHARS_MAX: usize = 32 * 1024;
/// How often the requirements files are looked at: a change is applied within two seconds, also on a busy machine.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Requirements files are read once they have not changed for this time: somebody may still be writing them.
const SETTLING_TIME: Duration = Duration::from_millis(50);
/// Maximum number of such times before the files are read nevertheless.
const SETTLING_TIMES_MAX: u32 = 6;

/// Why this process must stop: requirements hold at once or not at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnmetRequirements {
    #[error("Lockhouse stops, because the administrator's requirements changed and cannot be used:\n{0}")]
    Invalid(#[source] ConfigError),
    #[error(
        "Lockhouse stops, because the administrator's requirements changed in {tables}, which takes effect with a restart: \
         start it again"
    )]
    Restart { tables: String },
}

impl UnmetRequirements {
    /// Returns the message for clients, which shows no line of a file.
    fn for_clients(&self) -> String {
        match self {
            Self::Invalid(error) => format!(
                "Lockhouse stops, because the administrator's requirements changed and cannot be used: {}",
                error.without_excerpts()
            ),
            Self::Restart { .. } => self.to_string(),
        }
    }
}

/// Reloads the configuration of this process whenever something requires it.
pub(super) struct Reloader<'a> {
    supervisor: &'a Supervisor,
    /// The settings at the start of the process. All settings except upstream servers and policy keep these values.
    first: Settings,
    /// The configuration in force.
    current: Configuration,
    files: &'a Files,
    /// `None` if only requirements are reloaded.
    requests: Option<mpsc::Receiver<ReloadRequest>>,
    /// The service whose certificate is read again. `None` if there is no HTTP.
    http: Option<Arc<HttpService>>,
    /// Called immediately before a new configuration becomes active.
    observer: Option<&'a ReloadObserver<'a>>,
    /// Whether the log says already that requirements have disappeared.
    has_warned: bool,
}

/// Learns of a new configuration and policy, and whether nothing in them requires a restart to become active.
pub(super) type ReloadObserver<'a> = dyn Fn(&Settings, &Policy, bool) + 'a;

impl<'a> Reloader<'a> {
    /// Creates the reloader, which accepts requests of `lockhouse reload` from now on. They wait until it runs.
    pub(super) fn new(supervisor: &'a Supervisor, current: Configuration, files: &'a Files) -> Self {
        let requests = Some(supervisor.accept_reload_requests());
        Self { requests, ..Self::of_requirements(supervisor, current, files) }
    }

    /// Creates the reloader of a process that applies requirements, and reads the user's files only once.
    pub(super) fn of_requirements(
        supervisor: &'a Supervisor,
        current: Configuration,
        files: &'a Files,
    ) -> Self {
        let first = current.settings.clone();
        supervisor.gate().require_requirements_looks();
        Self {
            supervisor,
            first,
            current,
            files,
            requests: None,
            http: None,
            observer: None,
            has_warned: false,
        }
    }

    /// Reads the certificate of this service again with each reload.
    pub(super) fn with_certificate_of(self, http: Option<Arc<HttpService>>) -> Self {
        Self { http, ..self }
    }

    /// Calls `observer` immediately before a new configuration becomes active.
    pub(super) fn with_observer(self, observer: &'a ReloadObserver<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Reloads the configuration whenever something requires it, until this future is dropped. If the user's files are
    /// invalid, what they said before stays active and the error is logged.
    ///
    /// # Errors
    /// The requirements cannot be met by this process. All runs have ended with this reason, and the process must stop.
    pub(super) async fn run(mut self) -> Result<Infallible, UnmetRequirements> {
        let is_reloading = self.requests.is_some();
        // Without a handler, SIGHUP ends the process.
        let hangup = is_reloading.then(|| signal(SignalKind::hangup())).transpose();
        let mut hangup =
            hangup.inspect_err(|error| tracing::warn!("SIGHUP cannot be handled: {error}")).ok().flatten();
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let hung_up = async {
                match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => None,
                }
            };
            let requested = async {
                match &mut self.requests {
                    Some(requests) => requests.recv().await,
                    None => None,
                }
            };
            let unmet = tokio::select! {
                Some(()) = hung_up, if is_reloading => self.reload_all(ReloadCause::Signal).await.err(),
                Some(ReloadRequest { by, done }) = requested, if is_reloading => {
                    match self.reload_all(ReloadCause::Operator(by)).await {
                        Ok(report) => {
                            // The operator's command may have ended meanwhile.
                            let _ = done.send(report);
                            None
                        }
                        Err(unmet) => Some(unmet),
                    }
                }
                // The approved call waits until the new policy is active, and continues then.
                Some(waits) = self.supervisor.approvers().next_policy_change(), if is_reloading => {
                    let reloaded = self.reload(ReloadCause::Approval);
                    let _ = waits.send(());
                    reloaded.err()
                }
                _ = looks.tick() => self.look().await.err(),
            };
            if let Some(unmet) = unmet {
                self.supervisor.reload_refused(ReloadCause::Requirements, &unmet.for_clients());
                tracing::error!("{unmet}");
                self.supervisor.stop_for_ever(&unmet.for_clients()).await;
                return Err(unmet);
            }
        }
    }

    /// Reloads the configuration and the certificate.
    async fn reload_all(&mut self, cause: ReloadCause) -> Result<ReloadReport, UnmetRequirements> {
        let http = self.http.clone();
        let certificate = async {
            if let Some(http) = &http {
                http.reload_certificate().await;
            }
        };
        tokio::pin!(certificate);
        let mut looks = interval(LOOK_INTERVAL);
        loop {
            tokio::select! {
                () = &mut certificate => return self.reload(cause),
                // Requirements do not wait for the certificate.
                _ = looks.tick() => self.look().await?,
            }
        }
    }

    /// Reloads the upstream servers and the policy. If the user's files are invalid, what they said before stays active.
    /// `cause` is recorded in the audit log. Changed requirements are applied in any case.
    fn reload(&mut self, cause: ReloadCause) -> Result<ReloadReport, UnmetRequirements> {
        systemd_notify::reloading();
        let loaded = self.current.with_files_of_user(self.files);
        // Files of the user may delay this process. No call is made before the newest requirements apply.
        self.apply_changed_requirements()?;
        self.supervisor.record_file_edits(&self.current.settings.configured_files(self.files));
        telemetry::count_reload(loaded.is_ok());
        let mut report = ReloadReport { in_force: loaded.is_ok(), ..ReloadReport::default() };
        match loaded.and_then(|loaded| loaded.with_requirements_of(&self.current)) {
            Ok(next) => {
                let changed = self.first.tables_requiring_restart(&next.settings);
                if !changed.is_empty() {
                    let changed = changed.join(", ");
                    tracing::warn!("changes in {changed} take effect when Lockhouse is restarted");
                }
                self.activate(cause, next, changed.is_empty());
                report.restart_required = changed.into_iter().map(str::to_owned).collect();
            }
            Err(error) => {
                report.in_force = false;
                tracing::error!(
                    "the configuration was not reloaded, and the previous one stays active:\n{error}"
                );
                report.error = Some(error.to_string().chars().take(ERROR_CHARS_MAX).collect());
                self.supervisor.reload_refused(cause, &error.without_excerpts());
            }
        }
        report.generation = self.supervisor.lifecycle().config_generation();
        report.digests = self.supervisor.digests_in_force();
        systemd_notify::reloaded();
        Ok(report)
    }

    /// Looks whether the requirements have changed. If so, waits until nobody is writing them, and applies them.
    async fn look(&mut self) -> Result<(), UnmetRequirements> {
        let began = Instant::now();
        if !self.current.requirements_have_changed() {
            self.supervisor.gate().note_requirements_look(began);
            self.warn_about_missing_requirements();
            return Ok(());
        }
        let mut state = self.current.requirements_state();
        for _ in 0..SETTLING_TIMES_MAX {
            sleep(SETTLING_TIME).await;
            let now = self.current.requirements_state();
            if now == state {
                break;
            }
            state = now;
        }
        self.apply_requirements()
    }

    fn apply_changed_requirements(&mut self) -> Result<(), UnmetRequirements> {
        let began = Instant::now();
        if self.current.requirements_have_changed() {
            return self.apply_requirements();
        }
        self.supervisor.gate().note_requirements_look(began);
        Ok(())
    }

    /// Applies the requirements as they are now to what the user's files said when they were last read.
    fn apply_requirements(&mut self) -> Result<(), UnmetRequirements> {
        let began = Instant::now();
        let next = self.current.with_requirements().map_err(UnmetRequirements::Invalid)?;
        let tables = self.first.tables_required_otherwise(&next.settings);
        if !tables.is_empty() {
            return Err(UnmetRequirements::Restart { tables: tables.join(", ") });
        }
        self.has_warned = false;
        let is_complete = self.first.tables_requiring_restart(&next.settings).is_empty();
        self.activate(ReloadCause::Requirements, next, is_complete);
        self.supervisor.gate().note_requirements_look(began);
        Ok(())
    }

    fn activate(&mut self, cause: ReloadCause, next: Configuration, is_complete: bool) {
        if let Some(observer) = self.observer {
            observer(&next.settings, &next.policy, is_complete);
        }
        self.supervisor.reload(cause, next.settings.engine.clone(), next.policy.clone());
        self.current = next;
    }

    fn warn_about_missing_requirements(&mut self) {
        let missing = self.current.missing_requirements();
        if missing.is_empty() || self.has_warned {
            return;
        }
        self.has_warned = true;
        let missing: Vec<String> = missing.iter().map(|path| path.display().to_string()).collect();
        tracing::warn!(
            "{} has disappeared, and what it required stays in force: to lift requirements, leave out the keys in a file that exists",
            missing.join(", ")
        );
    }
}
