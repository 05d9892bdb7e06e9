//! The audit record of a call, written before the call is sent.

use lockhouse_policies::PermittedCall;
use lockhouse_protocol::{Failure, FailureCode};

use super::attempt::CallAttempt;
use lockhouse_messages::Approval;

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
        match gate.audit.call(attempt.subject(), &call, approval.map(Approval::as_str), policy) {
            Ok(()) => Ok(Self(call)),
            Err(error) => {
                tracing::error!("{error}");
                Err(Failure::new(FailureCode::Denied, format!("the call was not made: {error}")))
            }
        }
    }

    pub(crate) fn into_permitted(self) -> PermittedCall {
        self.0
    }
}
