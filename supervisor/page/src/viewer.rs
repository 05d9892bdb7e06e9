//! The person who looks at a page, and what they may see and do.

use serde_json::Value;

use super::action::Action;
use super::error::{ActionError, ErrorCode};
use super::sections::{Section, Sections};

/// The person who looks at a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Sees and does everything: the user of this process, or an administrator of a service.
    Administrator {
        /// The name under which the person logged in.
        name: String,
    },
    /// Sees the runs, approvals, denials and results of one AI client of a service: their own.
    Person {
        /// The name of the AI client in the policy and in the audit log.
        client: String,
    },
}

impl Viewer {
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Administrator { name } => name,
            Self::Person { client } => client,
        }
    }

    #[must_use]
    pub fn is_administrator(&self) -> bool {
        matches!(self, Self::Administrator { .. })
    }

    /// Returns the only AI client whose data the viewer may see; `None` if the viewer may see all.
    #[must_use]
    pub fn only_client(&self) -> Option<&str> {
        match self {
            Self::Administrator { .. } => None,
            Self::Person { client } => Some(client),
        }
    }

    /// Whether the viewer may see data of this AI client.
    #[must_use]
    pub fn may_see(&self, client: Option<&str>) -> bool {
        self.only_client().is_none_or(|only| client == Some(only))
    }

    /// Whether the viewer may see an item of a section, which has the name of its AI client as the member `client`.
    #[must_use]
    pub fn may_see_item(&self, item: &Value) -> bool {
        self.may_see(item["client"].as_str())
    }

    /// Checks that the viewer may carry out an action. A person may end the runs of their own AI client. They may not
    /// answer its questions: the AI client has the same token, and would approve its own calls.
    ///
    /// # Errors
    /// [`ErrorCode::Forbidden`].
    pub fn check(&self, action: &Action, sections: &Sections) -> Result<(), ActionError> {
        if self.is_administrator() {
            return Ok(());
        }
        let is_permitted = match action {
            Action::EndRun { execution, .. } => {
                let runs = sections.value(Section::Runs);
                let mut active = runs["active"].as_array().into_iter().flatten();
                active.any(|run| run["execution"] == execution.as_str() && self.may_see_item(run))
            }
            _ => false,
        };
        let message = "only an administrator of this service may do that";
        is_permitted.then_some(()).ok_or_else(|| ActionError::new(ErrorCode::Forbidden, message))
    }
}
