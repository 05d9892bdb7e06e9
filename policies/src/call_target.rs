//! The targets of calls to upstream servers: tools, resources, prompts, and lists of resources or prompts.

use std::fmt;

use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};

use crate::printable::{printable, truncate_chars};

/// The maximum length of a target's name or URI in a message, in characters. Longer names and URIs are truncated.
const SHOWN_CHARS_MAX: usize = 200;

/// The target of a call: what the call requests from the upstream server. A policy permits or denies calls by their
/// target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallTarget {
    /// The call executes this tool (`tools/call`).
    Tool(ToolName),
    /// The call reads this resource (`resources/read`).
    Resource(ResourceUri),
    /// The call gets this prompt (`prompts/get`).
    Prompt(PromptName),
    /// The call requests the server's list of resources or of prompts.
    List(Listing),
}

/// A kind of MCP list request that a policy allows or denies: resources or prompts. `tools/list` is not
/// included, because policies do not decide about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listing {
    /// The server's resources and resource templates (`resources/list` and `resources/templates/list`).
    Resources,
    /// The server's prompts (`prompts/list`).
    Prompts,
}

impl Listing {
    /// Returns `resources` or `prompts`. This text is the key of the list in a policy table, and the prefix of
    /// the list's MCP method (`resources/list`).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

impl CallTarget {
    /// Returns the tool's or prompt's name, the resource's URI, or the name of the requested list.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tool(name) => name.as_str(),
            Self::Resource(uri) => uri.as_str(),
            Self::Prompt(name) => name.as_str(),
            Self::List(listing) => listing.as_str(),
        }
    }

    /// Returns the kind of the target as audit records and JSON results name it: `tool`, `resource`, `prompt` or
    /// `list`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::List(_) => "list",
        }
    }

    /// Returns the key of the policy list that can allow this target: `allow` for a tool, `resources` or
    /// `prompts` for other targets.
    pub(crate) fn list_key(&self) -> &'static str {
        match self {
            Self::Tool(_) => "allow",
            Self::Resource(_) => Listing::Resources.as_str(),
            Self::Prompt(_) => Listing::Prompts.as_str(),
            Self::List(listing) => listing.as_str(),
        }
    }

    /// Returns the pattern that allows this target in a policy list: its name or URI, or for a list all of its items.
    pub(crate) fn pattern_text(&self) -> String {
        match self {
            Self::List(_) => "*".to_owned(),
            _ => self.to_string(),
        }
    }

    /// Returns a description of the target and its server for messages, such as `github/create_issue`.
    pub(crate) fn describe(&self, server: &ServerName) -> String {
        match self {
            Self::Tool(name) => format!("{server}/{name}"),
            Self::List(listing) => format!("listing the {} of {server}", listing.as_str()),
            _ => format!("the {} {self} of {server}", self.kind()),
        }
    }
}

/// Writes the target's name or URI, or the name of the requested list: at most [`SHOWN_CHARS_MAX`] characters, in which
/// U+FFFD replaces control and invisible characters.
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
