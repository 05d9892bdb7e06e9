//! The outcomes of an approval prompt, and the error messages for refused calls.

use lockhouse_messages::AskError;
use lockhouse_policies::CallTarget;
use lockhouse_protocol::ServerName;

use super::Approval;
use super::refusal_backoff::{IN_A_ROW_MAX, Pause};

/// Maximum number of approval prompts of one execution.
/// Bound: approvals and questions.
pub(super) const PROMPTS_MAX: u32 = 100;

/// The outcome of a prompt: approved with a scope, or refused with a reason.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PromptOutcome {
    Approved(Approval),
    Refused(ApprovalRefusal),
}

/// Why a call was not approved.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ApprovalRefusal {
    Declined,
    /// The AI client declined so quickly that probably no person saw the question.
    DeclinedAtOnce,
    Cancelled,
    /// The AI client or watcher gave an answer that was not offered.
    NoAnswer,
    TimedOut,
    /// No approver was available. Contains the reason if the supervisor tried to ask the user of the AI client and
    /// could not.
    NoApprover(Option<AskError>),
    TooMany,
    /// The prompt could not show all required arguments of the call. Contains a description of the arguments that
    /// it could not show.
    Hidden(String),
    /// No approver was asked, because too many consecutive questions of this AI client were refused. Contains the
    /// pause that must end before an approver is asked again.
    Paused(Pause),
    /// No approver was asked, because questions about this tool were refused too often in this execution. Until the
    /// execution ends, no approver is asked about the tool.
    Final,
    /// The audit record of the question or the answer could not be written. Contains the error.
    Unrecorded(String),
    /// The execution ended before an answer arrived.
    Abandoned,
    /// The [`ApprovalBatcher`](super::batch::ApprovalBatcher) task ended unexpectedly.
    Broken,
}

impl PromptOutcome {
    /// Returns the name of the outcome in the audit log.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Approved(scope) => scope.as_str(),
            Self::Refused(refusal) => match refusal {
                ApprovalRefusal::Declined | ApprovalRefusal::DeclinedAtOnce => "declined",
                ApprovalRefusal::Cancelled => "cancelled",
                ApprovalRefusal::NoAnswer => "no valid answer",
                ApprovalRefusal::TimedOut => "timeout",
                ApprovalRefusal::NoApprover(_) => "nobody to ask",
                ApprovalRefusal::TooMany => "too many prompts",
                ApprovalRefusal::Hidden(..) => "cannot be shown",
                ApprovalRefusal::Paused(_) | ApprovalRefusal::Final => "too many refusals",
                ApprovalRefusal::Unrecorded(_) => "not recorded",
                ApprovalRefusal::Abandoned => "abandoned",
                ApprovalRefusal::Broken => "broken",
            },
        }
    }
}

impl ApprovalRefusal {
    /// Whether the question was sent to an approver, who declined it, cancelled it, or did not give a valid
    /// answer in time.
    pub(super) fn is_persons_refusal(&self) -> bool {
        matches!(
            self,
            Self::Declined | Self::DeclinedAtOnce | Self::Cancelled | Self::NoAnswer | Self::TimedOut
        )
    }

    /// Returns the error message for the program or AI client that made the call.
    pub(super) fn message(&self, server: &ServerName, item: &CallTarget) -> String {
        let call = format!("{server}.{item}");
        match self {
            Self::Declined => format!("the person who was asked about {call} declined it"),
            Self::DeclinedAtOnce => format!("the question about {call} was declined at once"),
            Self::Cancelled => {
                format!(
                    "the person who was asked about {call} closed the question without an answer, which declines the call"
                )
            }
            Self::NoAnswer => {
                format!(
                    "the answer to the approval question about {call} is not valid, which declines the call"
                )
            }
            Self::TimedOut => {
                format!("nobody answered in time whether {call} is approved, which declines it")
            }
            Self::NoApprover(why) => {
                let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                format!(
                    "a person must approve {call}, and there is nobody to ask{why}: a person can run `lockhouse approvals` \
                     in a terminal and have this run again, or move it to `allow` in the policy"
                )
            }
            Self::TooMany => format!(
                "a person must approve {call}, and this execution has asked them {PROMPTS_MAX} times already, which is the \
                 limit: make such calls together, or have a person move it to `allow` in the policy"
            ),
            Self::Hidden(hidden) => format!(
                "a person must approve {call}, and it cannot be shown in full to a person: {hidden}. Nobody was asked; leave out \
                 what it does not need, or have a person move it to `allow` in the policy"
            ),
            Self::Paused(Pause { left, refusals }) => format!(
                "{call} is declined and nobody was asked: the last {refusals} questions in a row were refused, so people are not \
                 asked again for {} s, and longer after each further refusal. Do not try again: do without this call, or say to \
                 the person what you need and why",
                left.as_secs() + 1
            ),
            Self::Final => format!(
                "{call} is declined and nobody was asked: questions about it were refused {IN_A_ROW_MAX} times in a row in this \
                 execution. Do not try again: do without this call, or say to the person what you need and why"
            ),
            Self::Unrecorded(error) => format!("{call} was not made: {error}"),
            Self::Abandoned => format!("the execution ended while a person was asked about {call}"),
            Self::Broken => {
                format!("the approval of {call} failed with an internal error; see the log of Lockhouse")
            }
        }
    }
}
