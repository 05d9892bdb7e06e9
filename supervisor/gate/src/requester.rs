//! The requester of a call: the execution and the AI client on whose behalf the call is made.

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::ClientName;
use lockhouse_protocol::Language;
use lockhouse_upstream::Caller;

use super::approvals::{Approvers, ExecutionApprovals};
use super::limits::Usage;
use super::run_files::RunFiles;
use super::scope::Scope;

/// The requester of calls: an execution and its AI client. Clones refer to the same execution.
#[derive(Clone, Debug)]
pub struct Requester {
    pub caller: Arc<Caller>,
    /// The language of the program, in which tool signatures are written; `None` for direct calls.
    pub language: Option<Language>,
    /// The authenticated identity of the AI client. The program can access the results and skills that are stored
    /// for this identity.
    pub principal: Principal,
    /// The upstream servers and tools that this execution may know of.
    pub scope: Arc<Scope>,
    /// How much of each of the policy's quotas the execution has used.
    pub usage: Arc<Usage>,
    /// The files of the execution.
    pub files: Arc<RunFiles>,
    /// Asks approvers about calls of the execution.
    pub approvals: Arc<ExecutionApprovals>,
}

impl Requester {
    /// Creates the requester for one execution. Its approval questions go to `approvers`, who are shown lines of
    /// the program `code`.
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
            caller: Arc::new(caller),
            language,
            principal,
            scope: Arc::new(scope),
            usage: Arc::default(),
            files: Arc::default(),
            approvals: Arc::new(approvals),
        }
    }

    /// Adds the files of the execution.
    pub fn with_files(self, files: RunFiles) -> Self {
        Self { files: Arc::new(files), ..self }
    }

    /// Returns the name of the AI client: its authenticated name, or otherwise the name that the client gave itself.
    /// `None` if the client has no name.
    pub(super) fn client(&self) -> Option<&ClientName> {
        self.caller.client.as_ref()
    }
}
