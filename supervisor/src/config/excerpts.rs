//! Faults of a configuration at their places, without lines that may hold secrets.

use std::ops::Range;

use lockhouse_policies::{Diagnostic, Source};

use super::faults::line_number;
use super::keys::TableSpec;
use super::partial::Misfit;

/// Words of a server's entry, whose values may be secrets.
const WORDS_OF_SERVERS: [&str; 2] = ["servers", "env"];

/// Makes faults of one file.
pub(super) struct Excerpts<'s> {
    source: &'s Source,
    /// Headers of tables that hold no secret, as they stand in the text.
    headers: Vec<String>,
}

impl<'s> Excerpts<'s> {
    pub(super) fn new(source: &'s Source, declared: &TableSpec) -> Self {
        let below = declared.all().into_iter().filter(|table| !table.path.is_empty());
        Self { source, headers: below.map(|table| format!("\n[{}]", table.path)).collect() }
    }

    /// A part of the file that does not fit, at its place.
    pub(super) fn misfit(&self, misfit: Misfit) -> Diagnostic {
        let Misfit { span, title, label, help, is_declared } = misfit;
        let fault =
            if is_declared { self.value(span, &title, label) } else { self.unknown(span, &title, label) };
        help.into_iter().fold(fault, Diagnostic::with_help)
    }

    /// About a key that is declared: it has no secret.
    pub(super) fn value(&self, span: Option<Range<usize>>, title: &str, label: String) -> Diagnostic {
        Diagnostic::new(self.source, span, title, label)
    }

    /// About anything else. A line that may hold a secret is named and not shown.
    fn unknown(&self, span: Option<Range<usize>>, title: &str, label: String) -> Diagnostic {
        match span {
            Some(span) if self.may_hold_secrets(span.start) => {
                let line = line_number(&self.source.text, span.start);
                let place = Source { path: format!("{}:{line}", self.source.path), text: String::new() };
                Diagnostic::new(&place, None, title, label)
            }
            span => Diagnostic::new(self.source, span, title, label),
        }
    }

    /// Whether the line there may belong to a server: nothing but the header of another table says that it does not.
    fn may_hold_secrets(&self, at: usize) -> bool {
        let text = &self.source.text;
        let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        if text[start..end].starts_with("[servers.") && !text[start..end].contains('=') {
            return false;
        }
        let header = self.headers.iter().filter_map(|header| text[..end].rfind(header)).max();
        let table = &text[header.unwrap_or(0)..end];
        WORDS_OF_SERVERS.iter().any(|word| table.contains(word))
    }
}
