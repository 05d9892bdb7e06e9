//! Patterns in policies, which match the names of tools and prompts, and the URIs of resources.

use std::fmt;

use lockhouse_protocol::id::{NAME_BYTES_MAX, PROMPT_BYTES_MAX, URI_BYTES_MAX};
use lockhouse_protocol::{PromptName, ResourceUri, ToolName};

use crate::call_target::CallTarget;
use crate::condition::{is_ambiguous, may_become_parent_dir};

/// A pattern in a policy: an exact name, or a prefix of names followed by `*`. `*` alone matches every name. The name
/// of a resource is its URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(PatternForm);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PatternForm {
    Exact(String),
    Prefix(String),
}

/// The kind of names that a pattern matches. The kind depends on the policy list that contains the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternKind {
    /// The pattern matches names of tools, as in the lists `allow` and `ask`.
    Tools,
    /// The pattern matches URIs of resources, as in the list `resources`.
    Resources,
    /// The pattern matches names of prompts, as in the list `prompts`.
    Prompts,
    /// The pattern is in the list `deny`: it matches URIs of resources if it contains a `:`, otherwise names of
    /// tools.
    Anything,
}

/// Why a text is not a valid pattern of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// The pattern is empty.
    #[error("a pattern must not be empty")]
    Empty,
    /// The pattern has a `*` before its end.
    #[error("a `*` is allowed only at the end of a pattern")]
    StarBeforeEnd,
    /// The pattern is for tool names, and contains this character, which tool names cannot have.
    #[error("tool names cannot contain the character {0:?}")]
    Character(char),
    /// The pattern is for URIs or prompt names, and contains this control character.
    #[error("a pattern must not contain the control character {0:?}")]
    Control(char),
    /// The pattern is longer than any name that it could match. The number is the maximum length in bytes, without
    /// the `*`.
    #[error("a pattern has at most {0} characters before its `*`")]
    TooLong(usize),
}

impl InvalidPattern {
    /// Returns a hint about what to write instead of the invalid pattern.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Empty => r#"write a name, or remove the entry; "*" matches every name of the server"#,
            Self::StarBeforeEnd => r#"list the names, or a prefix of them such as "list_*""#,
            Self::Character(_) => "use letters, digits, _ - . / and spaces, and `*` at the end",
            Self::Control(_) => "remove the character: no valid name contains it",
            Self::TooLong(_) => "a longer pattern can match nothing: use the name as its server spells it",
        }
    }
}

impl Pattern {
    /// Parses a pattern that matches names of the kind `subject`.
    ///
    /// # Errors
    /// [`InvalidPattern`] when the text is empty, has a `*` before its end, or could not match any name.
    pub fn parse(subject: PatternKind, text: &str) -> Result<Self, InvalidPattern> {
        let (stem, starred) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
        if text.is_empty() {
            return Err(InvalidPattern::Empty);
        }
        if stem.contains('*') {
            return Err(InvalidPattern::StarBeforeEnd);
        }
        let is_uri = matches!(subject, PatternKind::Resources)
            || subject == PatternKind::Anything && stem.contains(':');
        // The constructors of the names define which characters are valid.
        let (bytes_max, bad) = if is_uri {
            let bad = stem.chars().find(|c| ResourceUri::new(*c).is_err());
            (URI_BYTES_MAX, bad.map(InvalidPattern::Control))
        } else if subject == PatternKind::Prompts {
            let bad = stem.chars().find(|c| PromptName::new(*c).is_err());
            (PROMPT_BYTES_MAX, bad.map(InvalidPattern::Control))
        } else {
            let bad = stem.chars().find(|c| !ToolName::can_have(*c));
            (NAME_BYTES_MAX, bad.map(InvalidPattern::Character))
        };
        if let Some(bad) = bad {
            return Err(bad);
        }
        if stem.len() > bytes_max {
            return Err(InvalidPattern::TooLong(bytes_max));
        }
        let stem = stem.to_owned();
        Ok(Self(if starred { PatternForm::Prefix(stem) } else { PatternForm::Exact(stem) }))
    }

    /// Whether the pattern, as an entry of an allowlist, allows the target of a call. A URI with `..` can lead out of
    /// the folder with which it starts, so no pattern that ends in `*` allows such a URI.
    #[must_use]
    pub fn permits(&self, item: &CallTarget) -> bool {
        let may_escape_folder = matches!(item, CallTarget::Resource(uri) if may_escape_folder(uri.as_str()));
        self.matches(item.as_str()) && !(may_escape_folder && matches!(self.0, PatternForm::Prefix(_)))
    }

    /// Returns the pattern without the `*` at its end.
    pub(crate) fn stem(&self) -> &str {
        match &self.0 {
            PatternForm::Exact(stem) | PatternForm::Prefix(stem) => stem,
        }
    }

    /// Whether the pattern ends in `*`.
    pub(crate) fn is_starred(&self) -> bool {
        matches!(self.0, PatternForm::Prefix(_))
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        match &self.0 {
            PatternForm::Exact(name) => name == text,
            PatternForm::Prefix(prefix) => text.starts_with(prefix.as_str()),
        }
    }

    /// Whether the pattern matches every name that starts with `beginning`.
    pub(crate) fn covers_prefix(&self, beginning: &str) -> bool {
        matches!(&self.0, PatternForm::Prefix(prefix) if beginning.starts_with(prefix.as_str()))
    }

    /// Whether the pattern matches some name that starts with `beginning`.
    pub(crate) fn overlaps_prefix(&self, beginning: &str) -> bool {
        match &self.0 {
            PatternForm::Exact(name) => name.starts_with(beginning),
            PatternForm::Prefix(prefix) => {
                prefix.starts_with(beginning) || beginning.starts_with(prefix.as_str())
            }
        }
    }

    /// Whether the pattern matches every name that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (PatternForm::Exact(name), PatternForm::Exact(other)) => name == other,
            (PatternForm::Exact(_), PatternForm::Prefix(_)) => false,
            (PatternForm::Prefix(prefix), PatternForm::Exact(other) | PatternForm::Prefix(other)) => {
                other.starts_with(prefix.as_str())
            }
        }
    }
}

/// Whether a server could resolve the URI to something outside of the folder with which it starts: the URI has a
/// segment `..`, or a segment that a program could turn into `..`.
pub(crate) fn may_escape_folder(uri: &str) -> bool {
    let plain = canonical_uri(uri);
    plain
        .split(['/', '?', '#', ':', ';', '=', '&'])
        .any(|segment| segment == ".." || may_become_parent_dir(segment))
        || is_ambiguous(&plain)
}

/// Returns one canonical spelling for all URIs that a server may treat as the same URI: with all percent escapes
/// decoded, in lower case, with `/` for `\`, and without empty or `.` segments.
pub(crate) fn canonical_uri(uri: &str) -> String {
    let mut plain = uri.to_owned();
    // Each round makes the text shorter, or is the last.
    loop {
        let next = percent_decode_once(&plain);
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

/// Decodes each percent escape of the text once: `%2e` becomes `.`, and `%252e` becomes `%2e`.
fn percent_decode_once(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (bytes, mut percent_decode_once, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                percent_decode_once.extend(u8::try_from(high * 16 + low));
                at += 3;
            }
            _ => {
                percent_decode_once.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&percent_decode_once).into_owned()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            PatternForm::Exact(name) => f.write_str(name),
            PatternForm::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_leaves_its_folder_is_detected_in_every_spelling() {
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
            assert!(may_escape_folder(uri), "{uri}");
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
            assert!(!may_escape_folder(uri), "{uri}");
        }
    }
}
