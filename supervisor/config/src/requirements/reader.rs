//! Collects the faults of a requirements file while it is parsed.

use std::ops::Range;

use lockhouse_policies::{Diagnostic, Source, SourceLocation};

pub(super) struct Reader<'s> {
    pub(super) source: &'s Source,
    pub(super) faults: Vec<Diagnostic>,
}

impl Reader<'_> {
    pub(super) fn add_fault(&mut self, span: Range<usize>, label: &str) {
        let fault = self.diagnostic(Some(span), label);
        self.faults.push(fault);
    }

    /// Creates a diagnostic about a requirements file. If the line of the fault may hold a secret, only the line number
    /// is shown.
    pub(super) fn diagnostic(&self, span: Option<Range<usize>>, label: &str) -> Diagnostic {
        let title = "the requirements are not valid";
        match &span {
            Some(place) if self.may_hold_secrets(span.clone()) => {
                let path = self.place(place.start).to_string();
                Diagnostic::new(&Source { path, text: String::new() }, None, title, label)
            }
            _ => Diagnostic::new(self.source, span, title, label),
        }
    }

    /// Whether the line at `span` may hold a secret. Only server entries do, so lines before the first mention of
    /// `servers` cannot.
    pub(super) fn may_hold_secrets(&self, span: Option<Range<usize>>) -> bool {
        let text = &self.source.text;
        let end = span.map_or(text.len(), |span| {
            text[span.start..].find('\n').map_or(text.len(), |at| span.start + at)
        });
        text[..end].contains("servers")
    }

    pub(super) fn place(&self, at: usize) -> SourceLocation {
        SourceLocation {
            path: self.source.path.clone(),
            line: 1 + self.source.text[..at].matches('\n').count(),
        }
    }
}
