//! Messages between the supervisor and approvers over the control socket, one JSON object per line. Documented for
//! users in docs/approvals.md.

use std::time::Duration;

use lockhouse_upstream::Caller;
use serde::{Deserialize, Serialize};

use super::Approval;
use super::call_summary::CallSummary;
use super::prompt::Prompt;

/// An approval question, sent to every watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalQuestion {
    /// Number of the question, unique within this supervisor process.
    pub id: u64,
    /// Digest that an answer must repeat: SHA-256 of the call, or of the digests of all calls.
    pub digest: String,
    pub execution: String,
    /// The name of the AI client, as authenticated or as the client gave it.
    pub client: Option<String>,
    /// Seconds until the question times out.
    pub seconds: f64,
    /// The complete prompt as text for a person.
    pub text: String,
    /// Text that explains what each scope approves.
    pub scopes_text: String,
    pub scopes: Vec<Approval>,
    pub calls: Vec<CallSummary>,
    /// Unified diff of the policy change that scope `always` makes; `None` if that scope is not offered.
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

/// Messages from the supervisor to a watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromSupervisor {
    /// The watcher is registered and can answer. Carries the protocol version.
    Watching(u32),
    Ask(Box<ApprovalQuestion>),
    /// The question with this number is closed: answered, timed out, or its execution ended.
    Gone(u64),
    /// The answer to the question with this number was accepted.
    Taken(u64),
    /// An answer of the watcher was rejected, or a line could not be parsed.
    Refused {
        id: Option<u64>,
        reason: String,
    },
}

/// Messages from a watcher to the supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromApprover {
    /// Must be the first message: registers the watcher. Carries the protocol version.
    Watch(u32),
    Answer(ApproverAnswer),
}

/// An approver's answer. It applies only to the question with this number and this digest.
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
