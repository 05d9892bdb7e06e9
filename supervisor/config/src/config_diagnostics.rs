//! Creates diagnostics (error messages with a source excerpt) for `config.toml`. Lines that may hold a secret are never
//! shown.

use std::ops::Range;

use lockhouse_policies::{Diagnostic, Source};

use super::keys::TableSpec;
use super::multi_error_parser::FieldError;
use super::redacted_diagnostic::{self, line_number};

/// Words that mark a line as possibly part of a server entry, whose values may be secrets.
const WORDS_OF_SERVERS: [&str; 2] = ["servers", "env"];

/// What a line has whose values may be secrets, although its key is declared: the headers of a destination of the audit log.
const HEADERS: [&str; 2] = ["headers", "{"];

/// Creates diagnostics for one `config.toml`.
pub(super) struct ConfigDiagnostics<'s> {
    source: &'s Source,
    /// The headers of the tables that cannot hold secrets, each preceded by a line feed.
    headers: Vec<String>,
}

impl<'s> ConfigDiagnostics<'s> {
    pub(super) fn new(source: &'s Source, declared: &TableSpec) -> Self {
        let below = declared.all().into_iter().filter(|table| !table.path.is_empty());
        Self { source, headers: below.map(|table| format!("\n[{}]", table.path)).collect() }
    }

    /// Creates the diagnostic, with its location, for a key or value that could not be read. If its line may hold a
    /// secret, only the line number is shown.
    pub(super) fn for_field_error(&self, error: FieldError) -> Diagnostic {
        let FieldError { span, title, label, help, is_declared } = error;
        let has_headers = span.as_ref().is_some_and(|span| self.has_headers(span.start));
        let fault = if is_declared && !has_headers {
            self.for_declared_key(span, &title, label)
        } else {
            self.for_unknown_key(span, &title, label)
        };
        help.into_iter().fold(fault, Diagnostic::with_help)
    }

    /// Whether the line at byte offset `at` may have headers.
    fn has_headers(&self, at: usize) -> bool {
        let line = redacted_diagnostic::line_at(&self.source.text, at);
        HEADERS.iter().all(|word| line.contains(word))
    }

    /// Creates the diagnostic for a fault at a key that the configuration format declares. Its line is shown,
    /// since the values of declared keys are no secrets.
    pub(super) fn for_declared_key(
        &self,
        span: Option<Range<usize>>,
        title: &str,
        label: String,
    ) -> Diagnostic {
        Diagnostic::new(self.source, span, title, label)
    }

    /// Creates the diagnostic for a fault at a key that the configuration format does not declare. If its line
    /// may hold a secret, only the line number is shown.
    fn for_unknown_key(&self, span: Option<Range<usize>>, title: &str, label: String) -> Diagnostic {
        match span {
            Some(span) if self.may_hold_secrets(span.start) || self.has_headers(span.start) => {
                let line = line_number(&self.source.text, span.start);
                let location = Source { path: format!("{}:{line}", self.source.path), text: String::new() };
                Diagnostic::new(&location, None, title, label)
            }
            span => Diagnostic::new(self.source, span, title, label),
        }
    }

    /// Whether the line at byte offset `at` may belong to a server entry, whose values may be secrets. This is assumed
    /// if one of [`WORDS_OF_SERVERS`] occurs between the nearest preceding header in [`Self::headers`] and the end of
    /// the line. A line that is only a header `[servers.NAME]` holds no secret.
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
