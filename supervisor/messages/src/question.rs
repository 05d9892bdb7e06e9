//! Questions that AI clients get.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of a question that an AI client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    Form,
    Url,
    /// A sampling request, which is for the AI client's model and not for its user.
    Sampling,
}

/// A question that an AI client gets: a validated elicitation or sampling request of an upstream server, or an
/// approval prompt of Lockhouse as a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Question {
    /// A form to fill in, whose fields are not nested.
    Form { message: String, schema: Value },
    /// A web page that the user is asked to open.
    Url { message: String, url: String, id: String },
    /// A sampling request: the parameters of `sampling/createMessage`, unchanged. The AI client decides which of the
    /// parameters it shows. Lockhouse does not present them as its own text.
    Sampling(Value),
}

impl Question {
    /// Returns the parameters of an `elicitation/create` request to the AI client that shows the question. Returns
    /// `None` for a sampling request.
    pub fn to_elicitation_parameters(&self) -> Option<Value> {
        match self {
            Self::Form { message, schema } => {
                Some(json!({"mode": "form", "message": message, "requestedSchema": schema}))
            }
            Self::Url { message, url, id } => {
                Some(json!({"mode": "url", "message": message, "url": url, "elicitationId": id}))
            }
            Self::Sampling(_) => None,
        }
    }

    pub fn kind(&self) -> QuestionKind {
        match self {
            Self::Form { .. } => QuestionKind::Form,
            Self::Url { .. } => QuestionKind::Url,
            Self::Sampling(_) => QuestionKind::Sampling,
        }
    }
}
