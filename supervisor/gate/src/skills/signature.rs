//! How a skill's function is called: the words of its definition, found without understanding the language.

use lockhouse_base::language::Language;

use super::name::Name;

/// Characters of a signature that are shown.
const CHARS_MAX: usize = 300;
/// Lines that a definition may take.
const LINES_MAX: usize = 40;

/// The function that bears the skill's name, else the first one.
pub(super) fn function(language: Language, name: &Name, code: &str) -> Option<String> {
    definition(language, name, code).map(|(function, ..)| function.to_owned())
}

/// Its definition on one line, without its body.
pub(super) fn signature(language: Language, name: &Name, code: &str) -> Option<String> {
    let (_, at, from) = definition(language, name, code)?;
    let mut lines = code.lines().skip(at);
    let first = lines.next()?.get(from..)?;
    let mut text = String::new();
    let mut depth = 0_i32;
    for line in std::iter::once(first).chain(lines).take(LINES_MAX) {
        for c in line.chars() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                // Python's ends with a colon, that of TypeScript with the body's brace.
                ':' if depth == 0 && language == Language::Python => return Some(tidy(&text)),
                '{' if depth == 0 && language == Language::Typescript => return Some(tidy(&text)),
                _ => {}
            }
            text.push(c);
        }
        text.push(' ');
        if text.len() > 4 * CHARS_MAX {
            break;
        }
    }
    Some(tidy(&text))
}

/// The name that is defined, on which line, and where there the words begin.
fn definition<'c>(language: Language, name: &Name, code: &'c str) -> Option<(&'c str, usize, usize)> {
    let mut first = None;
    for (at, line) in code.lines().enumerate() {
        let Some((defined, from)) = defines(language, line) else { continue };
        if Name::of(defined).as_ref() == Ok(name) {
            return Some((defined, at, from));
        }
        first = first.or((!defined.starts_with('_')).then_some((defined, at, from)));
    }
    first
}

fn defines(language: Language, line: &str) -> Option<(&str, usize)> {
    let (exported, words): (&str, &[&str]) = match language {
        Language::Python => ("", &["def ", "async def ", "class "]),
        Language::Typescript => ("export ", &["function ", "async function ", "class ", "const "]),
    };
    let rest = line.strip_prefix(exported)?;
    let rest = words.iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    (end > 0).then(|| (&rest[..end], exported.len()))
}

fn tidy(text: &str) -> String {
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
    fn a_definition_is_told_on_one_line() {
        let name = Name::of("weekly_report").expect("a name");
        for (language, code, told) in [
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
            assert_eq!(signature(language, &name, code).as_deref(), Some(told), "{code}");
        }
        assert_eq!(signature(Language::Python, &name, "x = 1"), None);
        let long = format!("def f({}", "a,\n".repeat(10_000));
        assert!(signature(Language::Python, &name, &long).expect("some").chars().count() <= CHARS_MAX + 1);
    }
}
