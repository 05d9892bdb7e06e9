//! Redacts audit records: the values of arguments with certain names, and the configuration's secrets in any text.

use std::borrow::Cow;

use lockhouse_base::secrets::Secrets;

/// Default patterns of argument names whose values are never recorded.
pub const DEFAULT_REDACTED_NAMES: [&str; 14] = [
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

/// What is redacted in audit records: the values of arguments with certain names, and the secrets of the configuration
/// in any text.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    /// Lower-case patterns of argument names whose values are redacted. In a pattern, `*` matches any text.
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

    pub(super) fn redacts_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.names.iter().any(|pattern| matches(pattern, &name))
    }

    /// Replaces each secret in a text with `[redacted NAME]`, where NAME is the name of the secret.
    pub(super) fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.secrets.occur_in(text) { self.secrets.redact(text).into() } else { text.into() }
    }
}

/// Whether an argument name matches a pattern, in which each `*` matches any text. Both are in lower case.
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
    fn names_match_patterns_in_any_case() {
        let redaction = Redaction::new(vec!["*_KEY".into(), "pin".into(), "a*b*c".into(), "cred*".into()]);
        for name in ["api_key", "API_Key", "_key", "Pin", "abc", "axxbxxc", "abbcc", "credentials", "cred"] {
            assert!(redaction.redacts_name(name), "{name}");
        }
        for name in ["key", "keys", "api_keys", "spin", "pins", "ab", "acb", "a cred"] {
            assert!(!redaction.redacts_name(name), "{name}");
        }
    }
}
