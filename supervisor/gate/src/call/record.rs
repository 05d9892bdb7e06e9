//! The record of a call, which is in the log before the call goes out.

use lockhouse_policies::PermittedCall;
use lockhouse_protocol::{Failure, FailureCode};

use super::attempt::Attempt;
use crate::approvals::Approval;
use crate::failures::failure;

/// A permitted call whose record is in the log. Nothing else is sent.
pub(crate) struct RecordedCall(PermittedCall);

impl RecordedCall {
    /// Writes the record. A call whose record cannot be written is not made.
    pub(super) fn new(
        attempt: &Attempt<'_>,
        call: PermittedCall,
        approval: Option<Approval>,
    ) -> Result<Self, Failure> {
        let Attempt { gate, from, .. } = attempt;
        // An AI client's own call is its whole execution.
        let policy = from.caller.wire.as_ref().and_then(|_| gate.policy_digest());
        match gate.audit.call(attempt.subject(), &call, approval.map(Approval::as_str), policy) {
            Ok(()) => Ok(Self(call)),
            Err(error) => {
                tracing::error!("{error}");
                Err(failure(FailureCode::Denied, format!("the call was not made: {error}")))
            }
        }
    }

    pub(crate) fn into_permitted(self) -> PermittedCall {
        self.0
    }
}
