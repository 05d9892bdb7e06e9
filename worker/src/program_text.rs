//! The program in a submitted text: AI clients may submit it with a byte order mark and inside a Markdown code fence.

use std::borrow::Cow;

const FENCE: &str = "```";
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns the program in a submitted text: without a byte order mark at its beginning, which no editor counts as a
/// character, and with spaces in place of a Markdown fence around the whole program, so that all positions stay the
/// same.
#[must_use]
pub fn program(text: &str) -> Cow<'_, str> {
    blank_fence(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

/// Replaces a Markdown fence around a whole program by spaces. The closing fence may be missing. Returns other programs
/// unchanged: a fence at another place is part of the program, or an error.
fn blank_fence(code: &str) -> Cow<'_, str> {
    let body = code.trim();
    let Some(rest) = body.strip_prefix(FENCE) else { return Cow::Borrowed(code) };
    let info = rest.lines().next().unwrap_or_default();
    let is_info = |c: char| c.is_ascii_alphanumeric() || "_+-. ".contains(c);
    let Some(program) = rest.get(info.len()..) else { return Cow::Borrowed(code) };
    let inner = program.strip_suffix(FENCE).filter(|inner| inner.ends_with(['\n', ' ', '\t']));
    if !info.chars().all(is_info) || inner.is_none() && program.contains(FENCE) {
        return Cow::Borrowed(code);
    }
    let start = code.len() - code.trim_start().len();
    let opening = FENCE.len() + info.len();
    let mut blanked = code.to_owned();
    blanked.replace_range(start..start + opening, &" ".repeat(opening));
    if inner.is_some() {
        let end = start + body.len();
        blanked.replace_range(end - FENCE.len()..end, &" ".repeat(FENCE.len()));
    }
    Cow::Owned(blanked)
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn a_fence_around_the_program_becomes_spaces() {
        for (code, expected) in [
            ("```python\n1 / 0\n```", "         \n1 / 0\n   "),
            ("\n```\na\n```\n\n", "\n   \na\n   \n\n"),
            ("```ts\r\na\r\n  ```", "     \r\na\r\n     "),
            ("```py\na = 1", "     \na = 1"),
            ("\u{feff}```\na\n```", "   \na\n   "),
            ("\u{feff}a = '\u{feff}'", "a = '\u{feff}'"),
        ] {
            assert_eq!(program(code), expected);
        }
    }

    #[test]
    fn other_fences_are_part_of_the_program() {
        for code in [
            "x = '''\n```\n'''",
            "a\n```\nb",
            "```js`a`",
            "```${x}\n```",
            "```python\na\n```\n\n```python\nb = 1",
            "Run this:\n```\na\n```",
            "",
            "a",
        ] {
            assert_eq!(program(code), code);
        }
    }
}
