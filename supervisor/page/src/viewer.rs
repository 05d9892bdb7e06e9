//! The person who looks at a page, and what they may see.

use serde_json::Value;

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
}
