//! The requester: the execution and AI client on whose behalf the gate acts.

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::language::Language;
use lockhouse_base::principal::Principal;
use lockhouse_policies::ClientName;
use lockhouse_upstream::Caller;

use super::approvals::{Approvers, ExecutionApprovals};
use super::limits::Usage;
use super::scope::Scope;

/// The execution and AI client on whose behalf the gate acts.
#[derive(Clone, Debug)]
pub struct Requester {
    pub caller: Caller,
    /// Language of the program, in which signatures are rendered; `None` for direct calls.
    pub language: Option<Language>,
    /// The AI client, whose stored results and skills are accessible.
    pub principal: Principal,
    /// The servers and tools that this execution may know of.
    pub scope: Arc<Scope>,
    pub usage: Arc<Usage>,
    pub approvals: Arc<ExecutionApprovals>,
}

impl Requester {
    /// Creates a requester whose approval questions go to `approvers`.
    pub fn new(
        caller: Caller,
        language: Option<Language>,
        principal: Principal,
        scope: Scope,
        code: Arc<str>,
        approvers: Arc<Approvers>,
        audit: Arc<Audit>,
    ) -> Self {
        let approvals = ExecutionApprovals::new(caller.clone(), principal.owner(), code, approvers, audit);
        Self {
            caller,
            language,
            principal,
            scope: Arc::new(scope),
            usage: Arc::default(),
            approvals: Arc::new(approvals),
        }
    }

    /// Returns the name of the AI client: as authenticated, or as the client gave it; `None` if there is none.
    pub(super) fn client(&self) -> Option<&ClientName> {
        self.caller.client.as_ref()
    }
}
