//! Shows what an edit of a policy changes.

use similar::TextDiff;

use crate::printable::escaped_line;

/// Number of context lines around each change in a diff.
const CONTEXT: usize = 2;
/// Maximum length of a line of a diff, in characters. Longer lines are truncated.
const DIFF_LINE_CHARS_MAX: usize = 300;

/// Returns the unified diff of two versions of the policy file at `path`, with hidden characters escaped and long
/// lines truncated.
#[must_use]
pub fn unified_diff(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(CONTEXT).header(path, path).to_string();
    unified.lines().map(|line| escaped_line(line, DIFF_LINE_CHARS_MAX)).collect::<Vec<_>>().join("\n")
}
