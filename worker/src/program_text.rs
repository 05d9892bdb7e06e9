//! Programs that were submitted inside a Markdown code fence.

use std::borrow::Cow;

const FENCE: &str = "```";

/// Replaces a Markdown fence around a whole program by spaces, so that all positions in the program stay the same. The
/// closing fence may be missing. Returns other programs unchanged: a fence at another place is part of the program, or
/// an error.
#[must_use]
pub fn blank_fence(code: &str) -> Cow<'_, str> {
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
    use super::blank_fence;

    #[test]
    fn a_fence_around_the_program_becomes_spaces() {
        for (code, expected) in [
            ("```python\n1 / 0\n```", "         \n1 / 0\n   "),
            ("\n```\na\n```\n\n", "\n   \na\n   \n\n"),
            ("```ts\r\na\r\n  ```", "     \r\na\r\n     "),
            ("```py\na = 1", "     \na = 1"),
        ] {
            assert_eq!(blank_fence(code), expected);
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
            assert_eq!(blank_fence(code), code);
        }
    }
}
