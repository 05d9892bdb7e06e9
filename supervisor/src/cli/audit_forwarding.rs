//! Forwards the audit log while a process serves AI clients or runs a program.

use std::process::ExitCode;

use lockhouse_audit_forward::Forwarding;
use lockhouse_config::Settings;
use lockhouse_engine::supervisor::Supervisor;

use super::{UNAVAILABLE, print_error};

/// The forwarding of a process's audit log, if there is a destination.
pub(super) struct AuditForwarding(Option<Forwarding>);

impl AuditForwarding {
    /// Starts to forward the audit log of a supervisor. This comes before the first call, which may depend on it.
    ///
    /// # Errors
    /// The exit status, after the error was printed.
    pub(super) fn start(settings: &Settings, supervisor: &Supervisor) -> Result<Self, ExitCode> {
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
