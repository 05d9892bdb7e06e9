//! The context of a run: who asked for it, what it may know of, and what it has used.

use std::sync::Arc;

use lockhouse_audit::Audit;
use lockhouse_base::principal::Principal;
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, Language};
use lockhouse_run_channel::RunChannel;
use lockhouse_upstream::{DirectRequest, RunConnections};

use super::limits::Usage;
use super::run_files::RunFiles;
use super::scope::Scope;
use lockhouse_approvals::{Approvers, ExecutionApprovals};

/// The context of a run: a run of submitted code, or a direct call. Clones belong to the same run.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// Who asked for the run, and the channel to the AI client. The program can access the results and skills that are
    /// stored for this principal.
    pub channel: RunChannel,
    /// The language of the program, in which tool signatures are written; `None` for direct calls.
    pub language: Option<Language>,
    /// The request of an AI client that uses an upstream server directly; `None` for submitted code.
    pub(super) direct: Option<Arc<DirectRequest>>,
    /// The upstream servers and tools that this run may know of.
    pub scope: Arc<Scope>,
    /// How much of each of the policy's quotas the run has used.
    pub usage: Arc<Usage>,
    /// The files of the run.
    pub files: Arc<RunFiles>,
    /// The connections that were opened for this run alone. They are closed with it.
    pub(super) connections: Arc<RunConnections>,
    /// Asks approvers about calls of the run.
    pub approvals: Arc<ExecutionApprovals>,
}

impl RunContext {
    /// Creates the context of one run. Its approval questions go to `approvers`, who are shown lines of the program
    /// `code`.
    pub fn new(
        channel: RunChannel,
        language: Option<Language>,
        scope: Scope,
        code: Arc<str>,
        approvers: Arc<Approvers>,
        audit: Arc<Audit>,
    ) -> Self {
        let connections = Arc::new(RunConnections::new(channel.execution()));
        let approvals = ExecutionApprovals::new(channel.clone(), code, approvers, audit);
        Self {
            channel,
            language,
            direct: None,
            scope: Arc::new(scope),
            usage: Arc::default(),
            files: Arc::default(),
            connections,
            approvals: Arc::new(approvals),
        }
    }

    /// Adds the files of the run.
    #[must_use]
    pub fn with_files(self, files: RunFiles) -> Self {
        Self { files: Arc::new(files), ..self }
    }

    /// Adds the request of an AI client that uses an upstream server directly.
    #[must_use]
    pub fn with_direct_request(self, request: Arc<DirectRequest>) -> Self {
        Self { direct: Some(request), ..self }
    }

    pub fn execution(&self) -> ExecutionId {
        self.channel.execution()
    }

    pub fn principal(&self) -> &Principal {
        self.channel.principal()
    }

    /// Returns the name of the AI client for the policy and the audit log; `None` if the client has no name.
    pub fn client(&self) -> Option<&ClientName> {
        self.channel.client()
    }
}
