//! Extracts the signature of a skill's function from its source text, by simple rules instead of a parser.

use lockhouse_protocol::Language;

use super::skill_name::Name;

/// Maximum number of characters of a signature. Longer signatures are truncated.
const CHARS_MAX: usize = 300;
/// Maximum number of source lines that are read to find the end of a function's signature.
const LINES_MAX: usize = 40;

/// Returns the name of the skill's function: the function with the skill's name or, if there is none, the first
/// public function. Classes, and constants in TypeScript, count as functions too. Returns `None` if the code
/// defines none of these.
pub(super) fn function_name(language: Language, name: &Name, code: &str) -> Option<String> {
    find_definition(language, name, code).map(|(function, ..)| function.to_owned())
}

/// Returns the signature of the skill's function, on one line and without the body. Returns `None` if the code
/// defines no function.
pub(super) fn signature(language: Language, name: &Name, code: &str) -> Option<String> {
    let (_, at, from) = find_definition(language, name, code)?;
    let mut lines = code.lines().skip(at);
    let first = lines.next()?.get(from..)?;
    let mut text = String::new();
    let mut depth = 0_i32;
    for line in std::iter::once(first).chain(lines).take(LINES_MAX) {
        for c in line.chars() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                // A Python signature ends at the colon, a TypeScript one at the opening brace.
                ':' if depth == 0 && language == Language::Python => {
                    return Some(normalize_whitespace(&text));
                }
                '{' if depth == 0 && language == Language::Typescript => {
                    return Some(normalize_whitespace(&text));
                }
                _ => {}
            }
            text.push(c);
        }
        text.push(' ');
        if text.len() > 4 * CHARS_MAX {
            break;
        }
    }
    Some(normalize_whitespace(&text))
}

/// Finds the definition of the skill's function. Returns the function's name, the index of its line (from 0), and
/// the byte offset in that line at which the definition begins, after `export` if present.
fn find_definition<'c>(language: Language, name: &Name, code: &'c str) -> Option<(&'c str, usize, usize)> {
    let mut first = None;
    for (at, line) in code.lines().enumerate() {
        let Some((defined, from)) = parse_definition_line(language, line) else { continue };
        if Name::parse(defined).as_ref() == Ok(name) {
            return Some((defined, at, from));
        }
        first = first.or((!defined.starts_with('_')).then_some((defined, at, from)));
    }
    first
}

/// Returns the name of the function, class or constant that a line defines, and the byte offset of the
/// definition in the line. Returns `None` if the line defines nothing.
fn parse_definition_line(language: Language, line: &str) -> Option<(&str, usize)> {
    let (exported, words): (&str, &[&str]) = match language {
        Language::Python => ("", &["def ", "async def ", "class "]),
        Language::Typescript => ("export ", &["function ", "async function ", "class ", "const "]),
    };
    let rest = line.strip_prefix(exported)?;
    let rest = words.iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    (end > 0).then(|| (&rest[..end], exported.len()))
}

/// Replaces line breaks and repeated spaces in a signature by single spaces, and truncates it to [`CHARS_MAX`]
/// characters.
fn normalize_whitespace(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.trim_end_matches(['=', ' ']).replace("( ", "(").replace(", )", ")").replace(" )", ")");
    match words.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_rendered_on_one_line() {
        let name = Name::parse("weekly_report").expect("a name");
        for (language, code, expected) in [
            (
                Language::Python,
                "def weekly_report(a: int = 1) -> str:\n    pass\n",
                "def weekly_report(a: int = 1) -> str",
            ),
            (
                Language::Python,
                "import x\ndef other(): pass\n\nasync def weekly_report(\n    a: dict[str, int],\n    b=None,\n):\n  pass",
                "async def weekly_report(a: dict[str, int], b=None)",
            ),
            (Language::Python, "def _helper(): pass\ndef main(x): pass", "def main(x)"),
            (
                Language::Typescript,
                "export async function weeklyReport(a: { b: number }): Promise<string> {\n}",
                "async function weeklyReport(a: { b: number }): Promise<string>",
            ),
        ] {
            assert_eq!(signature(language, &name, code).as_deref(), Some(expected), "{code}");
        }
        assert_eq!(signature(Language::Python, &name, "x = 1"), None);
        let long = format!("def f({}", "a,\n".repeat(10_000));
        assert!(signature(Language::Python, &name, &long).expect("some").chars().count() <= CHARS_MAX + 1);
    }
}
