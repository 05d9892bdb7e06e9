//! Detects paths that programs may read in different ways.
//!
//! A server may normalize a path (NFKC, IDNA), convert it to another character set, drop characters that the set
//! lacks, or undo escapes. A policy condition evaluates a path only if no such conversion can produce a separator, a
//! dot or a `..`.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

const ESCAPED: &str = "programs may read it in different ways";
const INVISIBLE: &str = "it has characters that some servers drop";
const SIMILAR: &str = "it has characters that some servers take for a dot or a slash";

/// Characters that have a meaning in paths or start an escape sequence.
const MEANINGFUL: [char; 4] = ['.', '/', '\\', '%'];

/// Returns why programs may read a path in different ways, or `None` if they cannot.
pub(super) fn ambiguity(path: &str) -> Option<&'static str> {
    if path.contains('\\') || has_entity(path) || has_escape(path) {
        Some(ESCAPED)
    } else if path.chars().any(is_invisible) || path.split('/').any(|part| part.trim() != part) {
        Some(INVISIBLE)
    } else if path.chars().any(resembles_path_syntax) || path.split('/').any(may_become_parent_dir) {
        Some(SIMILAR)
    } else {
        None
    }
}

/// Whether a program may read the percent-decoded text `text` as a different text, because it has invisible characters,
/// characters that resemble path syntax, or escapes such as `%u002e`.
pub(crate) fn is_ambiguous(text: &str) -> bool {
    let is_unicode_escape = |(at, _): (usize, &str)| {
        text.get(at + 2..at + 6).is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    text.chars().any(|c| is_invisible(c) || resembles_path_syntax(c))
        || text.match_indices("%u").any(is_unicode_escape)
}

/// Whether the path has an escape that a program might undo, such as `%2e`, `%u002e` or `%%32e`. A `%` counts as
/// literal only before a character that cannot continue an escape.
fn has_escape(path: &str) -> bool {
    let begins_one =
        |after: char| !after.is_ascii() || after.is_ascii_alphanumeric() || after == '%' || after == '{';
    path.chars().zip(path.chars().skip(1)).any(|(c, after)| c == '%' && begins_one(after))
}

/// Whether the path has an HTML character reference, such as `&#46;` or `&period;`.
fn has_entity(path: &str) -> bool {
    path.split('&').skip(1).any(|after| {
        let end = after.find(|c: char| !c.is_ascii_alphanumeric());
        after.starts_with('#') || end.is_some_and(|end| end > 0 && after[end..].starts_with(';'))
    })
}

/// Whether a character is invisible or ignorable in most programs. Some programs drop such characters from a
/// path.
fn is_invisible(c: char) -> bool {
    use GeneralCategory as Category;
    let category = CodePointMapData::<GeneralCategory>::new().get(c);
    let means_nothing = matches!(
        category,
        Category::Control
            | Category::Format
            | Category::LineSeparator
            | Category::ParagraphSeparator
            | Category::PrivateUse
            | Category::Unassigned
    );
    means_nothing || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Whether Unicode normalization or a conversion of the character set can turn a character into one of
/// [`MEANINGFUL`].
fn resembles_path_syntax(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let mut bytes = [0; 4];
    let normal =
        ComposingNormalizerBorrowed::new_nfkc().normalize(c.encode_utf8(&mut bytes)).contains(MEANINGFUL);
    normal || is_like_slash(c) || is_like_dot(c)
}

/// Whether a conversion of the character set can turn a character into a slash, a backslash or a percent sign,
/// although Unicode normalization does not.
fn is_like_slash(c: char) -> bool {
    matches!(
        c,
        '\u{2044}' | '\u{2215}' | '\u{2571}' | '\u{27cb}' | '\u{29f8}' | '\u{2afb}' | '\u{2afd}' | '\u{1d23a}' // slashes
        | '\u{337}' | '\u{338}' | '\u{20e5}' // laid over another character
        | '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{2572}' | '\u{27cd}' | '\u{244a}' | '\u{20a9}' | '\u{a5}' // backslashes
        | '\u{66a}' | '\u{2052}' // percent signs
    )
}

/// Whether a conversion of the character set, or IDNA, can turn a character into a dot.
fn is_like_dot(c: char) -> bool {
    matches!(
        c,
        '\u{3002}' | '\u{ff61}' | '\u{fe12}' // IDNA takes these for dots.
        | '\u{6d4}' | '\u{701}' | '\u{702}' | '\u{2027}' | '\u{a4f8}' | '\u{a4fa}' | '\u{a60e}' | '\u{10a50}' | '\u{1d16d}'
    )
}

/// Whether some programs may read a path component as `..`, because they drop non-ASCII characters,
/// whitespace, or parameters after a semicolon.
pub(crate) fn may_become_parent_dir(component: &str) -> bool {
    let component = component.split(';').next().unwrap_or_default();
    let kept = || component.chars().filter(|c| c.is_ascii() && !c.is_ascii_whitespace());
    kept().all(|c| c == '.') && kept().count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_in_any_script_are_not_ambiguous() {
        for path in [
            "/srv/docs/a.b-c_d (1) [x] {y} #z.tar.gz",
            "/srv/docs/.hidden/...x/a..b",
            "/srv/docs/100%",
            "/srv/docs/R&D drafts/a & b;c",
            "/srv/docs/100% sure/50%-60%/a",
            "/srv/docs/résumé naïve/Größe.md",
            "/srv/docs/re\u{301}sume\u{301}.md",
            "/srv/docs/資料（最新）、一覧・表！.pdf",
            "/srv/docs/Отчёт №3.docx",
            "/srv/docs/تقرير ٢٠٢٤.pdf",
            "/srv/docs/보고서.hwp",
            "/srv/docs/1920×1080 – draft — “v2”.png",
            "/srv/docs/日本.txt",
            "/srv/docs/.日本",
        ] {
            assert_eq!(ambiguity(path), None, "{path}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn whatever_may_become_a_dot_or_a_slash_is_ambiguous() {
        for part in [
            "%2e",
            "%2E%2e",
            "%252e",
            "%u002e",
            "%U002E",
            "%c0%ae",
            "%%32%65",
            "%x2e",
            "%{2e}",
            "%２ｅ",
            "a%%",
            "&#46;&#46;",
            "&period;&period;",
            "a&sol;b",
            "..;",
            "..;v=1",
            "\u{2024}\u{2024}",
            "\u{2025}",
            "\u{2026}",
            "\u{ff0e}\u{ff0e}",
            "\u{fe52}",
            "\u{3002}",
            "\u{ff61}",
            "\u{fe19}",
            "a\u{ff0f}b",
            "a\u{2044}b",
            "a\u{2215}b",
            "a\u{29f8}b",
            "a\u{ff3c}b",
            "a\u{2216}b",
            "a\u{fe68}b",
            "a\u{a5}b",
            "a\u{2100}b",
            "a\u{2105}b",
            "\u{ff05}2e",
            "\u{66a}",
            "a\u{338}",
            ".\u{200b}.",
            "\u{200b}",
            "a\u{feff}",
            "a\u{202e}b",
            "a\u{ad}b",
            "a\u{fe0f}b",
            "a\u{e0041}b",
            "a\u{3164}b",
            "a\u{34f}b",
            "a\u{2028}b",
            "a\u{e000}b",
            "a\u{85}b",
            "a\nb",
            "a\0b",
            "a\u{7f}b",
            ".é.",
            "..é",
            "é..",
            ".\u{301}.",
            ". .",
            ".\u{a0}.",
            " a",
            "a ",
            "\u{3000}a",
            "a\\b",
        ] {
            for path in [format!("/srv/docs/{part}/x"), format!("/srv/docs/{part}")] {
                assert!(ambiguity(&path).is_some(), "{path:?}");
            }
        }
    }
}
