//! Ids of executions and requests, and names that are validated when they are constructed or decoded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Maximum length of the name of an upstream server, a tool or a saved skill, and of a result handle, in bytes. MCP
/// recommends that tool names have at most 128 characters.
pub const NAME_BYTES_MAX: usize = 128;

/// Maximum length of a resource URI, in bytes.
/// Bound: calls and arguments.
pub const URI_BYTES_MAX: usize = 8 * 1024;

/// Maximum length of a prompt name, in bytes. MCP does not restrict the characters of prompt names.
/// Bound: calls and arguments.
pub const PROMPT_BYTES_MAX: usize = 256;

/// The id of an execution: 128 bits, which the supervisor generates as a UUID of version 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExecutionId(pub u128);

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Several times faster than the formatting of numbers, and each run formats its id often.
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let mut place = 0;
        for (index, byte) in self.0.to_be_bytes().into_iter().enumerate() {
            // A hyphen stays before these bytes.
            place += usize::from(matches!(index, 4 | 6 | 8 | 10));
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 15)];
            place += 2;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// The id of a request that a worker sends to the supervisor. A worker numbers its requests upwards from 1 and never
/// reuses an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u32);

/// The error for a name that is not valid: it is empty, too long, or contains a character that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} name {name:?} is not valid: use 1 to {NAME_BYTES_MAX} of {allowed}")]
pub struct InvalidName {
    what: &'static str,
    name: String,
    allowed: &'static str,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $what:literal, $is_valid:expr, $allowed:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Creates the name after validating it.
            ///
            /// # Errors
            /// [`InvalidName`] if the name is empty, too long or contains a character that is not allowed.
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
                let name = name.into();
                let is_valid: fn(&str) -> bool = $is_valid;
                if name.is_empty() || name.len() > NAME_BYTES_MAX || !is_valid(&name) {
                    // A hostile name can be long, so the error repeats a bounded part of it.
                    let name = name.chars().take(NAME_BYTES_MAX).collect();
                    return Err(InvalidName { what: $what, name, allowed: $allowed });
                }
                Ok(Self(name))
            }

            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidName;
            fn try_from(name: String) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// The name of an upstream server, as in the configuration.
    ServerName, "server", is_plain, "A-Z a-z 0-9 _ -"
);
name_type!(
    /// The name of a tool, as its upstream server defines it.
    ToolName, "tool", is_tool_name, "letters, digits, _ - . / and single spaces between them"
);

impl ToolName {
    /// Whether names of tools can have this character.
    #[must_use]
    pub fn can_have(c: char) -> bool {
        is_visible_letter(c) || "_-./ ".contains(c)
    }
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// MCP recommends A-Z, a-z, 0-9, `_`, `-`, `.` and `/`; servers also use letters of other languages, and spaces. Names
/// that people cannot tell apart by their spaces are not valid.
fn is_tool_name(name: &str) -> bool {
    let has_odd_spaces = name.starts_with(' ') || name.ends_with(' ') || name.contains("  ");
    name.chars().all(ToolName::can_have) && !has_odd_spaces
}

/// Whether a character is a letter or digit of any language that is visible by itself.
fn is_visible_letter(c: char) -> bool {
    // Letters of Korean that stand for an absent one.
    const FILLERS: [char; 4] = ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}'];
    c.is_alphanumeric() && !FILLERS.contains(&c)
}

name_type!(
    /// The handle of a stored result or of a background run. The supervisor generates handles that cannot be guessed.
    ResultHandle, "result handle", is_plain, "A-Z a-z 0-9 _ -"
);
name_type!(
    /// The name of a saved skill, which is also the name of its folder.
    SkillName, "skill", is_plain, "A-Z a-z 0-9 _ -"
);

/// The error for a resource URI or a prompt name that is not valid: it is empty, too long, or contains a control
/// character.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is not valid: use 1 to {bytes_max} bytes without control characters")]
pub struct InvalidText {
    what: &'static str,
    bytes_max: usize,
}

macro_rules! text_type {
    ($(#[$doc:meta])* $type:ident, $what:literal, $bytes_max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Creates the URI or prompt name after validating its text.
            ///
            /// # Errors
            /// [`InvalidText`] if the text is empty, too long or contains a control character.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidText> {
                let text = text.into();
                if text.is_empty() || text.len() > $bytes_max || text.chars().any(char::is_control) {
                    return Err(InvalidText { what: $what, bytes_max: $bytes_max });
                }
                Ok(Self(text))
            }

            /// Returns the URI or prompt name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidText;
            fn try_from(text: String) -> Result<Self, InvalidText> {
                Self::new(text)
            }
        }

        impl From<$type> for String {
            fn from(text: $type) -> String {
                text.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_type!(
    /// The URI of a resource, as its upstream server defines it.
    ResourceUri, "a resource URI", URI_BYTES_MAX
);
text_type!(
    /// The name of a prompt, as its upstream server defines it.
    PromptName, "a prompt name", PROMPT_BYTES_MAX
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_too_long_or_have_control_characters_are_rejected() {
        for bad in ["", "a\n", "\u{1b}[2J", &"x".repeat(URI_BYTES_MAX + 1)] {
            assert!(ResourceUri::new(bad).is_err(), "{bad:?}");
            assert!(PromptName::new(bad).is_err(), "{bad:?}");
        }
        assert!(ResourceUri::new("file:///a b/é?x#y").is_ok());
        assert!(PromptName::new("Review: this").is_ok());
        assert!(PromptName::new("x".repeat(PROMPT_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn an_execution_id_reads_as_a_uuid() {
        assert_eq!(ExecutionId(0x0199_1234).to_string(), "00000000-0000-0000-0000-000001991234");
    }

    #[test]
    fn names_with_other_characters_are_rejected() {
        for bad in
            ["", "a  b", " a", "a ", "a\n", "a\u{200b}", "\u{3164}", "e\u{301}", "a*", &"x".repeat(129)]
        {
            assert!(ServerName::new(bad).is_err(), "{bad:?}");
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
        for other in ["a b", "é", "найти"] {
            assert!(ServerName::new(other).is_err(), "{other:?}");
            assert!(ToolName::new(other).is_ok(), "{other:?}");
        }
        assert!(ServerName::new("my-server_2").is_ok());
        assert!(ServerName::new("a.b").is_err());
        assert!(ToolName::new("files/read.v2").is_ok());
    }
}
