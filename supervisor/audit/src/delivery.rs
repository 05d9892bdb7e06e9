//! Delivery of the audit log to other machines, as far as the log itself knows of it: how far behind each destination
//! is, whether calls may be made meanwhile, and the records about what a destination did not receive. The crate
//! `lockhouse-audit-forward` delivers the records.

use std::sync::Arc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::hash_chain::RecordBody;
use super::{Audit, AuditError, Destination, SegmentName};

/// Maximum time for which a call waits for a destination that is behind, before it is refused. A process that has just
/// started delivers what earlier processes left in less time.
/// Bound: the audit log.
const CATCH_UP_WAIT: Duration = Duration::from_secs(2);

/// How far one destination is behind the audit log. The thread that forwards the log updates it; calls and health
/// reports read it.
#[derive(Debug)]
pub struct Delivery {
    destination: String,
    state: Mutex<State>,
    updated: Notify,
}

#[derive(Debug)]
struct State {
    /// Age of the oldest undelivered record at the time `measured`. `None` if everything is delivered.
    lag: Option<Duration>,
    /// When this was found, since the boot of the machine. `None` if nothing was found yet.
    measured: Option<Duration>,
    /// Why nothing can be delivered now. `None` if nothing is known to prevent it.
    fault: Option<String>,
}

/// What is known about the delivery to one destination.
#[derive(Clone, Debug, serde::Serialize)]
pub struct DeliveryStatus {
    pub destination: String,
    /// Age of the oldest undelivered record in seconds; 0 if there is none.
    pub lag_s: f64,
    /// Why nothing can be delivered now. `None` if nothing is known to prevent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Records that a destination did not receive, or received in another form than the log has now.
#[derive(Clone, Copy, Debug)]
pub struct UndeliveredRecords<'a> {
    pub destination: &'a str,
    pub outcome: UndeliveredOutcome,
    pub segment: &'a SegmentName,
    /// Sequence number of the first such record.
    pub first: u64,
    /// Sequence number of the last such record. `None` if it is not known.
    pub last: Option<u64>,
    pub reason: &'a str,
}

/// Why records were not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndeliveredOutcome {
    /// The segment expired or was removed before it was delivered.
    Lost,
    /// The destination rejected the records for good.
    Rejected,
    /// The segment does not continue what was delivered of it: it was changed, truncated or replaced.
    Changed,
}

impl UndeliveredOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Rejected => "rejected",
            Self::Changed => "changed",
        }
    }
}

impl Delivery {
    /// Creates the state of a destination about which nothing is known yet.
    pub fn new(destination: String) -> Self {
        let state = State { lag: None, measured: None, fault: None };
        Self { destination, state: Mutex::new(state), updated: Notify::new() }
    }

    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Sets what was found now: the age of the oldest undelivered record (`None`: there is none), and why nothing can be
    /// delivered.
    pub fn update(&self, lag: Option<Duration>, fault: Option<String>) {
        *self.state.lock() = State { lag, measured: uptime(), fault };
        self.updated.notify_waiters();
    }

    /// Sets why nothing can be delivered or found out. The age of the oldest undelivered record grows from what was measured.
    pub fn set_fault(&self, fault: String) {
        self.state.lock().fault = Some(fault);
        self.updated.notify_waiters();
    }

    /// Returns the age of the oldest record that may be undelivered. This grows also if nobody updates the state any more.
    /// `None` if nothing is known yet.
    fn age(&self) -> Option<Duration> {
        let state = self.state.lock();
        let since = uptime()?.saturating_sub(state.measured?);
        Some(state.lag.unwrap_or_default() + since)
    }

    pub fn status(&self) -> DeliveryStatus {
        let age = self.age();
        let state = self.state.lock();
        let lag = state.lag.and(age).unwrap_or_default();
        DeliveryStatus {
            destination: self.destination.clone(),
            lag_s: (lag.as_secs_f64() * 1_000.0).round() / 1_000.0,
            fault: state.fault.clone(),
        }
    }

