//! Files as people know them, and places in them.

use std::fmt;

use crate::printable::printable;

/// A file that a person wrote: its name as shown to people, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name to show; nothing is opened by it.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// A line of a file, shown as `path:line`; what Lockhouse says by itself is in no file and has no line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name as shown to people.
    pub path: String,
    /// Counted from 1; 0 where there is no file.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&printable(&self.path)),
            line => write!(f, "{}:{line}", printable(&self.path)),
        }
    }
}

/// Where each line of a text starts: a document can have thousands of patterns, and each needs its line.
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// The line that a byte offset is on, counted from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_belongs_to_the_line_it_ends() {
        let lines = Lines::of("ab\n\nc");
        let seen: Vec<_> = (0..6).map(|offset| lines.line_at(offset)).collect();
        assert_eq!(seen, [1, 1, 1, 2, 3, 3]);
    }
}
