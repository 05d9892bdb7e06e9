//! On whose behalf a request is answered.

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::language::Language;
use lockhouse_base::principal::Principal;
use lockhouse_policies::ClientName;
use lockhouse_upstream::Caller;

use super::approvals::{Approvals, Approvers};
use super::limits::Usage;
use super::scope::Scope;

/// On whose behalf a request is answered.
#[derive(Clone, Debug)]
pub struct Requester {
    pub caller: Caller,
    /// Of the program: signatures are shown in it. None where there is no program.
    pub language: Option<Language>,
    /// Whose results and skills it may read.
    pub principal: Principal,
    /// What this execution may know of.
    pub scope: Arc<Scope>,
    pub usage: Arc<Usage>,
    pub approvals: Arc<Approvals>,
}

impl Requester {
    /// Its calls that need a person are put to these `approvers`.
    pub fn new(
        caller: Caller,
        language: Option<Language>,
        principal: Principal,
        scope: Scope,
        code: Arc<str>,
        approvers: Arc<Approvers>,
        audit: Arc<Audit>,
    ) -> Self {
        let approvals = Approvals::new(caller.clone(), principal.owner(), code, approvers, audit);
        Self {
            caller,
            language,
            principal,
            scope: Arc::new(scope),
            usage: Arc::default(),
            approvals: Arc::new(approvals),
        }
    }

    /// The AI client, as it has proven, or by its own word.
    pub(super) fn client(&self) -> Option<&ClientName> {
        self.caller.client.as_ref()
    }
}
