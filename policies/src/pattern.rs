//! Which tools a line of a list means.

use std::fmt;

use lockhouse_protocol::ToolName;
use lockhouse_protocol::id::NAME_BYTES_MAX;

/// An exact tool name, or a beginning of names followed by `*`; a lone `*` means every tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Exact(String),
    Prefix(String),
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// It has no characters.
    #[error("a pattern must not be empty")]
    Empty,
    /// It has a `*` before its end.
    #[error("a `*` may stand only at the end of a pattern")]
    StarBeforeEnd,
    /// It has a character that no tool name has.
    #[error("no tool name has the character {0:?}")]
    Character(char),
    /// It is longer than any tool name.
    #[error("a pattern has at most {NAME_BYTES_MAX} characters before its `*`")]
    TooLong,
}

impl InvalidPattern {
    /// What to write in its place.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Empty => {
                r#"write the name of a tool, or remove the entry; "*" means every tool of the server"#
            }
            Self::StarBeforeEnd => r#"list the tools by name, or by how their names begin, such as "list_*""#,
            Self::Character(_) => "use A-Z a-z 0-9 _ - . / and, at the end, `*`",
            Self::TooLong => "it can match no tool: use the tool's name as its server spells it",
        }
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`InvalidPattern`] when it is empty, has a `*` before its end or could not match any tool name.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        let (stem, starred) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
        if text.is_empty() {
            return Err(InvalidPattern::Empty);
        }
        if stem.contains('*') {
            return Err(InvalidPattern::StarBeforeEnd);
        }
        // The alphabet is the one of ToolName, asked rather than repeated.
        if let Some(bad) = stem.chars().find(|c| ToolName::new(*c).is_err()) {
            return Err(InvalidPattern::Character(bad));
        }
        if stem.len() > NAME_BYTES_MAX {
            return Err(InvalidPattern::TooLong);
        }
        let stem = stem.to_owned();
        Ok(Self(if starred { Kind::Prefix(stem) } else { Kind::Exact(stem) }))
    }

    /// Whether the pattern means this tool.
    #[must_use]
    pub fn matches(&self, tool: &ToolName) -> bool {
        match &self.0 {
            Kind::Exact(name) => name == tool.as_str(),
            Kind::Prefix(prefix) => tool.as_str().starts_with(prefix.as_str()),
        }
    }

    /// Whether this pattern means every tool that the other one means.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Exact(name), Kind::Exact(other)) => name == other,
            (Kind::Exact(_), Kind::Prefix(_)) => false,
            (Kind::Prefix(prefix), Kind::Exact(other) | Kind::Prefix(other)) => {
                other.starts_with(prefix.as_str())
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(name) => f.write_str(name),
            Kind::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}
