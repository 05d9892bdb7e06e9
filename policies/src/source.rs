//! Files that users write, such as policies, and locations in them for messages.

use std::fmt;

use crate::printable::printable;

/// A file that a user wrote: its name for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's name for messages. It is not used to open the file.
    pub path: String,
    /// The whole text of the file.
    pub text: String,
}

/// A line of a file, displayed as `path:line`. The location of a built-in default has no line number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file's name for messages. For a built-in default, a text that describes the default.
    pub path: String,
    /// Line number, counted from 1; 0 for a built-in default.
    pub line: usize,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&printable(&self.path)),
            line => write!(f, "{}:{line}", printable(&self.path)),
        }
    }
}

/// The byte offset at which each line of a text starts, for a fast lookup of the line of an offset.
pub(crate) struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    pub(crate) fn new(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// Returns the line that contains the byte at `offset`, counted from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_belongs_to_the_line_it_ends() {
        let lines = LineIndex::new("ab\n\nc");
        let seen: Vec<_> = (0..6).map(|offset| lines.line_at(offset)).collect();
        assert_eq!(seen, [1, 1, 1, 2, 3, 3]);
    }
}
