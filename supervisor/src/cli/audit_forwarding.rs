//! Forwards the audit log while a process serves AI clients or runs a program.

use std::process::ExitCode;

use lockhouse_audit::SinkAddress;
use lockhouse_audit_forward::{ForwardSettings, Forwarding, report::report};
use lockhouse_config::Settings;
use lockhouse_engine::supervisor::Supervisor;

use super::{UNAVAILABLE, print_error};

/// The forwarding of a process's audit log, if there is a destination.
pub(super) struct AuditForwarding(Option<Forwarding>);

impl AuditForwarding {
    /// Starts to forward the audit log of a supervisor. This comes before the first call, which may depend on it. If the audit
    /// sink writes the log, the sink forwards it.
    ///
    /// # Errors
    /// The exit status, after the error was printed.
    pub(super) fn start(settings: &Settings, supervisor: &Supervisor) -> Result<Self, ExitCode> {
        if let Some(sink) = &settings.engine.audit.sink {
            warn_of_undelivered(&settings.audit_forward, sink);
            return Ok(Self(None));
        }
        let started = Forwarding::start(settings.audit_forward.clone(), &supervisor.gate().audit());
        started.map(Self).map_err(|error| print_error(&error, UNAVAILABLE))
    }

    /// Forwards the last records, for at most a few seconds. The audit log must be closed before.
    pub(super) async fn close(self) {
        if let Some(forwarding) = self.0 {
            forwarding.close().await;
        }
    }
}

/// Warns if this user's own log, from before the sink wrote it, has records that a destination has not received.
fn warn_of_undelivered(settings: &ForwardSettings, sink: &SinkAddress) {
    if !settings.log.exists() {
        return;
    }
    let behind = report(settings).unwrap_or_default();
    for behind in behind.iter().filter(|report| report.undelivered_segments > 0) {
        tracing::warn!(
            "records in {}, from before the audit sink at {sink} wrote the log, were not delivered to {}: a process without `sink` \
             delivers them",
            settings.log.display(),
            behind.destination
        );
    }
}
