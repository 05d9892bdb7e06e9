//! What became of a prompt.

use lockhouse_policies::Item;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ai_client::Unasked;

use super::Approval;
use super::refusals::{IN_A_ROW_MAX, Pause};

/// Prompts that one execution may put to a person.
pub(super) const PROMPTS_MAX: u32 = 100;

/// What a person said to a prompt, or that they said nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Approved(Approval),
    Refused(Refusal),
}

/// Why a call was not approved.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    Declined,
    Cancelled,
    /// What came back is none of the answers that were offered.
    NoAnswer,
    TimedOut,
    /// Nobody could be asked; why the AI client could not, if there is one and it was tried.
    Nobody(Option<Unasked>),
    TooMany,
    /// This much of what is required would be hidden, in words.
    Hidden(String),
    /// So many questions in a row of this client were refused, and nobody is asked until this time is over.
    Paused(Pause),
    /// Questions about this tool were refused in this execution, again and again.
    Final,
    /// That the person was asked, or answered, could not be recorded.
    Unrecorded(String),
    /// The execution ended meanwhile.
    Abandoned,
    /// What asks people has ended.
    Broken,
}

impl Outcome {
    /// For the record.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Approved(scope) => scope.as_str(),
            Self::Refused(refusal) => match refusal {
                Refusal::Declined => "declined",
                Refusal::Cancelled => "cancelled",
                Refusal::NoAnswer => "no valid answer",
                Refusal::TimedOut => "timeout",
                Refusal::Nobody(_) => "nobody to ask",
                Refusal::TooMany => "too many prompts",
                Refusal::Hidden(..) => "cannot be shown",
                Refusal::Paused(_) | Refusal::Final => "too many refusals",
                Refusal::Unrecorded(_) => "not recorded",
                Refusal::Abandoned => "abandoned",
                Refusal::Broken => "broken",
            },
        }
    }
}

impl Refusal {
    /// Whether somebody was asked, and said or did something else than to approve.
    pub(super) fn is_a_persons(&self) -> bool {
        matches!(self, Self::Declined | Self::Cancelled | Self::NoAnswer | Self::TimedOut)
    }

    /// For the code that made the call, and whoever reads its error.
    pub(super) fn in_words(&self, server: &ServerName, item: &Item) -> String {
        let call = format!("{server}.{item}");
        match self {
            Self::Declined => format!("the person who was asked about {call} declined it"),
            Self::Cancelled => {
                format!(
                    "the person who was asked about {call} closed the question without an answer, which declines it"
                )
            }
            Self::NoAnswer => {
                format!(
                    "what came back when a person was asked about {call} is no answer to the question, which declines it"
                )
            }
            Self::TimedOut => {
                format!("nobody answered in time whether {call} is approved, which declines it")
            }
            Self::Nobody(why) => {
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
                format!("a person could not be asked about {call}; the log of Lockhouse says why")
            }
        }
    }
}
