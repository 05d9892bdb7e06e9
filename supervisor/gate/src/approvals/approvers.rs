//! Whom this process can ask, for all of its executions.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::Approval;
use super::always::Change;
use super::desk::Desk;
use super::policy_file::PolicyFile;
use super::refusals::Refusals;

/// How long a change of the policy may take to be in force.
const RELOAD_PATIENCE: Duration = Duration::from_secs(10);

/// Who may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Through {
    /// The person behind the AI client, where it can show a form, else one at this machine.
    #[default]
    Any,
    /// One at this machine alone: for AI clients that answer in a person's name.
    Local,
}

/// What is configured.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalSettings {
    pub through: Through,
    pub wait: Duration,
}

/// Everybody who can be asked, and the policy that they may change.
#[derive(Debug)]
pub struct Approvers {
    settings: ApprovalSettings,
    desk: Desk,
    refusals: Refusals,
    /// The user's own, if it is the one in force.
    policy: Option<PolicyFile>,
    changed: mpsc::Sender<oneshot::Sender<()>>,
    changes: Mutex<mpsc::Receiver<oneshot::Sender<()>>>,
}

impl Approvers {
    pub fn new(settings: ApprovalSettings, policy: Option<PolicyFile>) -> Self {
        let (changed, changes) = mpsc::channel(1);
        let (desk, refusals) = (Desk::default(), Refusals::default());
        Self { settings, desk, refusals, policy, changed, changes: Mutex::new(changes) }
    }

    pub(super) fn through(&self) -> Through {
        self.settings.through
    }

    /// How long a person may take.
    pub(super) fn wait(&self) -> Duration {
        self.settings.wait
    }

    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    pub(super) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(super) fn policy(&self) -> Option<&PolicyFile> {
        self.policy.as_ref()
    }

    /// The next change of the policy file by an answer, which is to be put in force. Whoever gave it waits until what comes
    /// back is used or dropped.
    pub async fn policy_changed(&self) -> Option<oneshot::Sender<()>> {
        self.changes.lock().await.recv().await
    }

    /// Writes a change that a person has seen and approved, and has it put in force. If it cannot be written, the answer
    /// still counts for what was shown.
    pub(super) async fn make(&self, change: &Change) -> Approval {
        if let Err(error) = change.write() {
            tracing::warn!("the call was approved once, and the policy stays as it was: {error}");
            return Approval::Once;
        }
        tracing::info!("a person changed the policy by an answer:\n{}", change.diff);
        let (done, is_done) = oneshot::channel();
        if self.changed.try_send(done).is_ok() {
            let _ = tokio::time::timeout(RELOAD_PATIENCE, is_done).await;
        }
        Approval::Always
    }
}
