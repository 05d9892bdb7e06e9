//! Sanitizes untrusted text before it is printed, so that it cannot send control sequences to a terminal.

use std::io::IsTerminal;

/// Replaces control characters and invisible characters with U+FFFD, except tabs. The text cannot begin a line of its
/// own, which could look like one of Lockhouse: for names, paths and messages.
pub(crate) fn sanitize(text: &str) -> String {
    text.split('\t').map(lockhouse_policies::printable).collect::<Vec<_>>().join("\t")
}

/// Sanitizes a text that has lines, such as a program or a report.
pub(crate) fn sanitize_lines(text: &str) -> String {
    text.split('\n').map(sanitize).collect::<Vec<_>>().join("\n")
}

/// Prepares text for standard output: sanitized if standard output is a terminal, unchanged if it is a pipe or a file.
pub(crate) fn for_stdout(text: &str) -> String {
    if std::io::stdout().is_terminal() { sanitize_lines(text) } else { text.to_owned() }
}

/// Prepares text for standard error: sanitized if standard error is a terminal, unchanged if it is a pipe or a file.
pub(crate) fn for_stderr(text: &str) -> String {
    if std::io::stderr().is_terminal() { sanitize_lines(text) } else { text.to_owned() }
}

/// Whether to use colours in text on standard error.
pub(super) fn has_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_tabs_are_kept_and_line_feeds_where_a_text_has_lines() {
        let text = "a\tb\n\u{1b}[2J\u{9b}é";
        assert_eq!(super::sanitize(text), "a\tb\u{fffd}\u{fffd}[2J\u{fffd}é");
        assert_eq!(super::sanitize_lines(text), "a\tb\n\u{fffd}[2J\u{fffd}é");
    }
}
