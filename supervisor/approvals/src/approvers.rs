//! The approvers that this supervisor process can ask. All executions share them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::Presence;
use serde::Deserialize;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::approval_queue::ApprovalQueue;
use super::notices::{NoticeSettings, send_notices};
use super::policy_file::PolicyFile;
use super::presence::PresenceVerifier;
use super::prompt::Prompt;
use super::refusal_backoff::RefusalTracker;

/// The name of the file of the registered keys.
const KEYS: &str = "approval-keys.json";
/// Maximum time that an approval with the scope `always` waits until the changed policy is loaded.
const RELOAD_PATIENCE: Duration = Duration::from_secs(10);

/// Which approvers may answer questions about calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApproverKind {
    /// The user of the AI client, if the client supports elicitation, and the watchers on this machine, which are
    /// connected over the control socket or are the terminal. All are asked at the same time, and the first answer
    /// counts. A client that declines at once is ignored if a watcher is connected.
    #[default]
    Any,
    /// Only the watchers on this machine, which are connected over the control socket or are the terminal. This is for
    /// AI clients that may answer elicitations without asking their user.
    Local,
}

/// The `[approvals]` settings of the configuration.
#[derive(Clone, Debug)]
pub struct ApprovalSettings {
    pub through: ApproverKind,
    /// How long a question waits for an answer.
    pub wait: Duration,
    /// What an answer must prove that approves calls.
    pub presence: Presence,
    pub notices: NoticeSettings,
}

/// What all executions need for approvals: the approval queue, the counters of refusals, and the policy file to which
/// an answer with the scope `always` adds a rule.
#[derive(Debug)]
pub struct Approvers {
    settings: ApprovalSettings,
    presence: Arc<PresenceVerifier>,
    queue: ApprovalQueue,
    refusals: RefusalTracker,
    /// The policy file of the user, which answers with the scope `always` change. `None` if the policy in force
    /// is not from this file.
    policy: Option<PolicyFile>,
    /// Reports each change of the policy file. The receiver of the report uses the sender in it to confirm that
    /// the changed policy is loaded.
    changed: mpsc::Sender<oneshot::Sender<()>>,
    /// The receiving end of `changed`.
    changes: Mutex<mpsc::Receiver<oneshot::Sender<()>>>,
}

impl Approvers {
    /// `directory` is the directory of persistent state, where the registered keys are. Must be called in a Tokio runtime if there are
    /// receivers of notices.
    pub fn new(settings: ApprovalSettings, policy: Option<PolicyFile>, directory: Option<&Path>) -> Self {
        let (changed, changes) = mpsc::channel(1);
        let keys = directory.map(|directory| directory.join(KEYS));
        let presence = Arc::new(PresenceVerifier::new(settings.presence, keys));
        let (queue, refusals) = (ApprovalQueue::new(presence.clone()), RefusalTracker::default());
        if !settings.notices.receivers.is_empty() {
            tokio::spawn(send_notices(queue.clone(), settings.notices.clone()));
        }
        Self { settings, presence, queue, refusals, policy, changed, changes: Mutex::new(changes) }
    }

    pub fn presence(&self) -> &PresenceVerifier {
        &self.presence
    }

    /// Returns which approvers may answer a question. What an AI client says that its user said proves nothing, and comes from
    /// the requester.
    pub(super) fn approver_kind(&self, prompt: &Prompt) -> ApproverKind {
        let needs_others = !prompt.presence.is_none() || prompt.requirement.needs_operators();
        if needs_others { ApproverKind::Local } else { self.settings.through }
    }

    /// Returns how long a question waits for an approver's answer.
    pub(super) fn answer_timeout(&self) -> Duration {
        self.settings.wait
    }

    /// Whether a question can be answered outside of the AI client: somebody watches now, or gets a notice and will watch.
    pub(super) fn can_answer(&self) -> bool {
        self.queue.has_approvers() || !self.settings.notices.receivers.is_empty()
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

    /// Waits until an answer has changed the policy file. The caller of this function must load the changed policy. The
    /// approved call waits until the returned sender is used or dropped. `None` does not occur in practice, because
    /// this value keeps the channel open.
    pub async fn next_policy_change(&self) -> Option<oneshot::Sender<()>> {
        self.changes.lock().await.recv().await
    }

    /// Waits until the policy file, which was changed, is loaded, at most for [`RELOAD_PATIENCE`].
    pub(super) async fn await_reload(&self) {
        let (done, is_done) = oneshot::channel();
        if self.changed.try_send(done).is_ok() {
            let _ = tokio::time::timeout(RELOAD_PATIENCE, is_done).await;
        }
    }
}
