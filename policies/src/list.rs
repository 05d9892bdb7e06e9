//! The lists of a server's table: patterns, each with the line it stands on.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use crate::diagnostic::Findings;
use crate::item::Item;
use crate::pattern::{Pattern, Subject};
use crate::policy::PATTERNS_MAX;
use crate::source::Lines;

/// A list of patterns.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The line of the list's key.
    pub(crate) line: usize,
    rules: Vec<Rule>,
}

/// A pattern at its place.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) pattern: Pattern,
    pub(crate) line: usize,
    /// Where the pattern starts and ends in the text.
    span: std::ops::Range<usize>,
}

impl List {
    /// The first pattern that denies it.
    pub(crate) fn first_denial(&self, item: &Item) -> Option<&Rule> {
        self.find(|pattern| pattern.denies(item))
    }

    /// The first pattern that permits it.
    pub(crate) fn first_permit(&self, item: &Item) -> Option<&Rule> {
        self.find(|pattern| pattern.permits(item))
    }

    /// The first pattern that is so.
    pub(crate) fn find(&self, is_so: impl Fn(&Pattern) -> bool) -> Option<&Rule> {
        self.rules.iter().find(|rule| is_so(&rule.pattern))
    }
}

/// What reading the lists of a document shares.
pub(crate) struct ListReader<'f, 's> {
    pub(crate) findings: &'f mut Findings<'s>,
    pub(crate) lines: &'f Lines,
    /// How many patterns the document has had.
    pub(crate) patterns: usize,
}

impl ListReader<'_, '_> {
    /// Reads the list below a key; whatever is wrong in it goes to the findings, and the rest is read all the same.
    pub(crate) fn read(
        &mut self,
        subject: Subject,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) -> List {
        let mut list = List { line: self.lines.line_at(key.span().start), rules: Vec::new() };
        let name = key.get_ref();
        let Some(entries) = value.get_ref().as_array() else {
            let title = format!("`{name}` must be a list of patterns, not {}", kind_of(value));
            let example = match subject {
                Subject::Tools | Subject::Anything => r#""list_*", "get_file""#,
                Subject::Resources => r#""file:///docs/*""#,
                Subject::Prompts => r#""review_*""#,
            };
            let help = format!("write it in brackets: {name} = [{example}]");
            self.findings.add(value.span(), title, "expected a list", help);
            return list;
        };
        let mut first_lines = HashMap::new();
        for entry in entries {
            self.patterns += 1;
            if self.patterns > PATTERNS_MAX {
                // Said once, at the first pattern too many: the document is refused anyway.
                if self.patterns == PATTERNS_MAX + 1 {
                    let title = format!("the policy has more than {PATTERNS_MAX} patterns");
                    let help = "join names that begin alike into one pattern, such as \"list_*\"";
                    self.findings.add(entry.span(), title, "this one is too many", help);
                }
                return list;
            }
            let Some(rule) = self.rule(subject, entry) else { continue };
            match first_lines.get(&rule.pattern) {
                Some(first) => {
                    let title = format!("\"{}\" stands twice in `{name}`", rule.pattern);
                    let help = format!("remove this one: line {first} has it already");
                    self.findings.add(rule.span, title, "listed again", help);
                }
                None => {
                    first_lines.insert(rule.pattern.clone(), rule.line);
                    list.rules.push(rule);
                }
            }
        }
        list
    }

    fn rule(&mut self, subject: Subject, entry: &Spanned<DeValue<'_>>) -> Option<Rule> {
        let span = entry.span();
        let Some(text) = entry.get_ref().as_str() else {
            let title = format!("a pattern must be a string, not {}", kind_of(entry));
            self.findings.add(
                span,
                title,
                "expected a string",
                r#"write a name in quotes, such as "list_issues""#,
            );
            return None;
        };
        match Pattern::parse(subject, text) {
            Ok(pattern) => Some(Rule { pattern, line: self.lines.line_at(span.start), span }),
            Err(invalid) => {
                self.findings.add(span, invalid.to_string(), "not a pattern", invalid.help());
                None
            }
        }
    }

    /// Finds what a list permits in vain. A reader would take such an entry for a permission, and it is none.
    pub(crate) fn refuse_dead_entries(&mut self, name: &str, list: &List, deny: &List) {
        for rule in &list.rules {
            let Some(stronger) = deny.rules.iter().find(|denied| denied.pattern.covers(&rule.pattern)) else {
                continue;
            };
            let title = format!("\"{}\" in `{name}` can never allow anything", rule.pattern);
            let help = format!(
                "line {} has \"{}\" in `deny`, which no list overrides: remove this entry, or narrow that one",
                stronger.line, stronger.pattern
            );
            self.findings.add(rule.span.clone(), title, "all of it is denied", help);
        }
    }
}

/// What a value is, with its article.
pub(crate) fn kind_of(value: &Spanned<DeValue<'_>>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
