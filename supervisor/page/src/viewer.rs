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

    /// Checks that the viewer may carry out an action. A person may end the runs of their own AI client and answer its
    /// questions: those that a section shows them.
    ///
    /// # Errors
    /// [`ErrorCode::Forbidden`].
    pub fn check(&self, action: &Action, sections: &Sections) -> Result<(), ActionError> {
        if self.is_administrator() {
            return Ok(());
        }
        let shown = |section: Section, list: &str, is_it: &dyn Fn(&Value) -> bool| {
            let value = sections.value(section);
            let items = value[list].as_array().into_iter().flatten();
            items.into_iter().any(|item| self.may_see_item(item) && is_it(item))
        };
        let is_permitted = match action {
            Action::EndRun { execution, .. } => {
                shown(Section::Runs, "active", &|run| run["execution"] == execution.as_str())
            }
            Action::Answer { supervisor, id, .. } => {
                let is_it = |question: &Value| question["supervisor"] == *supervisor && question["id"] == *id;
                shown(Section::Approvals, "questions", &is_it)
            }
            _ => false,
        };
        let message = "only an administrator of this service may do that";
        is_permitted.then_some(()).ok_or_else(|| ActionError::new(ErrorCode::Forbidden, message))
    }
}
