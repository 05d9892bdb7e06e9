//! Identifiers. A value of one of these types has been checked, whoever sent it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest server or tool name, in bytes. MCP recommends that tool names have at most 128 characters.
pub const NAME_BYTES_MAX: usize = 128;

/// The longest resource URI, in bytes.
pub const URI_BYTES_MAX: usize = 8 * 1024;

/// The longest prompt name, in bytes. MCP does not say what characters such names have.
pub const PROMPT_BYTES_MAX: usize = 256;

/// One run of submitted code; 128 bits, of which the supervisor makes a UUID of version 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExecutionId(pub u128);

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        f.write_str(&groups.join("-"))
    }
}

/// One request of a worker; a worker counts them upwards from 1, and an id is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId(pub u32);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} name {name:?} is not valid: use 1 to {NAME_BYTES_MAX} of {allowed}")]
pub struct InvalidName {
    what: &'static str,
    name: String,
    allowed: &'static str,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $what:literal, $extra:literal, $allowed:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// Checks a name.
            ///
            /// # Errors
            /// [`InvalidName`] when it is empty, too long or has a character outside the allowed ones.
            pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
                let name = name.into();
                let allowed = |c: char| c.is_ascii_alphanumeric() || $extra.contains(c);
                if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(allowed) {
                    // A hostile name can be long: what an error repeats of it is bounded.
                    let name = name.chars().take(NAME_BYTES_MAX).collect();
                    return Err(InvalidName { what: $what, name, allowed: $allowed });
                }
                Ok(Self(name))
            }

            /// The name as text.
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
    /// An upstream server, as the configuration names it.
    ServerName, "server", "_-", "A-Z a-z 0-9 _ -"
);
name_type!(
    /// A tool, as its upstream server names it.
    ToolName, "tool", "_-./", "A-Z a-z 0-9 _ - . /"
);

name_type!(
    /// A result that the supervisor keeps. The supervisor alone makes them, and nobody can guess one.
    ResultHandle, "result handle", "_-", "A-Z a-z 0-9 _ -"
);
name_type!(
    /// A saved skill, as its folder is named.
    SkillName, "skill", "_-", "A-Z a-z 0-9 _ -"
);

/// Why a resource URI or a prompt name was refused.
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
            /// Checks a text.
            ///
            /// # Errors
            /// [`InvalidText`] when it is empty, too long or has a control character.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidText> {
                let text = text.into();
                if text.is_empty() || text.len() > $bytes_max || text.chars().any(char::is_control) {
                    return Err(InvalidText { what: $what, bytes_max: $bytes_max });
                }
                Ok(Self(text))
            }

            /// The text itself.
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
    /// A resource, as its upstream server names it.
    ResourceUri, "a resource URI", URI_BYTES_MAX
);
text_type!(
    /// A prompt, as its upstream server names it.
    PromptName, "a prompt name", PROMPT_BYTES_MAX
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_bounds_or_with_control_characters_are_refused() {
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
    fn names_outside_the_alphabet_are_refused() {
        for bad in ["", "a b", "a\n", "é", "a*", &"x".repeat(129)] {
            assert!(ServerName::new(bad).is_err(), "{bad:?}");
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
        assert!(ServerName::new("my-server_2").is_ok());
        assert!(ServerName::new("a.b").is_err());
        assert!(ToolName::new("files/read.v2").is_ok());
    }
}
