//! What this process records about its own administration: that it starts and ends, that its upstream servers do, that
//! its configuration files were edited, and who ended runs, sessions or the process.

use std::sync::Arc;
use std::time::Duration;

use lockhouse_audit::{ActiveDigests, Audit, Channel, ConfiguredFile, Ended, LocalUser, ServerStep};
use lockhouse_messages::{Access, AccessRefusal, DigestsInForce};
use lockhouse_upstream::{ServerEvent, ServerEventKind};
use parking_lot::Mutex;

use super::{Supervisor, log_audit_error};
use crate::execution::Cancellation;
use crate::sessions::SessionSelector;

/// Maximum time from a request to stop this process until it closes: the time in which runs report their end.
/// Bound: engines and fronts.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Why a process ends as an operator lets its host leave the cluster.
const LEAVES_CLUSTER: &str = "its host leaves the cluster";
/// How long this process stays open for the response to a request to stop it.
const RESPONSE_TIME: Duration = Duration::from_millis(200);
/// Maximum number of characters of the reason of a request to stop this process. The rest is cut off.
/// Bound: engines and fronts.
const REASON_CHARS_MAX: usize = 500;

/// The life of a process that serves, as far as its records name it.
#[derive(Debug, Default)]
pub(super) struct ServingProcess {
    /// The command that serves. `None` for other commands, whose start and end have no record.
    command: Mutex<Option<&'static str>>,
    /// Why the process ends. The first reason counts.
    end_reason: Mutex<Option<String>>,
}

impl Supervisor {
    /// Records that this process begins to serve, and from now on the starts and ends of its upstream servers.
    /// `configured` are its configuration files.
    pub fn record_start(&self, command: &'static str, configured: &[ConfiguredFile]) {
        self.record_file_edits(configured);
        let in_force = self.gate();
        *self.serving_process.command.lock() = Some(command);
        log_audit_error(in_force.audit().process_started(command, in_force.digests(), LocalUser::current()));
        let audit = Arc::downgrade(&in_force.audit());
        in_force.upstreams().observe(move |event| {
            if let Some(audit) = audit.upgrade() {
                record_server(&audit, &event);
            }
        });
    }

    /// Records the configuration files that something else than Lockhouse has changed.
    pub fn record_file_edits(&self, configured: &[ConfiguredFile]) {
        log_audit_error(self.gate().audit().record_file_edits(configured));
    }

    /// Sets why this process ends, unless that is known.
    pub fn set_end_reason(&self, reason: &str) {
        self.serving_process.end_reason.lock().get_or_insert_with(|| reason.to_owned());
    }

    pub(super) fn record_end(&self, audit: &Audit) {
        let Some(command) = self.serving_process.command.lock().take() else { return };
        let reason = self.serving_process.end_reason.lock().take();
        let reason = reason.as_deref().unwrap_or("it was closed");
        log_audit_error(audit.process_stopped(command, reason, LocalUser::current()));
    }

    /// Records that an operator ends a run or a session.
    pub(crate) fn record_termination(&self, ended: Ended<'_>, by: Option<LocalUser>) {
        let by = by.unwrap_or_else(LocalUser::current);
        log_audit_error(self.gate().audit().termination(ended, None, by));
    }

    /// Records that the credential of a client over HTTP was accepted. The number of such records is limited.
    pub(crate) fn record_accepted_credential(&self, access: &Access) {
        let client = access.client.as_deref().or(access.name.as_deref());
        log_audit_error(self.gate().audit().credential(Channel::Http, client, None));
    }

    /// Records that the credential of a client over HTTP was refused. The number of such records is limited.
    pub(crate) fn record_refused_credential(&self, refusal: &AccessRefusal) {
        let reason = refusal.description();
        log_audit_error(self.gate().audit().credential(Channel::Http, None, Some(&reason)));
    }

    /// Ends this process for an operator: no run begins, the active ones end with the reason, and the process closes when
    /// they are answered, at the latest after 3 s. The request takes effect even if it cannot be recorded, because it
    /// takes permissions away.
    pub(crate) fn stop(&self, reason: Option<&str>, by: Option<LocalUser>) {
        let by = by.unwrap_or_else(LocalUser::current);
        let reason = reason.map(|reason| reason.chars().take(REASON_CHARS_MAX).collect::<String>());
        log_audit_error(self.gate().audit().termination(Ended::Process, reason.as_deref(), by));
        let who = match Channel::of_operator(by) {
            Channel::Administrator => "the administrator of this machine",
            _ => "a person",
        };
        let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let words = format!("{who} stopped Lockhouse{because}");
        tracing::warn!("{words}");
        self.set_end_reason(&words);
        self.lifecycle.draining().cancel();
        self.runs.end(None, &Cancellation::Stopped(words.as_str().into()));
        // All sessions are never ambiguous.
        let _ = self.sessions.end(SessionSelector::All, &words);
        self.end_after_response(STOP_TIMEOUT);
    }

    /// Lets this host of a cluster take no new work for an operator, or take it again. Returns `false` without a cluster.
    pub(crate) fn drain_host(&self, is_undone: bool, by: Option<LocalUser>) -> bool {
        let Some(cluster) = self.cluster() else { return false };
        let (command, by) = (*self.serving_process.command.lock(), by.unwrap_or_else(LocalUser::current));
        log_audit_error(self.gate().audit().process_drained(command.unwrap_or_default(), is_undone, by));
        cluster.set_withdrawn(!is_undone);
        self.send_settings_to_fronts();
        tracing::info!("this host takes {} work", if is_undone { "new" } else { "no new" });
        true
    }

    /// Ends this process for an operator as a host of a cluster: no run begins, and the process closes when the active ones have
    /// ended, at the latest after the drain timeout. Returns `false` without a cluster.
    pub(crate) fn leave_cluster(&self, by: Option<LocalUser>) -> bool {
        if self.cluster().is_none() {
            return false;
        }
        let by = by.unwrap_or_else(LocalUser::current);
        log_audit_error(self.gate().audit().termination(Ended::Process, Some(LEAVES_CLUSTER), by));
        self.set_end_reason(LEAVES_CLUSTER);
        self.end_after_response(Duration::MAX);
        true
    }

    /// Ends this process when the operator has the response and the active runs have ended, at the latest after `at_most` and after the
    /// drain timeout.
    fn end_after_response(&self, at_most: Duration) {
        let lifecycle = self.lifecycle.clone();
        tokio::spawn(async move {
            // A drain does not wait for the response to the operator.
            tokio::time::sleep(RESPONSE_TIME).await;
            let _ = tokio::time::timeout(at_most, lifecycle.drain()).await;
            lifecycle.close();
        });
    }

    /// Returns the digests of what is in force, for operators.
    pub fn digests_in_force(&self) -> DigestsInForce {
        let in_force = self.gate();
        let ActiveDigests { policy, configuration, requirements } = in_force.digests();
        let owned = |digest: Option<&str>| digest.map(str::to_owned);
        DigestsInForce {
            policy: owned(policy),
            configuration: owned(configuration),
            requirements: owned(requirements),
        }
    }
}

fn record_server(audit: &Audit, event: &ServerEvent) {
    let outcome = match event.kind {
        ServerEventKind::Started => "started",
        ServerEventKind::Failed => "failed",
        ServerEventKind::Lost => "lost",
        ServerEventKind::Stopped => "stopped",
    };
    let reason = event.reason.as_deref();
    let step = ServerStep { server: &event.server, outcome, reason, exit_status: event.exit_status };
    log_audit_error(audit.server(step));
}