    /// Waits until the next update, but not longer than `time`.
    async fn wait_for_update(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.updated.notified()).await;
    }

    fn check(&self, within: Duration) -> Result<(), AuditError> {
        let age = self.age();
        if age.is_some_and(|age| age <= within) {
            return Ok(());
        }
        let behind = match age {
            Some(age) => format!("has not received records for {} s", age.as_secs()),
            None => "is not reached yet".to_owned(),
        };
        let fault = self.state.lock().fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
        Err(AuditError::Undelivered {
            destination: self.destination.clone(),
            behind,
            within: within.as_secs(),
            fault,
        })
    }
}

/// Returns the time since the boot of the machine, with the time during which it slept. No change of the wall clock
/// affects it.
fn uptime() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).ok()
}

impl Audit {
    /// Sets the destinations to which the log is forwarded. Only the first call has an effect. Until then, no call is made
    /// if the settings require delivery.
    pub fn set_deliveries(&self, deliveries: Vec<Arc<Delivery>>) {
        let _ = self.deliveries.set(deliveries);
    }

    /// Returns the state of each destination to which the log is forwarded.
    pub fn deliveries(&self) -> Vec<DeliveryStatus> {
        self.deliveries.get().into_iter().flatten().map(|delivery| delivery.status()).collect()
    }

    /// Checks that calls may be made: that no destination is behind by more than the settings permit. With a sink, asks the
    /// sink.
    ///
    /// # Errors
    /// [`AuditError::Undelivered`], with the destination that is behind. [`AuditError::Write`] if the sink does not answer,
    /// or does not forward the log as the settings require.
    pub fn check_delivery(&self) -> Result<(), AuditError> {
        match &self.destination {
            Destination::Files { .. } => self.check_delivery_within(self.settings.forward_within),
            Destination::Sink { records, .. } => records.lock().check_delivery(),
        }
    }

    /// Checks that no destination is behind by more than `within`; `None` permits everything.
    pub(super) fn check_delivery_within(&self, within: Option<Duration>) -> Result<(), AuditError> {
        let Some(within) = within else { return Ok(()) };
        let Some(deliveries) = self.deliveries.get() else { return Err(AuditError::NotForwarded) };
        deliveries.iter().try_for_each(|delivery| delivery.check(within))
    }

    /// Waits for destinations that are behind by more than the settings permit, at most two seconds.
    ///
    /// # Errors
    /// [`AuditError::Undelivered`], with the destination that is still behind.
    pub async fn wait_for_delivery(&self) -> Result<(), AuditError> {
        // A sink, which runs before its engines, has had time for that.
        if self.settings.forward_within.is_none() || self.settings.sink.is_some() {
            return Ok(());
        }
        let deadline = tokio::time::Instant::now() + CATCH_UP_WAIT;
        for delivery in self.deliveries.get().into_iter().flatten() {
            let left = || deadline.saturating_duration_since(tokio::time::Instant::now());
            let within = self.settings.forward_within.unwrap_or_default();
            while delivery.check(within).is_err() && !left().is_zero() {
                delivery.wait_for_update(left()).await;
            }
        }
        self.check_delivery()
    }

    /// Records that a destination did not receive records, or that it received them in another form than the log has
    /// now.
    pub fn undelivered(&self, records: UndeliveredRecords<'_>) -> Result<(), AuditError> {
        let UndeliveredRecords { destination, outcome, segment, first, last, reason } = records;
        let body = RecordBody::new("delivery").text("destination", destination);
        let body = body.text("outcome", outcome.as_str()).text("of_segment", segment.as_str());
        let body = body.number("first", first).number_if("last", last);
        self.append(&body.text("reason", &self.redaction.read().without_secrets(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_behind_by_the_age_of_the_oldest_undelivered_record() {
        let delivery = Delivery::new("journald".into());
        let minute = Duration::from_secs(60);
        let words = |within| delivery.check(within).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(words(minute).contains("journald is not reached yet"), "{}", words(minute));
        delivery.update(None, None);
        assert_eq!((words(minute), delivery.status().lag_s), (String::new(), 0.0));
        delivery.update(Some(2 * minute), Some("no route".into()));
        let refusal = words(minute);
        assert!(refusal.contains("journald has not received records for 120 s: no route"), "{refusal}");
        assert!(refusal.contains("forward_within_seconds permits 60 s"), "{refusal}");
        assert_eq!(words(3 * minute), "");
        assert!(delivery.status().lag_s >= 120.0);
    }
}
