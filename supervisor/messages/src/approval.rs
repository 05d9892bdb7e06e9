//! The questions about calls that require approval, as people get them outside of the AI client, and their answers.
//! docs/approvals.md documents the members for users.

use serde::{Deserialize, Serialize};

use crate::{KeyChallenge, Presence, PresenceProof};

/// The scope of an approval: which calls one answer approves. The audit record of each approved call contains it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// The approval covers only the calls shown in the prompt.
    #[default]
    Once,
    /// The approval covers the calls shown in the prompt, and all further calls of the same tools, resources and
    /// prompts in this execution.
    Execution,
    /// The approval covers the same calls as [`Self::Execution`], as far as the same policy rules require approval for
    /// them. In addition, the policy file is changed so that it also allows such calls in the future.
    Always,
}

impl Approval {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Execution => "execution",
            Self::Always => "always",
        }
    }
}

/// What a watcher (a connection that shows approval questions to a person) does with questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatcherRole {
    /// A person can answer, so questions wait for the watcher.
    Approver,
    /// The watcher only shows questions to people who may not answer them.
    Observer,
}

/// A message of the engine to a watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalEvent {
    /// The watcher is registered, or has the role that it asked for.
    Watching,
    Ask(Box<ApprovalQuestion>),
    /// The question with this number is closed: it was answered or timed out, or its execution has ended.
    Gone(u64),
    /// The engine accepted the watcher's answer to the question with this number.
    Taken(u64),
    /// Answers [`ApprovalInput::Challenge`] about the question with the number `id`.
    Challenge {
        id: u64,
        challenge: KeyChallenge,
    },
    /// The answer of the watcher to the question with the number `id` was rejected. Without an `id`, the watcher sent
    /// something else that is not valid.
    Refused {
        id: Option<u64>,
        reason: String,
    },
}

/// A message of a watcher to the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalInput {
    /// Changes what the watcher is. Answered with [`ApprovalEvent::Watching`].
    SetRole(WatcherRole),
    /// Answered with [`ApprovalEvent::Taken`] or [`ApprovalEvent::Refused`].
    Answer(ApproverAnswer),
    /// Answered with [`ApprovalEvent::Challenge`] or [`ApprovalEvent::Refused`].
    Challenge(ChallengeRequest),
}

/// A pending question about the approval of calls, as sent to every watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalQuestion {
    /// The number of the question, unique within the engine's process.
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
    /// What an answer must prove that approves the calls.
    #[serde(default, skip_serializing_if = "Presence::is_none")]
    pub presence: Presence,
    /// What the approval requires of the people who give it. `None` if one answer is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<RequiredApprovers>,
    /// The names of the roles of the policy whose members may approve, for each document that has roles. Empty if none has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Vec<String>>,
}

/// What an approval requires of the people who give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredApprovers {
    /// The number of different people.
    pub people: u32,
    /// Whether the person for whom the calls are made does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_requester: bool,
    /// The names of those who have approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approved_by: Vec<String>,
}

/// A call in the form in which an approver sees it. All texts are escaped, so that a terminal can display them
/// safely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallSummary {
    pub server: String,
    /// The kind of the called item, such as `tool`, `resource` or `prompt`. For a call that lists resources or
    /// prompts, the kind of the list.
    pub kind: String,
    pub name: String,
    /// Number of characters of the name of the called item that are not shown.
    #[serde(default)]
    pub name_left_out: usize,
    /// The names of the arguments, quoted as JSON, in the order of the tool's schema. Names that do not fit are
    /// left out.
    #[serde(default)]
    pub argument_names: Vec<String>,
    /// Number of argument names that `argument_names` leaves out.
    #[serde(default)]
    pub argument_names_left_out: usize,
    /// One line with the names in `argument_names`. Each name is followed by the beginning of its value if there is
    /// space.
    #[serde(default)]
    pub overview: String,
    /// The arguments of the call as text, in the order of `argument_names`. The text is one JSON object if it fits,
    /// otherwise a line for each argument.
    pub arguments: String,
    /// Number of characters of the arguments that are not shown.
    pub arguments_left_out: usize,
    /// Number of bytes of the content of a file that are not shown; the arguments have the SHA-256 of the whole content.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub content_left_out: u64,
    /// What the upstream server claims about the tool's effects (MCP annotations), as text.
    pub claims: String,
    /// The number of the line of the submitted code that makes the call, as reported by the worker. It may be
    /// wrong. `None` if the line is unknown.
    pub line: Option<u32>,
    /// The text of the line of code that makes the call; `None` if the line is unknown or the code has no such
    /// line.
    pub source: Option<String>,
    /// The file and the line of the policy rule that requires approval.
    pub rule: String,
    /// Whether this is a direct call, which the AI client makes without code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directly: bool,
}

impl CallSummary {
    /// Whether the summary shows the whole name and all arguments of the call, and the whole content of a file that it
    /// writes.
    pub fn is_complete(&self) -> bool {
        self.name_left_out == 0
            && self.arguments_left_out == 0
            && self.argument_names_left_out == 0
            && self.content_left_out == 0
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The answer of an approver to a question. It applies only to the question that has this number and this digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverAnswer {
    pub id: u64,
    pub digest: String,
    pub decision: ApproverDecision,
    #[serde(default)]
    pub scope: Approval,
    /// The proof that the question requires ([`ApprovalQuestion::presence`]). A refusal needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<PresenceProof>,
    /// Why one person approves alone what requires more ("break glass"). The audit log records it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub break_glass: Option<String>,
    /// The access token of the person who answers on the page of a service. The engine verifies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<AccessToken>,
}

/// The access token of a person.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken(pub String);

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApproverDecision {
    Approve,
    Decline,
}

/// Asks the engine for what a key must sign for the answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeRequest {
    /// The number of the question.
    pub id: u64,
    /// The digest of the question.
    pub digest: String,
    /// The scope of the answer.
    pub scope: Approval,
    /// The port of `localhost` at which the page is that asks the key.
    pub port: u16,
}
