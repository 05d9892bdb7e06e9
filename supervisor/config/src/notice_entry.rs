//! An entry of `notify` of `[approvals]`, as it is written.

use serde::Deserialize;

/// Maximum number of receivers of notices.
/// Bound: approvals and questions.
pub(super) const RECEIVERS_MAX: usize = 8;

/// An entry of `notify`: a webhook with its secret, or a command. The debug output hides the URL, whose path may be a secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoticeEntry {
    pub(super) url: Option<String>,
    pub(super) secret: Option<String>,
    pub(super) command: Option<Vec<String>>,
    #[serde(default)]
    pub(super) after_seconds: u32,
    pub(super) remind_seconds: Option<u32>,
}

impl std::fmt::Debug for NoticeEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NoticeEntry").field("command", &self.command).finish_non_exhaustive()
    }
}
