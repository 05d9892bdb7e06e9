//! Fits text for people into the width of the terminal.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// The width in columns if neither the environment variable COLUMNS nor the terminal states one, as in a pipe.
const COLUMNS_DEFAULT: usize = 80;
/// The minimum width in columns. A narrower terminal breaks the lines itself.
const COLUMNS_MIN: usize = 40;

/// Returns the width in columns of text on standard output: the environment variable COLUMNS, or else the width of the
/// terminal, or else [`COLUMNS_DEFAULT`].
pub(crate) fn columns() -> usize {
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = stated.filter(|columns| *columns > 0).or_else(terminal_columns);
    columns.unwrap_or(COLUMNS_DEFAULT).max(COLUMNS_MIN)
}

/// Returns the width of the terminal on standard output; `None` if it is not a terminal, or the width is unknown.
#[allow(unsafe_code, reason = "TIOCGWINSZ has no safe wrapper in nix")]
fn terminal_columns() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel writes one `winsize` to the address, which is valid during the call.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Returns the number of columns that a text without control characters takes on a terminal.
pub(crate) fn display_width(text: &str) -> usize {
    textwrap::core::display_width(text)
}

/// Divides a text into lines of at most `width` columns, at spaces. Only a word that is longer than a line is broken.
/// Returns one empty line for an empty text.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_with(text, Options::new(width))
}

/// Wraps one line of output to the width of the terminal. All lines but the first are indented by `indent`.
pub(crate) fn wrap_line(text: &str, indent: &str) -> String {
    wrap_with(text, Options::new(columns()).subsequent_indent(indent)).join("\n")
}

/// Wraps each line of a text to the width of the terminal.
pub(crate) fn wrap_lines(text: &str) -> String {
    text.lines().map(|line| wrap_line(line, "")).collect::<Vec<_>>().join("\n")
}

/// The options name every algorithm, since other crates' features change the defaults of `textwrap`.
fn wrap_with(text: &str, options: Options<'_>) -> Vec<String> {
    let options = options
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(true);
    textwrap::wrap(text, options).into_iter().map(|line| line.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_spaces_and_only_longer_words_are_broken() {
        for (text, lines) in [
            ("", &[""][..]),
            ("a server-name b", &["a", "server-name", "b"]),
            ("0123456789ab c", &["0123456789a", "b c"]),
            ("日本語 日本語", &["日本語", "日本語"]),
        ] {
            assert_eq!(wrap(text, 11), lines, "{text:?}");
        }
        let text = format!("{}  b", "a".repeat(COLUMNS_MIN));
        let options = Options::new(COLUMNS_MIN).subsequent_indent("    ");
        assert_eq!(wrap_with(&text, options), ["a".repeat(COLUMNS_MIN), "    b".to_owned()]);
    }
}
