//! Hints for programs with syntax errors.

use super::source_map::Position;

/// Maximum number of lines searched for Python code.
const LINES: usize = 200;

/// HTML entities that code was sent with by mistake, each with its character.
const ENTITIES: [(&str, &str); 6] =
    [("&gt;", ">"), ("&lt;", "<"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'")];

/// Returns advice about a common mistake that probably caused the syntax error with this message and position; `None`
/// if no such mistake is found.
pub(super) fn hint(source: &str, message: &str, position: Option<Position>) -> Option<String> {
    let line = position
        .and_then(|position| source.lines().nth(position.line.checked_sub(1)? as usize))
        .unwrap_or_default();
    entities_hint(line).or_else(|| common_mistake(source, message, line).map(str::to_owned))
}

/// Returns what to write for the HTML entities in a line of code; `None` if it has none.
pub(super) fn entities_hint(line: &str) -> Option<String> {
    let found = ENTITIES.iter().filter(|(entity, _)| line.contains(entity));
    let words: Vec<String> =
        found.map(|(entity, character)| format!("{character} instead of {entity}")).collect();
    (!words.is_empty())
        .then(|| format!("the program was sent with HTML entities: write {}", words.join(", ")))
}

fn common_mistake(source: &str, message: &str, line: &str) -> Option<&'static str> {
    if source.lines().any(|line| line.trim_start().starts_with("```")) {
        return Some("send the program alone: no other text, and no ``` before and after it");
    }
    if source.lines().take(LINES).any(is_python) {
        return Some("this looks like Python: send it with language \"python\", or write it in TypeScript");
    }
    if line.contains(['“', '”', '‘', '’']) {
        return Some("write straight quotes: \" or '");
    }
    if line.contains("</") || line.contains("/>") {
        return Some("there is no JSX, for there is no browser: build text, or return the data");
    }
    if message.starts_with("an import must be at the top") {
        return Some("move it to the first lines, or write `await import(\"…\")` in its place");
    }
    if message.contains("has already been declared") {
        return Some("use another name, or assign to the first without const or let");
    }
    if message.starts_with("Invalid Unicode escape sequence") {
        return match line {
            _ if line.contains("\\n") => Some(
                "a line break was sent as the two characters \\n: send the program with real line breaks",
            ),
            _ if line.contains("\\\"") || line.contains("\\'") => {
                Some("quotes were sent with a backslash before them: send them without it")
            }
            _ => None,
        };
    }
    if message.starts_with("Expected `,` or `)` but found `:`") {
        return Some("named arguments are one object: f({ name: value })");
    }
    if message.starts_with("Unterminated string") {
        return Some(if line.matches("${").count() > line.matches('}').count() {
            "end each ${ of the template with }"
        } else if line.contains('`') {
            "end the template with a `"
        } else {
            "end the text on its line; one of several lines is written between two `"
        });
    }
    None
}

/// Returns whether a line looks like Python code and is not valid TypeScript.
fn is_python(line: &str) -> bool {
    let line = line.trim();
    let has_colon = line.ends_with(':');
    let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let imports = line
        .strip_prefix("from ")
        .is_some_and(|rest| rest.contains(" import ") && !rest.contains(['"', '\'']));
    let plain_import = line.strip_prefix("import ").is_some_and(|rest| {
        rest.chars().all(|c| c.is_alphanumeric() || "._, ".contains(c)) && !rest.contains(" from ")
    });
    imports
        || plain_import
        || has_colon
            && starts(&[
                "def ",
                "async def ",
                "class ",
                "elif ",
                "for ",
                "while ",
                "if ",
                "with ",
                "try:",
                "except",
                "else:",
            ])
            && !line.contains(['{', '('].as_slice())
        || has_colon && starts(&["def ", "async def ", "elif ", "except "])
}

#[cfg(test)]
mod tests {
    use super::{entities_hint, is_python};

    #[test]
    fn python_is_told_from_typescript() {
        for line in [
            "from a import b",
            "import os",
            "import a.b as c",
            "def f(x):",
            "  for a in b:",
            "elif x(1):",
            "try:",
        ] {
            assert!(is_python(line), "{line}");
        }
        for line in [
            "import a from 'b'",
            "import \"a\"",
            "default:",
            "case 1:",
            "x ? y :",
            "label:",
            "if (a) b:",
            "from('a import b')",
        ] {
            assert!(!is_python(line), "{line}");
        }
    }
    #[test]
    fn entities_are_named_with_their_characters() {
        let expected = "the program was sent with HTML entities: write > instead of &gt;, & instead of &amp;";
        assert_eq!(entities_hint("a =&gt; a &amp;&amp; b").as_deref(), Some(expected));
        assert_eq!(entities_hint("a && gt; b & amp"), None);
    }
}
