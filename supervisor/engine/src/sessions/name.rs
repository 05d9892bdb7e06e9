//! What a session is known by.

use std::fmt;

use lockhouse_base::principal::Owner;

const CHARS_MAX: usize = 64;

/// A name that its owner chose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionName(String);

/// A text is no name of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a session has 1 to {CHARS_MAX} letters, digits, '-', '_' and '.'")]
pub struct InvalidSessionName;

impl SessionName {
    /// # Errors
    /// What a name is made of.
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

/// Whose session, and which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    pub owner: Owner,
    pub name: SessionName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        let long = "x".repeat(CHARS_MAX);
        for name in ["a", "Report-2_final.v1", ".", &long] {
            assert_eq!(SessionName::new(name).expect("a name").as_str(), name);
        }
        for name in ["", " ", "a b", "a/b", "é", "a\n", "a\0", "\u{202e}", &format!("{long}x")] {
            assert!(SessionName::new(name).is_err(), "{name:?}");
        }
    }
}
