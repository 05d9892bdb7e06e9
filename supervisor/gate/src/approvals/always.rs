//! The change of the policy after which nobody is asked again: made as a text, judged by the policy itself, shown, and only
//! then written.

use lockhouse_policies::{Decision, PendingCall, Policy, Source};
use similar::TextDiff;

use super::permit::{Leave, permit};
use super::policy_file::{PolicyFile, PolicyFileError};
use super::visible;

/// Bytes of arguments of all calls together that are decided about again.
const ARGUMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines of a diff. A change that needs more is not offered.
const DIFF_LINES_MAX: usize = 80;
/// Unchanged lines around each change.
const CONTEXT: usize = 2;

/// A change that would have the policy allow all calls of a prompt.
#[derive(Debug)]
pub(super) struct Change {
    file: PolicyFile,
    before: String,
    after: String,
    /// Unified.
    pub(super) diff: String,
}

/// The change for these calls. None where a question comes from elsewhere too than one line of the user's own policy as it
/// is written now, where that cannot be written, or where the changed text would not allow each of them.
pub(super) fn propose(file: &PolicyFile, calls: &[&PendingCall]) -> Option<Change> {
    let source = file.read().ok()?;
    let is_ours = |call: &&PendingCall| call.is_left_by_that_line_alone() && call.rule().path == source.path;
    if !calls.iter().all(is_ours) || !file.is_writable() {
        return None;
    }
    let arguments: usize = calls.iter().map(|call| visible::bytes(call.arguments())).sum();
    if arguments > ARGUMENT_BYTES_MAX {
        return None;
    }
    let leaves: Vec<Leave<'_>> = calls
        .iter()
        .map(|call| Leave { server: call.server().as_str(), item: call.item(), line: call.rule().line })
        .collect();
    let after = permit(&source.text, &leaves)?;
    let (is, would_be) = (policy(&source)?, policy(&Source { text: after.clone(), ..source.clone() })?);
    let asks = |call: &PendingCall| match is.decide(call.call().clone()) {
        Decision::Ask(asked) => asked.rule() == call.rule(),
        Decision::Allow(_) | Decision::Deny(_) => false,
    };
    let allows = |call: &PendingCall| matches!(would_be.decide(call.call().clone()), Decision::Allow(_));
    if !calls.iter().all(|call| asks(call) && allows(call)) {
        return None;
    }
    let diff = unified(&source.path, &source.text, &after);
    (diff.lines().count() <= DIFF_LINES_MAX).then(|| Change {
        file: file.clone(),
        before: source.text,
        after,
        diff,
    })
}

impl Change {
    /// Puts the new text in the place of the one that was shown, if that is still there.
    pub(super) fn write(&self) -> Result<(), PolicyFileError> {
        self.file.replace(&self.before, &self.after)
    }
}

fn policy(source: &Source) -> Option<Policy> {
    Policy::parse(source.clone()).ok()
}

/// Made visible: a policy may have characters that are not.
fn unified(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT).header(path, path).to_string();
    unified.lines().map(|line| visible::one_line(line, 300)).collect::<Vec<_>>().join("\n")
}
