//! Diagnostics for `config.toml`. Lines that may hold a secret are never shown.

use std::ops::Range;

use lockhouse_policies::{Diagnostic, Source};

use super::keys::TableSpec;
use super::redacted_diagnostic::line_number;
use super::toml_reader::FieldError;

/// Words that mark a server entry, whose values may be secrets.
const WORDS_OF_SERVERS: [&str; 2] = ["servers", "env"];

/// Creates diagnostics for one configuration file.
pub(super) struct ConfigDiagnostics<'s> {
    source: &'s Source,
    /// Headers of the tables that cannot hold secrets, as they appear in the text.
    headers: Vec<String>,
}

impl<'s> ConfigDiagnostics<'s> {
    pub(super) fn new(source: &'s Source, declared: &TableSpec) -> Self {
        let below = declared.all().into_iter().filter(|table| !table.path.is_empty());
        Self { source, headers: below.map(|table| format!("\n[{}]", table.path)).collect() }
    }

    /// Reports a key or value that could not be read, with its location.
    pub(super) fn for_field_error(&self, error: FieldError) -> Diagnostic {
        let FieldError { span, title, label, help, is_declared } = error;
        let fault = if is_declared {
            self.for_declared_key(span, &title, label)
        } else {
            self.for_unknown_key(span, &title, label)
        };
        help.into_iter().fold(fault, Diagnostic::with_help)
    }

    /// Reports a fault of a declared key. Its line is shown, since declared keys hold no secrets.
    pub(super) fn for_declared_key(
        &self,
        span: Option<Range<usize>>,
        title: &str,
        label: String,
    ) -> Diagnostic {
        Diagnostic::new(self.source, span, title, label)
    }

    /// Reports a fault of any other key. If its line may hold a secret, only the line number is shown.
    fn for_unknown_key(&self, span: Option<Range<usize>>, title: &str, label: String) -> Diagnostic {
        match span {
            Some(span) if self.may_hold_secrets(span.start) => {
                let line = line_number(&self.source.text, span.start);
                let location = Source { path: format!("{}:{line}", self.source.path), text: String::new() };
                Diagnostic::new(&location, None, title, label)
            }
            span => Diagnostic::new(self.source, span, title, label),
        }
    }

    /// Whether the line at a byte offset may belong to a server entry. Only the header of another table rules that
    /// out.
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
