//! Which tools, resources or prompts a line of a list means.

use std::fmt;

use lockhouse_protocol::id::{NAME_BYTES_MAX, PROMPT_BYTES_MAX, URI_BYTES_MAX};
use lockhouse_protocol::{PromptName, ResourceUri, ToolName};

use crate::condition::{becomes_dots, is_ambiguous};
use crate::item::Item;

/// An exact name, or a beginning of names followed by `*`; a lone `*` means every one. A resource's name is its URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Exact(String),
    Prefix(String),
}

/// What the patterns of a list are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `allow`: names of tools.
    Tools,
    /// `resources`: URIs.
    Resources,
    /// `prompts`: names of prompts.
    Prompts,
    /// `deny`: any of them. What has a `:` is read as a URI, and anything else as the name of a tool.
    Anything,
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
    /// It has a control character.
    #[error("a pattern must not have the control character {0:?}")]
    Control(char),
    /// It is longer than any name of its kind.
    #[error("a pattern has at most {0} characters before its `*`")]
    TooLong(usize),
}

impl InvalidPattern {
    /// What to write in its place.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Empty => r#"write a name, or remove the entry; "*" means every one of the server"#,
            Self::StarBeforeEnd => r#"list them by name, or by how their names begin, such as "list_*""#,
            Self::Character(_) => "use A-Z a-z 0-9 _ - . / and, at the end, `*`",
            Self::Control(_) => "remove it: nothing that has one is ever read",
            Self::TooLong(_) => "it can match nothing: use the name as its server spells it",
        }
    }
}

impl Pattern {
    /// Reads a pattern of a list about `subject`.
    ///
    /// # Errors
    /// [`InvalidPattern`] when it is empty, has a `*` before its end or could not match any name.
    pub fn parse(subject: Subject, text: &str) -> Result<Self, InvalidPattern> {
        let (stem, starred) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
        if text.is_empty() {
            return Err(InvalidPattern::Empty);
        }
        if stem.contains('*') {
            return Err(InvalidPattern::StarBeforeEnd);
        }
        let is_uri =
            matches!(subject, Subject::Resources) || subject == Subject::Anything && stem.contains(':');
        // The alphabets are those of the names, asked rather than repeated.
        let (bytes_max, bad) = if is_uri {
            let bad = stem.chars().find(|c| ResourceUri::new(*c).is_err());
            (URI_BYTES_MAX, bad.map(InvalidPattern::Control))
        } else if subject == Subject::Prompts {
            let bad = stem.chars().find(|c| PromptName::new(*c).is_err());
            (PROMPT_BYTES_MAX, bad.map(InvalidPattern::Control))
        } else {
            let bad = stem.chars().find(|c| ToolName::new(*c).is_err());
            (NAME_BYTES_MAX, bad.map(InvalidPattern::Character))
        };
        if let Some(bad) = bad {
            return Err(bad);
        }
        if stem.len() > bytes_max {
            return Err(InvalidPattern::TooLong(bytes_max));
        }
        let stem = stem.to_owned();
        Ok(Self(if starred { Kind::Prefix(stem) } else { Kind::Exact(stem) }))
    }

    /// Whether the pattern permits this one, in a list that permits. A URI that climbs by `..` is somewhere else than its
    /// beginning says, so no beginning permits it.
    #[must_use]
    pub fn permits(&self, item: &Item) -> bool {
        let climbs = matches!(item, Item::Resource(uri) if climbs(uri.as_str()));
        self.matches(item.as_str()) && !(climbs && matches!(self.0, Kind::Prefix(_)))
    }

    /// The name, or the beginning of names.
    pub(crate) fn stem(&self) -> &str {
        match &self.0 {
            Kind::Exact(stem) | Kind::Prefix(stem) => stem,
        }
    }

    /// Whether it ends in `*`.
    pub(crate) fn is_starred(&self) -> bool {
        matches!(self.0, Kind::Prefix(_))
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        match &self.0 {
            Kind::Exact(name) => name == text,
            Kind::Prefix(prefix) => text.starts_with(prefix.as_str()),
        }
    }

    /// Whether this pattern means everything that begins so.
    pub(crate) fn has_all_of(&self, beginning: &str) -> bool {
        matches!(&self.0, Kind::Prefix(prefix) if beginning.starts_with(prefix.as_str()))
    }

    /// Whether this pattern means anything that begins so.
    pub(crate) fn has_any_of(&self, beginning: &str) -> bool {
        match &self.0 {
            Kind::Exact(name) => name.starts_with(beginning),
            Kind::Prefix(prefix) => prefix.starts_with(beginning) || beginning.starts_with(prefix.as_str()),
        }
    }

    /// Whether this pattern means everything that the other one means.
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

/// Whether a server could take a URI for one outside of the folder that it seems to be in: a segment `..`, or what could
/// become one.
pub(crate) fn climbs(uri: &str) -> bool {
    let plain = plain(uri);
    plain.split(['/', '?', '#', ':', ';', '=', '&']).any(|segment| segment == ".." || becomes_dots(segment))
        || is_ambiguous(&plain)
}

/// The one spelling of all those of a URI that a server may take for the same: nothing encoded, small letters, one slash.
pub(crate) fn plain(uri: &str) -> String {
    let mut plain = uri.to_owned();
    // Each round makes it shorter, or is the last.
    loop {
        let next = decoded(&plain);
        if next.len() == plain.len() {
            break;
        }
        plain = next;
    }
    let mut segments: Vec<String> = Vec::new();
    for segment in plain.to_lowercase().split(['/', '\\']) {
        if !matches!(segment, "" | ".") || segments.is_empty() {
            segments.push(segment.to_owned());
        }
    }
    let end = if plain.ends_with(['/', '\\']) { "/" } else { "" };
    segments.join("/") + end
}

/// With one round of percent-encoding undone.
fn decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.extend(u8::try_from(high * 16 + low));
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(name) => f.write_str(name),
            Kind::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_climbs_is_known_in_every_dress() {
        for uri in [
            "file:///docs/../etc/passwd",
            "file:///docs/%2e%2E/etc",
            "file:///docs/%252e%252e%252fetc",
            "file:///docs\\..\\etc",
            "file:///docs%2f..",
            "file:..",
            "x://y?path=../z",
            "file:///docs/․․/etc",
            "file:///docs/..／etc",
            "file:///docs/.\u{200b}./etc",
            "file:///docs/.é./etc",
            "file:///docs/%u002e%u002e/etc",
        ] {
            assert!(climbs(uri), "{uri}");
        }
        for uri in [
            "file:///docs/a..b",
            "file:///docs/...",
            "file:///docs/.hidden",
            "file:///docs/é/日本",
            "x:%25",
            "x:%%%",
            "x:%ff%fe",
        ] {
            assert!(!climbs(uri), "{uri}");
        }
    }
}
