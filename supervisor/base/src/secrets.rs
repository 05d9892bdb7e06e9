//! Redacts secrets, which are the values in the configured environment of an upstream server. A server often prints
//! them when it fails, so they are redacted from all of its output before the output is logged or returned.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Minimum length of a value that is redacted, in characters. Shorter values are more often ordinary words or
/// numbers, such as `true` and `8080`.
const SECRET_CHARS_MIN: usize = 6;

/// The values to redact, each with the name of its environment variable.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[(String, String)]>);

impl Secrets {
    pub fn from_environment(environment: &BTreeMap<String, String>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in environment {
            // A secret of several lines is printed line by line; JSON and debug output contain it escaped.
            let escaped = serde_json::to_string(value).unwrap_or_default();
            let forms = value.lines().chain([value.as_str(), escaped.trim_matches('"')]).map(str::trim);
            let forms = forms.filter(|form| form.chars().count() >= SECRET_CHARS_MIN);
            secrets.extend(forms.map(|form| (form.to_owned(), name.clone())));
        }
        Self(secrets.into())
    }

    /// Returns the union of several sets of secrets.
    pub fn union<'a>(several: impl IntoIterator<Item = &'a Self>) -> Self {
        Self(several.into_iter().flat_map(|secrets| secrets.0.iter().cloned()).collect())
    }

    /// Returns the union of both sets of secrets.
    pub fn merged_with(&self, others: &Self) -> Self {
        Self::union([self, others])
    }

    /// Whether the text contains any of the secrets.
    pub fn occur_in(&self, text: &str) -> bool {
        self.0.iter().any(|(secret, _)| text.contains(secret.as_str()))
    }

    /// Returns the text with each secret replaced by `[redacted NAME]`.
    pub fn redact(&self, text: &str) -> String {
        let found = |(secret, name): &'_ (String, String)| {
            let ranges = text.match_indices(secret.as_str()).map(|(at, _)| at..at + secret.len());
            ranges.map(|range| (range, name.clone())).collect::<Vec<_>>()
        };
        let mut ranges: Vec<_> = self.0.iter().flat_map(found).collect();
        ranges.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let (mut redacted, mut end) = (String::with_capacity(text.len()), 0);
        for (range, name) in ranges {
            // Of two overlapping secrets, no part of either may remain.
            if range.start >= end {
                redacted.push_str(&text[end..range.start]);
                redacted.push_str(&format!("[redacted {name}]"));
            }
            end = end.max(range.end);
        }
        redacted.push_str(&text[end..]);
        redacted
    }
}

/// Prints only the names of the environment variables, so that debug output does not contain their values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, name)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_each_form_and_leave_no_piece() {
        let environment = [
            ("PIN", "12345"),
            ("TOKEN", "abcdef\"ghi"),
            ("TAIL", "ghi-klm"),
            ("KEY", "-----BEGIN\nMIIEvq\n"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secrets = Secrets::from_environment(&environment.into());
        for (text, redacted) in [
            ("pin 12345", "pin 12345"),
            ("bad: abcdef\"ghi!", "bad: [redacted TOKEN]!"),
            (r#"{"t":"abcdef\"ghi"}"#, r#"{"t":"[redacted TOKEN]"}"#),
            ("abcdef\"ghi-klm", "[redacted TOKEN]"),
            ("é MIIEvq", "é [redacted KEY]"),
            ("ghi-klmghi-klm", "[redacted TAIL][redacted TAIL]"),
        ] {
            assert_eq!(secrets.redact(text), redacted);
        }
    }
}
