//! Names of returned files. A program chooses them, and a person writes files with these names into a folder.

use lockhouse_policies::visible_text;

/// Maximum length of the name of a stored file in bytes. File systems permit 255, and a suffix must fit too.
/// Bound: values and answers.
const NAME_BYTES_MAX: usize = 160;
/// Maximum length of an extension in bytes that a shortened name keeps.
const EXTENSION_BYTES_MAX: usize = 16;

/// Returns a name for a file that a program has called `name`: one path component without control and invisible
/// characters, characters that are special on other systems, and leading dots.
pub fn safe_name(name: &str) -> String {
    let shown = visible_text(name);
    let safe = |c: char| if c.is_control() || "/\\:*?\"<>|\u{fffd}".contains(c) { '_' } else { c };
    let safe: String = shown.chars().map(safe).collect();
    let safe = safe.trim_matches([' ', '.']);
    let name = if name.trim_start().starts_with('.') { format!("_{safe}") } else { safe.to_owned() };
    match name.trim_matches('_').is_empty() {
        true => "file".to_owned(),
        false => shortened(&name, NAME_BYTES_MAX).trim_end_matches([' ', '.']).to_owned(),
    }
}

/// Returns `name`, or the name with a number before its extension for which `is_used` returns false.
pub fn unused_name(name: &str, is_used: impl Fn(&str) -> bool) -> String {
    let (stem, extension) = split_extension(name);
    let numbered = (2..).map(|number| format!("{stem} ({number}){extension}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_used(name)).unwrap_or_default()
}

fn shortened(name: &str, bytes_max: usize) -> String {
    if name.len() <= bytes_max {
        return name.to_owned();
    }
    let (stem, extension) = split_extension(name);
    let stem = &stem[..stem.floor_char_boundary(bytes_max - extension.len())];
    format!("{stem}{extension}")
}

/// Splits a name before its extension, which includes the dot and is empty if there is none.
fn split_extension(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= EXTENSION_BYTES_MAX => name.split_at(at),
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_safe() {
        let long = "x".repeat(300);
        let rows = [
            ("chart.png", "chart.png"),
            ("a/b.png", "a_b.png"),
            ("../../etc/passwd", "__.._etc_passwd"),
            ("..", "file"),
            (".bashrc", "_bashrc"),
            ("", "file"),
            ("a\nb\u{7f}.csv", "a_b_.csv"),
            ("C:\\x.txt", "C__x.txt"),
            ("měření 1.csv", "měření 1.csv"),
            ("a. ", "a"),
        ];
        for (name, expected) in rows {
            assert_eq!(safe_name(name), expected, "{name:?}");
        }
        let short = safe_name(&format!("{long}.csv"));
        assert!(short.len() == NAME_BYTES_MAX && short.ends_with(".csv"), "{short}");
        assert!(!safe_name("a\u{202e}gnp.exe").contains('\u{202e}'));
    }

    #[test]
    fn a_used_name_gets_a_number() {
        let used = ["a.csv", "a (2).csv"];
        assert_eq!(unused_name("a.csv", |name| used.contains(&name)), "a (3).csv");
        assert_eq!(unused_name("b", |name| used.contains(&name)), "b");
    }

    proptest! {
        #[test]
        fn a_safe_name_is_one_visible_component(name in "(?s).{0,300}") {
            let safe = safe_name(&name);
            prop_assert!(!safe.is_empty() && safe.len() <= NAME_BYTES_MAX, "{safe:?}");
            prop_assert!(!safe.starts_with('.') && !safe.contains('/') && !safe.chars().any(char::is_control), "{safe:?}");
            prop_assert_eq!(safe_name(&safe), safe);
        }
    }
}
