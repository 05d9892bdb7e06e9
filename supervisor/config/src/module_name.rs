//! Names of modules in the configuration, which programs may not import.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a name, in bytes.
const BYTES_MAX: usize = 200;
/// Modules of Lockhouse, through which programs reach tools and skills. The policy decides about these.
const OWN_MODULES: [&str; 2] = ["mcp_tools", "skills"];

/// The name of a module that programs may not import: of Python, such as `ctypes` or `xml.dom`, or of TypeScript, such as `fs` or
/// `node:fs/promises`. It stands for the modules below it, too.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ModuleName(String);

/// The error for text that is no name of a module, or one of Lockhouse's own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidModule {
    #[error("{0:?} is no name of a module; write a name such as \"ctypes\", \"xml.dom\" or \"fs/promises\"")]
    NoName(String),
    #[error(
        "{0:?} cannot be denied: programs reach tools and skills through it, and the policy decides about these"
    )]
    Own(String),
}

impl ModuleName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ModuleName {
    type Err = InvalidModule;

    fn from_str(text: &str) -> Result<Self, InvalidModule> {
        let plain = text.strip_prefix("node:").unwrap_or(text);
        let is_part = |part: &str| {
            let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
            let is_rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            part.starts_with(is_first) && part.chars().all(is_rest)
        };
        if plain.len() > BYTES_MAX || !plain.split(['.', '/']).all(is_part) {
            return Err(InvalidModule::NoName(text.chars().take(BYTES_MAX).collect()));
        }
        let top = plain.split(['.', '/']).next().unwrap_or_default();
        if OWN_MODULES.contains(&top) {
            return Err(InvalidModule::Own(text.to_owned()));
        }
        Ok(Self(plain.to_owned()))
    }
}

impl TryFrom<String> for ModuleName {
    type Error = InvalidModule;

    fn try_from(text: String) -> Result<Self, InvalidModule> {
        text.parse()
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_modules_are_valid() {
        for (text, name) in [
            ("ctypes", "ctypes"),
            ("xml.dom", "xml.dom"),
            ("_thread", "_thread"),
            ("fs", "fs"),
            ("node:fs/promises", "fs/promises"),
        ] {
            assert_eq!(text.parse::<ModuleName>().map(|name| name.as_str().to_owned()), Ok(name.to_owned()));
        }
        for text in ["", "node:", "a.", ".a", "a..b", "a b", "1a", "a*", "é", "../a", "a,b", "a\n"] {
            assert!(matches!(text.parse::<ModuleName>(), Err(InvalidModule::NoName(_))), "{text:?}");
        }
        for text in ["mcp_tools", "mcp_tools.github", "skills"] {
            assert!(matches!(text.parse::<ModuleName>(), Err(InvalidModule::Own(_))), "{text:?}");
        }
    }
}
