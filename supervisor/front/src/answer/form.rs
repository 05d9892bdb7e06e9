//! The form in which an AI client receives answers, and how long its requests wait for them.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use lockhouse_link::GrantedAccess;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The form of the answers of `run_code`, `get_result` and `search_tools`. The configuration selects the form. The name
/// that an AI client reports about itself has no influence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerForm {
    /// For models: the value, the printed output and the calls that may have changed something, each in a text block.
    #[default]
    Text,
    /// For AI clients whose programs join all text blocks of an answer: one text block that contains only the
    /// value.
    Value,
    /// As [`Text`](Self::Text), with `Value: ` before the value. This is for AI clients that parse every JSON text as
    /// an object, and report a number, a string or a list as an error of the tool.
    Labelled,
    /// The complete answer as structured content and as text, with an output schema.
    Structured,
}

impl AnswerForm {
    /// The name of the form in the configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Value => "value",
            Self::Labelled => "labelled",
            Self::Structured => "structured",
        }
    }
}

/// A name that is not the name of an [`AnswerForm`].
#[derive(Debug, Error)]
#[error("use text, value, labelled or structured")]
pub struct UnknownForm;

impl FromStr for AnswerForm {
    type Err = UnknownForm;

    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        let forms = [Self::Text, Self::Value, Self::Labelled, Self::Structured];
        forms.into_iter().find(|form| form.as_str() == name).ok_or(UnknownForm)
    }
}

/// Settings of the answers to each AI client: the form of the answers, and how long a request waits for its run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AnswerSettings {
    /// The form for AI clients without an entry in `forms`.
    pub form: AnswerForm,
    /// The forms of authenticated AI clients, by their names in the policy.
    pub forms: BTreeMap<String, AnswerForm>,
    /// Maximum time that a request of an AI client waits for its run, for clients without an entry in `waits`. `None`
    /// if only the general limit applies, `wait_seconds` of `[runs]`.
    pub wait: Option<Duration>,
    /// Maximum times that requests of authenticated AI clients wait for their runs, by the names of the clients in the
    /// policy.
    pub waits: BTreeMap<String, Duration>,
}

impl AnswerSettings {
    /// Returns the answer form for an AI client. A name that the client reports without authentication
    /// selects no form.
    pub(crate) fn form_for(&self, access: &GrantedAccess) -> AnswerForm {
        let name = access.client(None);
        name.and_then(|name| self.forms.get(name.as_str()).copied()).unwrap_or(self.form)
    }

    /// Returns the configured maximum time that a request of this AI client waits for its run. `None` if only the
    /// general limit applies, `wait_seconds` of `[runs]`.
    pub(crate) fn wait_limit(&self, access: &GrantedAccess) -> Option<Duration> {
        let name = access.client(None);
        name.and_then(|name| self.waits.get(name.as_str()).copied()).or(self.wait)
    }
}
