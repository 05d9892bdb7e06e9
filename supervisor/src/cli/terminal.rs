//! Sanitizes untrusted text before it is printed, so that it cannot send control sequences to a terminal.

use std::io::IsTerminal;

/// Replaces control characters and invisible characters with U+FFFD, except line feeds and tabs.
pub(crate) fn sanitize(text: &str) -> String {
    let line =
        |line: &str| line.split('\t').map(lockhouse_policies::printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Prepares text for standard output: sanitized if standard output is a terminal, unchanged if it is a pipe or a file.
pub(crate) fn for_stdout(text: &str) -> String {
    if std::io::stdout().is_terminal() { sanitize(text) } else { text.to_owned() }
}

/// Prepares text for standard error: sanitized if standard error is a terminal, unchanged if it is a pipe or a file.
pub(crate) fn for_stderr(text: &str) -> String {
    if std::io::stderr().is_terminal() { sanitize(text) } else { text.to_owned() }
}

/// Whether to use colours in text on standard error.
pub(super) fn has_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_line_feeds_and_tabs_are_kept() {
        assert_eq!(super::sanitize("a\tb\n\u{1b}[2J\u{9b}é"), "a\tb\n\u{fffd}[2J\u{fffd}é");
    }
}
