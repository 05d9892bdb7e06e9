//! Calls that a person decides about: who is asked, and what was answered before.

use std::sync::Arc;

use lockhouse_policies::{PendingCall, PermittedCall};
use lockhouse_protocol::{CallId, Failure, FailureCode};

use super::failure;
use crate::upstream::Caller;

/// Whom one execution's calls are put to, and what they have approved so far.
#[derive(Debug)]
pub(crate) struct Approvals {
    /// For the line that is shown.
    code: Arc<str>,
}

/// How a call came to be approved, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval {
    /// This call alone.
    Once,
    /// Every call of this tool in this execution.
    Execution,
    /// Written into the policy.
    Always,
}

impl Approval {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Execution => "execution",
            Self::Always => "always",
        }
    }
}

impl Approvals {
    pub(crate) fn new(code: Arc<str>) -> Self {
        Self { code }
    }

    /// Asks the person, and waits for what they say. The execution's clock stands still meanwhile.
    pub(super) async fn ask(
        &self,
        _caller: &Caller,
        _call: CallId,
        pending: PendingCall,
        line: Option<u32>,
    ) -> Result<(PermittedCall, Approval), Failure> {
        let shown = line.and_then(|line| self.code.lines().nth(line.checked_sub(1)? as usize));
        tracing::debug!("{:?} waits for a person", shown);
        let message = format!(
            "a person must approve {}.{} ({}), and there is nobody to ask",
            pending.server(),
            pending.item(),
            pending.rule()
        );
        Err(failure(FailureCode::ApprovalDeclined, message))
    }
}
