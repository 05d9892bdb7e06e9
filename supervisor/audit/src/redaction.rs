//! What is never kept: the values of arguments with certain names, and the secrets of the configuration.

use std::borrow::Cow;

use lockhouse_base::secrets::Secrets;

/// Names of arguments whose values are not kept, where nothing else is configured.
pub const REDACTED: [&str; 14] = [
    "password",
    "*_password",
    "passwd",
    "passphrase",
    "pin",
    "secret",
    "*_secret",
    "token",
    "*_token",
    "*_key",
    "apikey",
    "authorization",
    "cookie",
    "credential*",
];

/// What to leave out.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    /// In lower case, with `*` for anything.
    names: Vec<String>,
    secrets: Secrets,
}

impl Redaction {
    pub(super) fn new(names: Vec<String>) -> Self {
        let names = names.iter().map(|name| name.to_lowercase()).collect();
        Self { names, secrets: Secrets::default() }
    }

    pub(super) fn set_secrets(&mut self, secrets: Secrets) {
        self.secrets = secrets;
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().any(|pattern| matches(pattern, &name))
    }

    /// The text with `[redacted NAME]` for each secret.
    pub(super) fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.secrets.are_in(text) { self.secrets.redact(text).into() } else { text.into() }
    }
}

/// Whether a name is as the pattern says, each `*` standing for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_by_any_pattern() {
        let redaction = Redaction::new(vec!["*_KEY".into(), "pin".into(), "a*b*c".into(), "cred*".into()]);
        for name in ["api_key", "API_Key", "_key", "Pin", "abc", "axxbxxc", "abbcc", "credentials", "cred"] {
            assert!(redaction.has_name(name), "{name}");
        }
        for name in ["key", "keys", "api_keys", "spin", "pins", "ab", "acb", "a cred"] {
            assert!(!redaction.has_name(name), "{name}");
        }
    }
}
