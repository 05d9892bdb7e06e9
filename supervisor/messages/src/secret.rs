//! A secret of a server, on its way from root to the engine of the system.

use serde::{Deserialize, Serialize};

/// Maximum length of a value in bytes.
/// Bound: upstream servers.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a name in bytes.
/// Bound: upstream servers.
const NAME_BYTES_MAX: usize = 100;

/// The name of a secret, which is that of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// The value of a secret. It is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretValue(String);

/// Why a text is no name or no value of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidSecret {
    Name,
    Length,
}

impl std::fmt::Display for InvalidSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name => write!(
                f,
                "the name of a secret has letters, digits, `-`, `_` and `.`, begins with a letter or a digit, and has at most \
                 {NAME_BYTES_MAX} bytes"
            ),
            Self::Length => write!(f, "a secret has 1 to {VALUE_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for InvalidSecret {}

impl SecretName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SecretValue {
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SecretName {
    type Error = InvalidSecret;

    fn try_from(name: String) -> Result<Self, InvalidSecret> {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&letter);
        let begins = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_valid = begins && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
        if is_valid { Ok(Self(name)) } else { Err(InvalidSecret::Name) }
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

impl TryFrom<String> for SecretValue {
    type Error = InvalidSecret;

    fn try_from(value: String) -> Result<Self, InvalidSecret> {
        let is_valid = (1..=VALUE_BYTES_MAX).contains(&value.len());
        if is_valid { Ok(Self(value)) } else { Err(InvalidSecret::Length) }
    }
}

impl From<SecretValue> for String {
    fn from(value: SecretValue) -> Self {
        value.0
    }
}

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files_in_one_folder() {
        let name = |text: &str| SecretName::try_from(text.to_owned()).is_ok();
        assert!(["github.TOKEN", "a", "0-_.", &"a".repeat(100)].into_iter().all(name));
        for text in ["", ".", "..", ".a", "-a", "a/b", "../a", "a b", "\u{e9}", "a\n", &"a".repeat(101)] {
            assert!(!name(text), "{text}");
        }
    }

    #[test]
    fn values_are_not_printed() {
        let value = |bytes| SecretValue::try_from("x".repeat(bytes));
        assert_eq!(format!("{:?}", value(9)), "Ok(SecretValue)");
        assert!(value(0).is_err() && value(64 * 1024).is_ok() && value(64 * 1024 + 1).is_err());
    }
}
