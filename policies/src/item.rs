//! What an upstream server can be asked for.

use std::fmt;

use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};

use crate::printable::{clipped, printable};

/// Characters of a URI or a prompt's name that a message repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// One thing that a policy decides about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// To be called.
    Tool(ToolName),
    /// To be read.
    Resource(ResourceUri),
    /// To be got.
    Prompt(PromptName),
    /// To be listed.
    List(Listing),
}

/// What a server has a list of, besides its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// `resources/list`, and `resources/templates/list` with it.
    Resources,
    /// `prompts/list`.
    Prompts,
}

impl Listing {
    /// The key of the list in a policy, and the last word of the method.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

impl Item {
    /// The name, the URI, or what is listed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tool(name) => name.as_str(),
            Self::Resource(uri) => uri.as_str(),
            Self::Prompt(name) => name.as_str(),
            Self::List(listing) => listing.as_str(),
        }
    }

    /// The kind, as records and answers name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::List(_) => "list",
        }
    }

    /// The key of the list in a server's table that can permit it.
    pub(crate) fn list(&self) -> &'static str {
        match self {
            Self::Tool(_) => "allow",
            Self::Resource(_) => Listing::Resources.as_str(),
            Self::Prompt(_) => Listing::Prompts.as_str(),
            Self::List(listing) => listing.as_str(),
        }
    }

    /// What a message calls it.
    pub(crate) fn of(&self, server: &ServerName) -> String {
        match self {
            Self::Tool(name) => format!("{server}/{name}"),
            Self::List(listing) => format!("listing the {} of {server}", listing.as_str()),
            _ => format!("the {} {self} of {server}", self.kind()),
        }
    }
}

/// As much of it as a message repeats.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&clipped(self.as_str(), SHOWN_CHARS_MAX)))
    }
}

impl From<&ToolName> for Item {
    fn from(name: &ToolName) -> Self {
        Self::Tool(name.clone())
    }
}
