//! Faults of a configuration at their places, without lines that may hold secrets.

use std::ops::Range;

use lockhouse_policies::{Diagnostic, Source};

use super::partial::Misfit;

/// A value that does not fit, at its place.
pub(super) fn diagnostic(source: &Source, misfit: Misfit) -> Diagnostic {
    let Misfit { span, title, label, help } = misfit;
    let diagnostic = fault(source, span, &title, label);
    help.into_iter().fold(diagnostic, Diagnostic::with_help)
}

/// A fault at its place; a line that may hold a secret is named and not shown.
pub(super) fn fault(source: &Source, span: Option<Range<usize>>, title: &str, label: String) -> Diagnostic {
    match span {
        Some(span) if may_hold_secrets(&source.text, span.start) => {
            let line = 1 + source.text[..span.start].matches('\n').count();
            let place = Source { path: format!("{}:{line}", source.path), text: String::new() };
            Diagnostic::new(&place, None, title, label)
        }
        span => Diagnostic::new(source, span, title, label),
    }
}

/// Whether the line there may belong to a server: nothing but the header of another table says that it does not.
fn may_hold_secrets(text: &str, at: usize) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    if text[start..end].starts_with("[servers.") && !text[start..end].contains('=') {
        return false;
    }
    let others = [
        "[limits]",
        "[pool]",
        "[sessions]",
        "[runs]",
        "[python]",
        "[javascript]",
        "[audit]",
        "[approvals]",
        "[catalogue]",
        "[skills]",
        "[results]",
        "[http]",
        "[http.limits]",
        "[http.tls]",
        "[clients]",
        "[service]",
        "[metrics]",
        "[log]",
        "[tools]",
    ];
    let header = others.iter().filter_map(|header| text[..end].rfind(&format!("\n{header}"))).max();
    let table = &text[header.unwrap_or(0)..end];
    table.contains("servers") || table.contains("env")
}
