//! Hints for programs with syntax errors.

use super::source_map::Position;

/// Maximum number of lines searched for Python code.
const LINES: usize = 200;

/// Returns advice about a common mistake that probably caused the syntax error with this message and position; `None`
/// if no such mistake is found.
pub(super) fn hint(source: &str, message: &str, position: Option<Position>) -> Option<&'static str> {
    let line = position
        .and_then(|position| source.lines().nth(position.line.checked_sub(1)? as usize))
        .unwrap_or_default();
    if source.lines().any(|line| line.trim_start().starts_with("```")) {
        return Some("send the program without the Markdown fence: no ``` before and after it");
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
    if message.starts_with("Unterminated string") {
        return Some(if line.contains('`') {
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
    use super::is_python;

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
}
