//! Redacts secrets, which are the values in the configured environment of an upstream server. A server often prints
//! them when it fails, so they are redacted from all of its output before the output is logged or returned. Values in an
//! encoding that programs commonly use are found too; a server that wants to hide a value can use another one.

mod forms;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use forms::{Form, forms};

/// Minimum length of a value that is redacted, in characters. Shorter values are more often ordinary words or
/// numbers, such as `true` and `8080`.
const SECRET_CHARS_MIN: usize = 6;
/// Number of bytes at the beginning of each form that the automaton finds; the rest is compared. This bounds its memory.
const BEGINNING_BYTES: usize = 24;

/// The values to redact, each with the name of its environment variable. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Patterns>);

#[derive(Default)]
struct Patterns {
    /// The forms of each value, with its name.
    forms: Vec<(Form, String)>,
    /// Finds the beginnings of the forms, in their order. `None` if there are none, or it cannot be built.
    beginnings: Option<AhoCorasick>,
}

impl Secrets {
    pub fn from_environment(environment: &BTreeMap<String, String>) -> Self {
        let mut found = BTreeSet::new();
        for (name, value) in environment {
            // A secret of several lines is also printed line by line.
            let texts = value.lines().chain([value.as_str()]).map(str::trim);
            let texts = texts.filter(|text| text.chars().count() >= SECRET_CHARS_MIN);
            found.extend(texts.flat_map(forms).map(|form| (form, name.clone())));
        }
        Self::with(found)
    }

    fn with(forms: BTreeSet<(Form, String)>) -> Self {
        let forms: Vec<_> = forms.into_iter().collect();
        let beginning = |(form, _): &(Form, String)| {
            form.text.as_bytes()[..form.text.len().min(BEGINNING_BYTES)].to_vec()
        };
        let builder = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).clone();
        let beginnings =
            (!forms.is_empty()).then(|| builder.build(forms.iter().map(beginning)).ok()).flatten();
        Self(Patterns { forms, beginnings }.into())
    }

    /// Returns the union of several sets of secrets.
    pub fn union<'a>(several: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::with(several.into_iter().flat_map(|secrets| secrets.0.forms.iter().cloned()).collect())
    }

    /// Returns the union of both sets of secrets.
    pub fn merged_with(&self, others: &Self) -> Self {
        Self::union([self, others])
    }

    /// Whether the text contains any of the secrets.
    pub fn occur_in(&self, text: &str) -> bool {
        self.0.find(text).next().is_some()
    }

    /// Returns the text with each secret replaced by `[redacted NAME]`.
    pub fn redact(&self, text: &str) -> String {
        let mut ranges: Vec<_> = self.0.find(text).collect();
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

impl Patterns {
    /// Finds all forms of the values in a text, with the names of the values.
    fn find<'t>(&'t self, text: &'t str) -> Box<dyn Iterator<Item = (Range<usize>, &'t str)> + 't> {
        let found = |(form, name): &'t (Form, String), start| (range_in(text, form, start), name.as_str());
        match &self.beginnings {
            Some(beginnings) => {
                Box::new(beginnings.find_overlapping_iter(text).filter_map(move |beginning| {
                    let form = self.forms.get(beginning.pattern().as_usize())?;
                    let is_whole = text.as_bytes()[beginning.start()..].starts_with(form.0.text.as_bytes());
                    is_whole.then(|| found(form, beginning.start()))
                }))
            }
            None => Box::new(self.forms.iter().flat_map(move |form| {
                text.match_indices(form.0.text.as_str()).map(move |(start, _)| found(form, start))
            })),
        }
    }
}

/// Returns the range of a form that begins at `start`, with the characters of base64 around it that have a part of the
/// value.
fn range_in(text: &str, form: &Form, start: usize) -> Range<usize> {
    let is_base64 = |position: usize| {
        let byte = text.as_bytes().get(position);
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
    };
    let end = start + form.text.len();
    let begins_before = form.begins_within && start > 0 && is_base64(start - 1);
    let ends_after = form.ends_within && is_base64(end);
    start - usize::from(begins_before)..end + usize::from(ends_after)
}

