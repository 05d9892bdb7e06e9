//! The line of a file that an error or warning points at, cut to a bounded length.

use std::ops::Range;

use crate::printable::printable;

/// The maximum number of characters that are kept of each of the three parts of a line: before, in and after the marked
/// range. This number exceeds the width of a screen, so that the renderer decides what to show. The maximum bounds the
/// memory that many errors on one long line need.
const CHARS_MAX: usize = 1000;

/// An excerpt of one line of a file, without control characters, and the range in it that an error message
/// marks.
#[derive(Clone, Debug)]
pub(crate) struct SourceExcerpt {
    /// The line's number in the file, counted from 1.
    pub(crate) line: usize,
    /// The column at which the marked range starts in the whole line, in characters, counted from 1.
    pub(crate) column: usize,
    pub(crate) text: String,
    /// Whether the beginning of the line is missing from `text`.
    pub(crate) is_cut: bool,
    /// The byte range of `text` that an error message marks.
    pub(crate) marked: Range<usize>,
}

impl SourceExcerpt {
    /// Creates an excerpt of the line of `text` in which the byte range `span` starts, and marks the range. An invalid
    /// range (past the end, reversed, or inside a character) is moved to the nearest valid one. If the range spans
    /// several lines, only its part on the first line is marked.
    pub(crate) fn new(text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.ceil_char_boundary(span.end.min(text.len())).max(start);
        let (before, after) = text.split_at(start);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = after.find('\n').map_or(text.len(), |at| start + at);
        let end = end.min(line_end);

        let column = text[line_start..start].chars().count() + 1;
        let prefix = last_chars(&text[line_start..start]);
        let marked_text = first_chars(&text[start..end]);
        let suffix = first_chars(text[end..line_end].trim_end_matches('\r'));
        let marked = prefix.len()..prefix.len() + marked_text.len();
        Self {
            line: before.matches('\n').count() + 1,
            column,
            is_cut: column > CHARS_MAX + 1,
            text: prefix + &marked_text + &suffix,
            marked,
        }
    }
}

fn first_chars(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        None => visible(text),
        Some((at, _)) => visible(&text[..at]) + "…",
    }
}

fn last_chars(text: &str) -> String {
    match text.char_indices().rev().nth(CHARS_MAX) {
        None => visible(text),
        Some((at, dropped)) => format!("…{}", visible(&text[at + dropped.len_utf8()..])),
    }
}

/// Replaces control and invisible characters with U+FFFD. Tabs stay, because the renderer knows their width.
fn visible(text: &str) -> String {
    text.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, span: Range<usize>) -> (usize, usize, String) {
        let excerpt = SourceExcerpt::new(text, &span);
        (excerpt.line, excerpt.column, excerpt.text[excerpt.marked].to_owned())
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges, reason = "one of the spans is invalid in this way")]
    fn an_invalid_span_is_moved_to_the_nearest_valid_one() {
        assert_eq!(marked("a\nbé\n", 2..4), (2, 1, "bé".to_owned()));
        assert_eq!(marked("a\nbé\n", 4..usize::MAX), (2, 2, "é".to_owned()));
        assert_eq!(marked("a\nbé\n", 0..5), (1, 1, "a".to_owned()));
        assert_eq!(marked("a\nbé\n", usize::MAX..3), (3, 1, String::new()));
        assert_eq!(marked("", 7..9), (1, 1, String::new()));
    }

    #[test]
    fn a_long_line_is_cut_around_the_marked_part() {
        let text = format!("{}X{}", "é".repeat(5000), "ü".repeat(5000));
        let excerpt = SourceExcerpt::new(&text, &(10_000..10_001));
        assert_eq!((excerpt.column, excerpt.is_cut), (5001, true));
        assert_eq!(&excerpt.text[excerpt.marked], "X");
        assert_eq!(excerpt.text.chars().count(), 2 * CHARS_MAX + 3);
    }
}
