//! The state that the parsers of a policy document share: the errors found, the line numbers, and the counts of
//! patterns and rules.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::PATTERNS_MAX;
use crate::diagnostic::DiagnosticCollector;
use crate::printable::printable;
use crate::source::LineIndex;

pub(super) type Key<'t> = Spanned<DeString<'t>>;
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

pub(super) struct DocumentReader<'f, 's> {
    findings: &'f mut DiagnosticCollector<'s>,
    lines: LineIndex,
    patterns: usize,
    pub(super) rules: usize,
}

impl<'f, 's> DocumentReader<'f, 's> {
    pub(super) fn new(findings: &'f mut DiagnosticCollector<'s>, lines: LineIndex) -> Self {
        Self { findings, lines, patterns: 0, rules: 0 }
    }

    pub(super) fn report_error(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: &str,
        help: impl Into<String>,
    ) {
        self.findings.add(span, title, label, help);
    }

    pub(super) fn unknown_key(&mut self, key: &Key<'_>, of: &str, help: &str) {
        let title = format!("unknown key `{}`", key.get_ref());
        self.report_error(key.span(), title, &format!("not a key of {of}"), help);
    }

    /// Reports a value that is none of the words that a key can have.
    pub(super) fn other_word(&mut self, key: &str, value: &Value<'_>, expected: &str, help: &str) {
        let title = match value.get_ref().as_str() {
            Some(other) => format!("`{key}` cannot be \"{}\"", printable(other)),
            None => format!("`{key}` must be a string, not {}", kind_of(value)),
        };
        self.report_error(value.span(), title, expected, help);
    }

    /// Returns the line of the policy document on which a byte range starts, counted from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        self.lines.line_at(span.start)
    }

    /// Counts one pattern or condition value of the policy document, located at the byte range `span`. Returns whether
    /// the count is within [`PATTERNS_MAX`], and reports an error when the count first exceeds this limit.
    pub(super) fn count_pattern(&mut self, span: Range<usize>) -> bool {
        self.patterns += 1;
        if self.patterns == PATTERNS_MAX + 1 {
            let title = format!("the policy has more than {PATTERNS_MAX} patterns");
            let help = "replace names with a common prefix by one pattern, such as \"list_*\"";
            self.report_error(span, title, "this one exceeds the limit", help);
        }
        self.patterns <= PATTERNS_MAX
    }

    pub(super) fn table<'v, 't>(
        &mut self,
        name: &str,
        key: &Key<'_>,
        value: &'v Value<'t>,
        help: impl Into<String>,
    ) -> Option<&'v DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let title = format!("`{name}` must be a table, not {}", kind_of(value));
            self.report_error(key.span(), title, "expected a table", help);
        }
        table
    }

    /// Returns an iterable over the elements of a TOML list, or over the value itself if it is not a list.
    pub(super) fn one_or_more<'v, 't>(value: &'v Value<'t>) -> OneOrMore<'v, 't> {
        match value.get_ref() {
            DeValue::Array(list) => OneOrMore::More(list),
            _ => OneOrMore::One(value),
        }
    }
}

pub(super) enum OneOrMore<'v, 't> {
    One(&'v Value<'t>),
    More(&'v DeArray<'t>),
}

impl<'v, 't> OneOrMore<'v, 't> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &'v Value<'t>> {
        let (one, more) = match self {
            Self::One(value) => (Some(*value), None),
            Self::More(list) => (None, Some(list.iter())),
        };
        one.into_iter().chain(more.into_iter().flatten())
    }
}

/// Returns the type of a TOML value with its article, such as "a string".
pub(super) fn kind_of(value: &Value<'_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns the TOML value as an integer; `None` if it is not an integer or does not fit into an `i64`.
pub(super) fn integer(value: &Value<'_>) -> Option<i64> {
    let integer = value.get_ref().as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