/// Prints only the names of the environment variables, so that debug output does not contain their values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: BTreeSet<&String> = self.0.forms.iter().map(|(_, name)| name).collect();
        f.debug_list().entries(names).finish()
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

    /// The texts are those that Python prints (`json`, `repr`, `ascii`, `urllib.parse`) and Node.js (`encodeURI`,
    /// `encodeURIComponent`, `URLSearchParams`), two further ways to escape JSON, JSON within JSON, and HTML.
    #[test]
    fn encodings_of_a_value_are_found() {
        let environment = [("TOKEN", "s3cr/t+\u{e9} &'\"\\x"), ("KEY", "sk-0123456789")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secrets = Secrets::from_environment(&environment.into());
        for text in [
            r#"s3cr/t+é &'"\x"#,
            r#"s3cr/t+é &'\"\\x"#,
            r#"s3cr/t+\u00e9 &'\"\\x"#,
            r#"s3cr\/t+é &'\"\\x"#,
            r#"s3cr/t+é \u0026'\"\\x"#,
            r#"s3cr/t+é &\'"\\x"#,
            r#"s3cr/t+\xe9 &\'"\\x"#,
            r#"s3cr/t+\xc3\xa9 &\'"\\x"#,
            "s3cr/t%2B%C3%A9%20%26%27%22%5Cx",
            "s3cr%2Ft%2B%C3%A9%20%26%27%22%5Cx",
            "s3cr%2ft%2b%c3%a9%20%26%27%22%5cx",
            "s3cr%2Ft%2B%C3%A9+%26%27%22%5Cx",
            "s3cr%2Ft%2B%C3%A9%20%26'%22%5Cx",
            "s3cr/t+%C3%A9%20&'%22%5Cx",
            r#"s3cr/t+é &'\\\"\\\\x"#,
            r#"s3cr/t+\\u00e9 &'\\\"\\\\x"#,
            r#"s3cr/t+é &amp;&#x27;&quot;\x"#,
            r#"s3cr/t+é &amp;&#39;&#34;\x"#,
            "733363722f742bc3a9202627225c78",
            "733363722F742BC3A9202627225C78",
        ] {
            assert_eq!(secrets.redact(&format!("a {text} b")), "a [redacted TOKEN] b", "{text}");
        }
        assert_eq!(secrets.redact("%73%6B%2D%30%31%32%33%34%35%36%37%38%39"), "[redacted KEY]");
        assert_eq!(secrets.redact("sk-012345678 and s3cr/t"), "sk-012345678 and s3cr/t", "control");
    }

    #[test]
    fn a_value_is_found_in_base64_at_every_position() {
        let environment = [("KEY".to_owned(), "sk-01234\u{7f}\u{7f}89".to_owned())];
        let secrets = Secrets::from_environment(&environment.into());
        for (before, after) in (0..7).flat_map(|before| (0..4).map(move |after| (before, after))) {
            let text = format!("{}sk-01234\u{7f}\u{7f}89{}", "x".repeat(before), "y".repeat(after));
            for alphabet in [data_encoding::BASE64, data_encoding::BASE64URL] {
                let encoded = alphabet.encode(text.as_bytes());
                let redacted = secrets.redact(&format!("a {encoded} b"));
                assert_eq!(redacted.matches("[redacted KEY]").count(), 1, "{before} {after} {redacted}");
                // What is left are whole characters of the text around the value.
                let left = redacted.len() - "a [redacted KEY] b".len();
                assert!(left <= (before + after).div_ceil(3) * 4 + 4, "{redacted}");
                let kept = redacted.trim_start_matches("a ").split('[').next().unwrap_or_default().len();
                assert!(kept * 6 <= before * 8, "{redacted}");
            }
        }
    }

    #[test]
    fn a_long_value_is_compared_to_its_end() {
        let long = "0123456789".repeat(40);
        let environment = [("LONG".to_owned(), long.clone())];
        let secrets = Secrets::from_environment(&environment.into());
        let union = Secrets::union([&secrets, &Secrets::default()]);
        assert_eq!(union.redact(&format!("<{long}>")), "<[redacted LONG]>");
        assert!(!union.occur_in(&long[..399]));
        assert!(!Secrets::default().occur_in(&long));
        assert_eq!(format!("{union:?}"), "[\"LONG\"]");
    }
}
