//! The targets of calls: tools, resources, prompts, and lists of resources or prompts.

use std::fmt;

use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};

use crate::printable::{printable, truncate_chars};

/// The number of characters of a URI or a prompt's name that a message repeats.
const SHOWN_CHARS_MAX: usize = 200;

/// The target of a call: what a policy decides about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallTarget {
    /// A tool, to be called (`tools/call`).
    Tool(ToolName),
    /// A resource, to be read (`resources/read`).
    Resource(ResourceUri),
    /// A prompt, to be got (`prompts/get`).
    Prompt(PromptName),
    /// A list, to be requested.
    List(Listing),
}

/// The lists of a server that policies control, besides the list of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// `resources/list` and `resources/templates/list`.
    Resources,
    /// `prompts/list`.
    Prompts,
}

impl Listing {
    /// Returns the key of the list in a policy, which is also the first part of the MCP method.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

impl CallTarget {
    /// Returns the tool's or prompt's name, the resource's URI, or the name of the list.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tool(name) => name.as_str(),
            Self::Resource(uri) => uri.as_str(),
            Self::Prompt(name) => name.as_str(),
            Self::List(listing) => listing.as_str(),
        }
    }

    /// Returns the kind, as audit records and JSON results name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::List(_) => "list",
        }
    }

    /// Returns the key of the list in a server's table that can allow this target.
    pub(crate) fn list_key(&self) -> &'static str {
        match self {
            Self::Tool(_) => "allow",
            Self::Resource(_) => Listing::Resources.as_str(),
            Self::Prompt(_) => Listing::Prompts.as_str(),
            Self::List(listing) => listing.as_str(),
        }
    }

    /// Returns a description of the target for messages, with its server.
    pub(crate) fn describe(&self, server: &ServerName) -> String {
        match self {
            Self::Tool(name) => format!("{server}/{name}"),
            Self::List(listing) => format!("listing the {} of {server}", listing.as_str()),
            _ => format!("the {} {self} of {server}", self.kind()),
        }
    }
}

/// Writes the name or URI without control characters, cut to [`SHOWN_CHARS_MAX`].
impl fmt::Display for CallTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&truncate_chars(self.as_str(), SHOWN_CHARS_MAX)))
    }
}

impl From<&ToolName> for CallTarget {
    fn from(name: &ToolName) -> Self {
        Self::Tool(name.clone())
    }
}
