//! Which sandbox a command gives a server that it adds to the configuration.

use lockhouse_policies::printable;
use lockhouse_upstream::ConfinementProfile;
use toml_edit::{InlineTable, Item, Table, Value};

/// The maximum number of characters of the reason why a server has no sandbox.
/// Bound: configuration and policy.
const REASON_CHARS_MAX: usize = 200;

/// The sandbox of a new server that is a process. A server in the configuration has none if its table has no key `sandbox`.
#[derive(Clone, Debug, PartialEq)]
pub enum SandboxChoice {
    Profile {
        profile: ConfinementProfile,
        user_namespaces: bool,
    },
    /// No sandbox: the server has all rights of the account.
    Without(NoSandboxReason),
}

/// Why a server has no sandbox: one printable line, which is kept as a comment in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct NoSandboxReason(String);

/// Why a text is not the reason for a server without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("say in one line of at most {REASON_CHARS_MAX} characters why the server has no sandbox")]
pub struct InvalidReason;

impl NoSandboxReason {
    /// # Errors
    /// [`InvalidReason`] for an empty or long text, and one with control or invisible characters.
    pub fn parse(text: &str) -> Result<Self, InvalidReason> {
        let text = text.trim();
        let is_valid =
            !text.is_empty() && text.chars().count() <= REASON_CHARS_MAX && printable(text) == text;
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidReason) }
    }

    /// The reason for a server that was tried in the sandbox, and works only without.
    pub fn not_started_in_it() -> Self {
        Self("it did not list its tools in it, and did without".to_owned())
    }
}

impl std::fmt::Display for NoSandboxReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl SandboxChoice {
    /// Writes the choice into the table of a server, after its key `command`: the key `sandbox`, or the reason for none as a
    /// comment.
    pub fn write_to(&self, table: &mut Table) {
        match self {
            Self::Profile { profile, user_namespaces } => {
                let mut sandbox = InlineTable::new();
                sandbox.insert("profile", profile.as_str().into());
                if *user_namespaces {
                    sandbox.insert("user_namespaces", true.into());
                }
                table.insert("sandbox", Item::Value(Value::InlineTable(sandbox)));
            }
            Self::Without(reason) => {
                if let Some(mut key) = table.key_mut("command") {
                    key.leaf_decor_mut().set_prefix(format!("# no sandbox: {reason}\n"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_printable_line() {
        let longest = "x".repeat(REASON_CHARS_MAX);
        for (text, is_valid) in [
            ("it drives Docker", true),
            (" trimmed ", true),
            (longest.as_str(), true),
            ("", false),
            ("  ", false),
            ("one\ntwo", false),
            ("a\u{200b}b", false),
            (&format!("{longest}x"), false),
        ] {
            assert_eq!(NoSandboxReason::parse(text).is_ok(), is_valid, "{text:?}");
        }
    }
}
