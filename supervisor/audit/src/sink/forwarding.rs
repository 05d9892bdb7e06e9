//! The forwarding of the sink's log, as far as engines depend on it.

use std::sync::Arc;
use std::time::Duration;

use crate::{Audit, AuditError};

/// What the sink knows of the forwarding of its log.
#[derive(Debug, Default)]
pub(super) struct SinkForwarding {
    /// The log as the process of the sink itself writes it, with the destinations. `None` if the log is not forwarded.
    log: Option<Arc<Audit>>,
}

/// Destinations that an engine requires, and to which the sink does not forward the log. The words reach the user of the engine.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "it does not forward the log to {}: name it in the configuration or the requirements that the sink reads and restart the sink, \
     or remove it from `forward`", .0.join(", ")
)]
pub(super) struct MissingDestinations(Vec<String>);

impl SinkForwarding {
    pub(super) fn new(log: Option<Arc<Audit>>) -> Self {
        Self { log }
    }

    /// Checks that the log is forwarded to all these destinations.
    pub(super) fn check_destinations(&self, required: &[String]) -> Result<(), MissingDestinations> {
        let present = self.log.iter().flat_map(|log| log.deliveries());
        let present: Vec<String> = present.map(|delivery| delivery.destination).collect();
        let missing: Vec<String> =
            required.iter().filter(|destination| !present.contains(destination)).cloned().collect();
        if missing.is_empty() { Ok(()) } else { Err(MissingDestinations(missing)) }
    }

    /// Checks that a call may be made: that no destination is behind by more than the sink or the engine permits.
    pub(super) fn check_delivery(&self, within: Option<Duration>) -> Result<(), AuditError> {
        let Some(log) = &self.log else { return Ok(()) };
        let own = log.settings.forward_within;
        log.check_delivery_within(own.into_iter().chain(within).min())
    }
}
