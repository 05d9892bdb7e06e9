//! Names of sessions and their validation.

use std::fmt;

use lockhouse_messages::Owner;

/// Maximum length of the name of a session, in characters.
/// Bound: workers and programs.
const CHARS_MAX: usize = 64;

/// A session name, chosen by the AI client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionName(String);

/// The error for a text that is not a valid session name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session name must have 1 to {CHARS_MAX} letters, digits, '-', '_' or '.'")]
pub struct InvalidSessionName;

impl SessionName {
    /// Validates a session name.
    ///
    /// # Errors
    /// [`InvalidSessionName`] describes the permitted characters and the maximum length.
    pub fn new(name: &str) -> Result<Self, InvalidSessionName> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match (1..=CHARS_MAX).contains(&name.len()) && name.bytes().all(fits) {
            true => Ok(Self(name.to_owned())),
            false => Err(InvalidSessionName),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The key of a session in the registry: its owner and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    pub owner: Owner,
    pub name: SessionName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_valid() {
        let long = "x".repeat(CHARS_MAX);
        for name in ["a", "Report-2_final.v1", ".", &long] {
            assert_eq!(SessionName::new(name).expect("a name").as_str(), name);
        }
        for name in ["", " ", "a b", "a/b", "é", "a\n", "a\0", "\u{202e}", &format!("{long}x")] {
            assert!(SessionName::new(name).is_err(), "{name:?}");
        }
    }
}
