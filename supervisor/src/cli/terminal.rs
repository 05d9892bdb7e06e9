//! Text of other people's making, on its way to a person: it must not be able to drive a terminal.

use std::io::IsTerminal;

/// The text with control and invisible characters replaced, but for ends of lines and tabs.
pub(crate) fn harmless(text: &str) -> String {
    let line =
        |line: &str| line.split('\t').map(lockhouse_policies::printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// For standard output: harmless on a terminal, and as it is where a program reads it.
pub(crate) fn for_stdout(text: &str) -> String {
    if std::io::stdout().is_terminal() { harmless(text) } else { text.to_owned() }
}

/// For standard error, as [`for_stdout`].
pub(crate) fn for_stderr(text: &str) -> String {
    if std::io::stderr().is_terminal() { harmless(text) } else { text.to_owned() }
}

/// Whether what is written to standard error may be in colour.
pub(super) fn shows_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_ends_of_lines_and_tabs_stay() {
        assert_eq!(super::harmless("a\tb\n\u{1b}[2J\u{9b}é"), "a\tb\n\u{fffd}[2J\u{fffd}é");
    }
}
