//! Creates diagnostics (error messages with a location) that omit the source line if the line may hold a secret.

use std::ops::Range;

use lockhouse_policies::{Diagnostic, Source};

/// Creates a diagnostic. The source line is shown only if it cannot hold a secret, see [`is_structure_only`]; otherwise
/// only its line number is given.
pub(super) fn new(source: &Source, span: Option<Range<usize>>, title: &str, label: String) -> Diagnostic {
    match span {
        Some(span) if !is_structure_only(line_at(&source.text, span.start)) => {
            let without_text = Source { path: location(source, span.start), text: String::new() };
            Diagnostic::new(&without_text, None, title, label)
        }
        span => Diagnostic::new(source, span, title, label),
    }
}

/// Formats the location of byte offset `at` as `FILE:LINE`.
pub(super) fn location(source: &Source, at: usize) -> String {
    format!("{}:{}", source.path, line_number(&source.text, at))
}

/// Returns the line number of byte offset `at`, counted from 1.
pub(super) fn line_number(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// Returns the line at byte offset `at`.
pub(super) fn line_at(text: &str, at: usize) -> &str {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    &text[start..end]
}

/// Whether a line contains only keys, table headers, brackets, numbers and booleans, and therefore no secret.
fn is_structure_only(line: &str) -> bool {
    let line = line.trim();
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
        return header.chars().all(|c| word(c) || matches!(c, '.' | '[' | ']' | ' '));
    }
    if let Some((key, value)) = line.split_once('=') {
        let value = value.trim();
        let is_number =
            value.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '.' | '_')) && value.len() < 12;
        return key.trim().chars().all(word) && (is_number || ["true", "false"].contains(&value));
    }
    // In JSON, only structure may remain after the keys are removed.
    let mut rest = line;
    loop {
        match rest.chars().next() {
            None => return true,
            Some('{' | '}' | '[' | ']' | ',' | ':' | ' ' | '\t') => rest = &rest[1..],
            Some('"') => {
                let Some((key, after)) = rest[1..].split_once('"') else { return false };
                if !key.chars().all(word) || !after.trim_start().starts_with(':') {
                    return false;
                }
                rest = after;
            }
            Some(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_only_if_it_holds_no_text() {
        for structure in [
            "[servers.x]",
            "[servers.x.env]",
            "idle_stop_seconds = 0",
            "\"mcpServers\": {,}",
            "  },",
            "lazy = true",
        ] {
            assert!(is_structure_only(structure), "{structure}");
        }
        for redacted in [
            "T = 'x'",
            "\"T\": \"x\"",
            "\"T\": x",
            "x",
            "T\": 3",
            "\"a b\": {",
            "T = 123456789012345",
            "[\"x\"]",
        ] {
            assert!(!is_structure_only(redacted), "{redacted}");
        }
    }
}
