//! Proposes and makes the policy change for an approval with the scope `always`. After the change, the
//! approved calls require no approval. The changed policy is evaluated and shown as a diff before it is
//! written.

use lockhouse_audit::{ChangeTarget, Channel, Edit, ProvenPresence};
use lockhouse_policies::PendingCall;
use lockhouse_policies::edit::{allow_calls, unified_diff};

use super::policy_file::{PolicyFile, PolicyFileError};
use super::untrusted_text;

/// Maximum size of all arguments in an approval prompt, in bytes, for which a policy change is proposed. The
/// limit exists because each call is evaluated again with the changed policy.
const ARGUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of lines in the diff of a change. A longer change is not offered to approvers.
const DIFF_LINES_MAX: usize = 80;

/// A change of the policy file after which the policy allows all calls of a prompt.
#[derive(Debug)]
pub(super) struct PolicyChange {
    file: PolicyFile,
    /// The text of the policy file before the change.
    before: String,
    /// The text of the policy file after the change.
    after: String,
    /// The change as a unified diff, with hidden characters escaped.
    pub(super) diff: String,
}

/// Proposes a policy change that allows these calls. Each call must require approval only because of one rule or one
/// `ask` list in the current text of `file`, the user's policy file. Otherwise returns `None`. Also returns `None`
/// if the file is not writable, if the arguments or the diff are too large, or if the changed policy would not allow
/// each call.
pub(super) fn propose(file: &PolicyFile, calls: &[&PendingCall]) -> Option<PolicyChange> {
    let source = file.read().ok()?;
    let is_ours =
        |call: &&PendingCall| call.is_only_approval_requirement() && call.rule().path == source.path;
    if !calls.iter().all(is_ours) || !file.is_writable() {
        return None;
    }
    let arguments: usize =
        calls.iter().map(|call| untrusted_text::json_bytes(&*call.everything_sent())).sum();
    if arguments > ARGUMENT_BYTES_MAX {
        return None;
    }
    let after = allow_calls(&source, calls)?;
    let diff = unified_diff(&source.path, &source.text, &after);
    (diff.lines().count() <= DIFF_LINES_MAX).then(|| PolicyChange {
        file: file.clone(),
        before: source.text,
        after,
        diff,
    })
}

impl PolicyChange {
    /// Describes the change for the audit log.
    pub(super) fn edit<'a>(&'a self, action: &'a str, presence: Option<&'a ProvenPresence>) -> Edit<'a> {
        let (target, text) = (ChangeTarget::Policy, Some(self.after.as_str()));
        Edit { target, path: self.file.path(), action, through: Channel::Approval, text, presence }
    }

    /// Writes the changed policy. Fails if the policy file has changed since the diff was made.
    pub(super) fn apply(&self) -> Result<(), PolicyFileError> {
        self.file.replace(&self.before, &self.after)
    }
}
