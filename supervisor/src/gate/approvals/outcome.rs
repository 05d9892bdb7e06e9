//! What became of a prompt.

use lockhouse_policies::Item;
use lockhouse_protocol::ServerName;

use super::Approval;
use crate::ai_client::Unasked;

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
                Refusal::Unrecorded(_) => "not recorded",
                Refusal::Abandoned => "abandoned",
                Refusal::Broken => "broken",
            },
        }
    }
}

impl Refusal {
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
            Self::Unrecorded(error) => format!("{call} was not made: {error}"),
            Self::Abandoned => format!("the execution ended while a person was asked about {call}"),
            Self::Broken => {
                format!("a person could not be asked about {call}; the log of Lockhouse says why")
            }
        }
    }
}
