//! Formats a source line with a caret below a column.

use super::source_map::Position;

/// Maximum number of characters shown of a line.
const WIDTH: usize = 100;

/// Indentation of the line and its caret.
const INDENT: &str = "        ";

/// Returns the line of a position, and a second line with a caret below the column. A long line is shortened around the
/// caret. Returns `None` if the line is empty or does not exist.
pub(super) fn excerpt(source: &str, position: Position) -> Option<String> {
    let line = source.split('\n').nth(position.line.checked_sub(1)? as usize)?;
    let text = line.trim();
    if text.is_empty() {
        return None;
    }
    let before = line.chars().take_while(|character| character.is_whitespace()).count();
    let characters: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let at = (position.column as usize).saturating_sub(1 + before).min(characters.len());
    let count = characters.len();
    let cut = if count > WIDTH { at.saturating_sub(WIDTH / 2).min(count - WIDTH) } else { 0 };
    let shown: String = characters.iter().skip(cut).take(WIDTH).collect();
    let head = if cut > 0 { "…" } else { "" };
    let tail = if cut + WIDTH < count { "…" } else { "" };
    let caret = " ".repeat(at - cut + usize::from(cut > 0));
    Some(format!("{INDENT}{head}{shown}{tail}\n{INDENT}{caret}^"))
}

#[cfg(test)]
mod tests {
    use super::{Position, excerpt};

    #[test]
    fn the_caret_stands_below_its_column() {
        let at = |source: &str, line, column| excerpt(source, Position { line, column }).unwrap_or_default();
        assert_eq!(at("a\n  é.b\n", 2, 5), "        é.b\n          ^");
        assert_eq!(at("a", 1, 9), "        a\n         ^");
        assert_eq!(at("\n", 1, 1), "");
        assert_eq!(at("a", 7, 1), "");
        let long = "x".repeat(500);
        let shown = at(&long, 1, 250);
        let (line, caret) = shown.split_once('\n').unwrap_or_default();
        assert_eq!((line.chars().count(), caret.chars().count()), (8 + 102, 8 + 52));
        assert!(line.contains("…x") && line.ends_with("x…") && caret.ends_with('^'));
    }
}
