//! The approvers that this supervisor can ask, shared by all executions.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Approval;
use super::approval_queue::ApprovalQueue;
use super::policy_change::PolicyChange;
use super::policy_file::PolicyFile;
use super::refusal_backoff::RefusalTracker;

/// How long an approval with scope `always` waits until the changed policy is loaded.
const RELOAD_PATIENCE: Duration = Duration::from_secs(10);

/// Who may answer approval questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApproverKind {
    /// The user of the AI client if it supports forms (elicitation), otherwise a user of this machine.
    #[default]
    Any,
    /// Only a user of this machine: for AI clients that answer elicitations by themselves.
    Local,
}

/// The `[approvals]` settings of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalSettings {
    pub through: ApproverKind,
    pub wait: Duration,
}

/// The approval queue, the refusal counters, and the policy file that answers may change.
#[derive(Debug)]
pub struct Approvers {
    settings: ApprovalSettings,
    queue: ApprovalQueue,
    refusals: RefusalTracker,
    /// The user's own policy file; `None` if another policy is in force.
    policy: Option<PolicyFile>,
    changed: mpsc::Sender<oneshot::Sender<()>>,
    changes: Mutex<mpsc::Receiver<oneshot::Sender<()>>>,
}

impl Approvers {
    pub fn new(settings: ApprovalSettings, policy: Option<PolicyFile>) -> Self {
        let (changed, changes) = mpsc::channel(1);
        let (queue, refusals) = (ApprovalQueue::default(), RefusalTracker::default());
        Self { settings, queue, refusals, policy, changed, changes: Mutex::new(changes) }
    }

    pub(super) fn approver_kind(&self) -> ApproverKind {
        self.settings.through
    }

    /// Returns how long a question waits for an approver's answer.
    pub(super) fn answer_timeout(&self) -> Duration {
        self.settings.wait
    }

    pub fn queue(&self) -> &ApprovalQueue {
        &self.queue
    }

    pub(super) fn refusal_tracker(&self) -> &RefusalTracker {
        &self.refusals
    }

    pub(super) fn policy_file(&self) -> Option<&PolicyFile> {
        self.policy.as_ref()
    }

    /// Waits until an answer changes the policy file. The caller reloads the policy; the answer's call continues when
    /// the returned sender is used or dropped.
    pub async fn next_policy_change(&self) -> Option<oneshot::Sender<()>> {
        self.changes.lock().await.recv().await
    }

    /// Writes an approved change to the policy file and waits until it is loaded. If writing fails, returns
    /// [`Approval::Once`]: the answer still approves the calls that were shown.
    pub(super) async fn apply_policy_change(&self, change: &PolicyChange) -> Approval {
        if let Err(error) = change.apply() {
            tracing::warn!("the call was approved once, and the policy stays as it was: {error}");
            return Approval::Once;
        }
        tracing::info!("an approver changed the policy:\n{}", change.diff);
        let (done, is_done) = oneshot::channel();
        if self.changed.try_send(done).is_ok() {
            let _ = tokio::time::timeout(RELOAD_PATIENCE, is_done).await;
        }
        Approval::Always
    }
}
