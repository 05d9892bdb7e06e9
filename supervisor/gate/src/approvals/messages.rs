//! What the supervisor and a person say to each other over the control socket, one JSON object a line. docs/approvals.md has
//! it for readers.

use std::time::Duration;

use lockhouse_upstream::Caller;
use serde::{Deserialize, Serialize};

use super::Approval;
use super::facts::Facts;
use super::prompt::Prompt;

/// A question for a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Of this supervisor's questions.
    pub id: u64,
    /// What an answer has to name: the SHA-256 of the call, or of the digests of all calls.
    pub digest: String,
    pub execution: String,
    /// What the AI client calls itself.
    pub client: Option<String>,
    /// How long an answer is waited for.
    pub seconds: f64,
    /// All that follows, in words for a person.
    pub text: String,
    /// What each scope means, in words.
    pub scopes_text: String,
    pub scopes: Vec<Approval>,
    pub calls: Vec<Facts>,
    /// What `always` would change in the policy, as a unified diff.
    pub diff: Option<String>,
}

impl Ask {
    pub(super) fn new(prompt: &Prompt, caller: &Caller, wait: Duration) -> Self {
        Self {
            id: 0,
            digest: prompt.digest.clone(),
            execution: caller.execution.to_string(),
            client: caller.client.as_ref().map(|client| client.as_str().to_owned()),
            seconds: wait.as_secs_f64(),
            text: prompt.text(),
            scopes_text: prompt.scopes_in_words(),
            scopes: prompt.scopes(),
            calls: prompt.calls.clone(),
            diff: prompt.change.as_ref().map(|change| change.diff.clone()),
        }
    }
}

/// What is said to whoever watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromSupervisor {
    /// From now on the one who connected is somebody to ask. The number is the version of these messages.
    Watching(u32),
    Ask(Box<Ask>),
    /// The question with this number is over: answered by somebody, too late, or its execution has ended.
    Gone(u64),
    /// An answer was taken.
    Taken(u64),
    /// An answer, or what should have been one, was not taken.
    Refused {
        id: Option<u64>,
        reason: String,
    },
}

/// What they say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromPerson {
    /// First: from then on there is somebody to ask. The number is the version of these messages.
    Watch(u32),
    Answer(PersonsAnswer),
}

/// An answer, to the question with this number and this digest alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersonsAnswer {
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
