//! The messages between the supervisor and watchers (connections that show approval questions to a person) on the
//! control socket, one JSON object per line. docs/approvals.md documents them for users.

use std::time::Duration;

use lockhouse_upstream::Caller;
use serde::{Deserialize, Serialize};

use super::Approval;
use super::call_summary::CallSummary;
use super::prompt::Prompt;

/// A pending question about the approval of calls, as sent to every watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalQuestion {
    /// The number of the question, unique within this supervisor process.
    pub id: u64,
    /// The digest that an answer must repeat: the SHA-256 of the call if the question is about one call,
    /// otherwise the SHA-256 of the digests of all its calls.
    pub digest: String,
    pub execution: String,
    /// The name of the AI client: its authenticated name, or the name that it reports about itself. `None` if it has
    /// neither.
    pub client: Option<String>,
    /// Number of seconds from sending the question until it times out.
    pub seconds: f64,
    /// The whole prompt as text for a person.
    pub text: String,
    /// A text that explains which calls each scope approves.
    pub scopes_text: String,
    /// The scopes (which calls the answer approves) that an answer may choose.
    pub scopes: Vec<Approval>,
    pub calls: Vec<CallSummary>,
    /// The change of the policy that the scope `always` makes, as a unified diff. `None` if that scope is not offered.
    pub diff: Option<String>,
}

impl ApprovalQuestion {
    pub(super) fn new(prompt: &Prompt, caller: &Caller, wait: Duration) -> Self {
        Self {
            id: 0,
            digest: prompt.digest.clone(),
            execution: caller.execution.to_string(),
            client: caller.client.as_ref().map(|client| client.as_str().to_owned()),
            seconds: wait.as_secs_f64(),
            text: prompt.text(),
            scopes_text: prompt.scopes_text(),
            scopes: prompt.scopes(),
            calls: prompt.calls.clone(),
            diff: prompt.change.as_ref().map(|change| change.diff.clone()),
        }
    }
}

/// A message from the supervisor to a watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromSupervisor {
    /// The watcher is registered. Contains the version of the protocol.
    Watching(u32),
    Ask(Box<ApprovalQuestion>),
    /// The question with this number is closed: it was answered or timed out, or its execution has ended.
    Gone(u64),
    /// The supervisor accepted the watcher's answer to the question with this number.
    Taken(u64),
    /// The answer of the watcher to the question with the number `id` was rejected. Without an `id`, the watcher sent a
    /// line that is not a valid message, or not valid at this point.
    Refused {
        id: Option<u64>,
        reason: String,
    },
}

/// A message from a watcher to the supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromApprover {
    /// Registers a watcher that can answer: an approver. This or [`FromApprover::Observe`] must be the first message;
    /// later, either changes what the watcher is. Contains the version of the protocol.
    Watch(u32),
    /// Registers a watcher that cannot answer. Questions do not wait for it.
    Observe(u32),
    Answer(ApproverAnswer),
}

/// The answer of an approver to a question. It applies only to the question that has this number and this digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverAnswer {
    pub id: u64,
    pub digest: String,
    pub decision: Decision,
    #[serde(default)]
    pub scope: Approval,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Approve,
    Decline,
}
