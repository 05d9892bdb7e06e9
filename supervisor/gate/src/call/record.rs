//! The audit record of a call, written before the call is sent.

use lockhouse_audit::{AuditError, CallAuthority};
use lockhouse_policies::{Effect, PermittedCall};
use lockhouse_protocol::{Failure, FailureCode};

use super::attempt::CallAttempt;
use lockhouse_messages::Approval;

/// The name, as a user of servers, of all clients without an authenticated name.
const LOCAL: &str = "local";

/// A permitted call whose audit record is written. Only such a call can be sent: `ReservedDestination::call`
/// accepts no other type.
pub(crate) struct RecordedCall(PermittedCall);

impl RecordedCall {
    /// Writes the audit record of a permitted call.
    ///
    /// # Errors
    /// Fails if the record cannot be written. The call must then not be made.
    pub(super) fn new(
        attempt: &CallAttempt<'_>,
        call: PermittedCall,
        approval: Option<Approval>,
    ) -> Result<Self, Failure> {
        let CallAttempt { gate, run, .. } = attempt;
        // A direct call is an execution of its own without a record of a run, so the record of the call names the
        // policy.
        let policy = run.direct.as_ref().and_then(|_| gate.policy_digest());
        let account =
            gate.upstreams.has_accounts(attempt.server()).then(|| run.principal().name().unwrap_or(LOCAL));
        let authority = CallAuthority { approval: approval.map(Approval::as_str), policy, account };
        match gate.audit.call(attempt.subject(), &call, authority) {
            Ok(()) => Ok(Self(call)),
            Err(error) => Err(refuse(attempt, &error)),
        }
    }

    pub(crate) fn into_permitted(self) -> PermittedCall {
        self.0
    }
}

/// Waits, for a short time, until the destinations of the audit log have received its records, if the configuration
/// requires that for calls. [`RecordedCall::new`] checks it again.
///
/// # Errors
/// Fails if a destination is still behind. The call must then not be made.
pub(super) async fn wait_for_delivery(attempt: &CallAttempt<'_>) -> Result<(), Failure> {
    attempt.gate.audit.wait_for_delivery().await.map_err(|error| refuse(attempt, &error))
}

/// Returns the failure of a call that has no record. If only the delivery of records is late, the refusal is recorded.
fn refuse(attempt: &CallAttempt<'_>, error: &AuditError) -> Failure {
    let reason = format!("the call was not made: {error}");
    let is_late = error.is_about_delivery();
    if is_late {
        attempt.gate.record_denial(attempt.subject(), Effect::Deny, &reason, None);
    } else {
        tracing::error!("{error}");
    }
    Failure { retryable: is_late, ..Failure::new(FailureCode::Denied, reason) }
}
