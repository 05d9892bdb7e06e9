//! The form in which an AI client receives answers.

use std::collections::BTreeMap;
use std::str::FromStr;

use lockhouse_base::principal::Principal;
use serde::Deserialize;
use thiserror::Error;

/// The form of the answers of `run_code`, `get_result` and `search_tools`. Never guessed from the name that an AI
/// client reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerForm {
    /// For models: the value, the printed output and the calls that may have changed something, each in a text block.
    #[default]
    Text,
    /// For programs of AI clients that join the text blocks of an answer: the value in the only text block.
    Value,
    /// The complete answer as structured content and as text, with an output schema.
    Structured,
}

impl AnswerForm {
    /// The name of the form in the configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Value => "value",
            Self::Structured => "structured",
        }
    }
}

/// A name that is not the name of an [`AnswerForm`].
#[derive(Debug, Error)]
#[error("use text, value or structured")]
pub struct UnknownForm;

impl FromStr for AnswerForm {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        let forms = [Self::Text, Self::Value, Self::Structured];
        forms.into_iter().find(|form| form.as_str() == name).ok_or(UnknownForm)
    }
}

/// Which form each AI client receives.
#[derive(Clone, Debug, Default)]
pub struct AnswerForms {
    /// The form for AI clients without an entry in `by_client`.
    pub default: AnswerForm,
    /// The forms of authenticated AI clients, by their names in the policy.
    pub by_client: BTreeMap<String, AnswerForm>,
}

impl AnswerForms {
    /// Returns the form for an AI client. Only an authenticated name selects a form.
    pub(crate) fn of(&self, principal: &Principal) -> AnswerForm {
        let name = principal.client(None);
        name.and_then(|name| self.by_client.get(name.as_str()).copied()).unwrap_or(self.default)
    }
}
