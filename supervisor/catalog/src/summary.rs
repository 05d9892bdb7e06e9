//! The summary of a tool: what it does, how its pages are read and what it returns, from sentences of its description.

const SUMMARY_CHARS_MAX: usize = 160;
/// Minimum number of characters that must be left in a summary for the sentence about the result. If
/// fewer are left, the sentence is omitted.
const RESULT_CHARS_MIN: usize = 40;
/// Abbreviations whose period does not end a sentence.
const ABBREVIATIONS: [&str; 11] =
    ["e.g", "i.e", "etc", "vs", "cf", "approx", "no", "incl", "excl", "resp", "max"];
/// A sentence of a description is about the result if it begins with one of these words.
const RESULT_WORDS: [&str; 4] = ["return", "returns", "returned", "response"];
/// Maximum number of characters of the sentence about pages, which a summary has in addition.
const PAGING_CHARS_MAX: usize = 140;
/// Words of a sentence that says how the next page of a result is read.
const PAGING_WORDS: [&str; 8] =
    ["cursor", "next page", "next_page", "nextpage", "page_token", "pagetoken", "pagination", "page until"];
const DEPRECATED: &str = "DEPRECATED";

/// Returns the summary of a description: its first sentence, the sentence about the result if there is room, and the first
/// sentence about pages. Without that sentence, a program would take the first page for the whole result.
pub(super) fn summary(description: &str) -> String {
    let description = description.replace('\t', " ");
    let first = first_sentence(&description);
    let mut summary = match is_deprecated(&description) && !first.to_lowercase().contains("deprecated") {
        true => format!("{DEPRECATED}. {first}"),
        false => first.to_owned(),
    };
    let room = SUMMARY_CHARS_MAX.saturating_sub(summary.chars().count() + 2);
    if room >= RESULT_CHARS_MIN
        && let Some(result) = result_sentence(&description).filter(|result| *result != first)
    {
        let separator = if summary.ends_with(['.', '!', '?', ':']) { " " } else { ". " };
        summary.push_str(separator);
        let is_cut = result.chars().count() > room;
        summary.extend(result.chars().take(if is_cut { room - 1 } else { room }));
        summary.push_str(if is_cut { "…" } else { "" });
    }
    let mut summary: String = summary.chars().take(SUMMARY_CHARS_MAX).collect();
    if let Some(paging) = paging_sentence(&description)
        && !summary.contains(paging)
    {
        let separator = if summary.ends_with(['.', '!', '?', ':']) { " " } else { ". " };
        summary.push_str(separator);
        summary.extend(paging.chars().take(PAGING_CHARS_MAX));
    }
    summary
}

/// Returns the first sentence that says how the next page of a result is read.
fn paging_sentence(description: &str) -> Option<&str> {
    let is_about_pages = |sentence: &&str| {
        let lower = sentence.to_lowercase();
        PAGING_WORDS.iter().any(|word| lower.contains(word))
    };
    description.lines().map(str::trim).flat_map(sentences).find(is_about_pages)
}

/// Returns the first sentence of a description.
pub(super) fn first_sentence(description: &str) -> &str {
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    sentences(line).next().unwrap_or_default()
}

/// Returns whether a description says that its tool is deprecated. A tool that only deals with deprecated
/// things does not count.
pub(super) fn is_deprecated(description: &str) -> bool {
    let start = description.trim_start_matches(|c: char| !c.is_alphanumeric());
    let begins = start.get(..DEPRECATED.len()).is_some_and(|word| word.eq_ignore_ascii_case(DEPRECATED));
    begins
        || description.contains(DEPRECATED)
        || ["tool is deprecated", "function is deprecated", "has been deprecated"]
            .iter()
            .any(|words| description.contains(words))
}

/// Returns the first sentence that begins with a word such as "Returns". For a heading (`Returns:`), returns the
/// heading with the line below it.
fn result_sentence(description: &str) -> Option<String> {
    let mut lines = description.lines().map(str::trim).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        let Some(found) = sentences(line).find(|sentence| is_about_result(sentence)) else { continue };
        return Some(match found.ends_with(':') {
            true => format!("{found} {}", sentences(lines.next()?).next()?),
            false => found.to_owned(),
        });
    }
    None
}

fn is_about_result(sentence: &str) -> bool {
    let word = sentence.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    RESULT_WORDS.iter().any(|result| word.eq_ignore_ascii_case(result))
}

/// Splits a line into its sentences.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = rest.match_indices(['.', '!', '?']).map(|(at, end)| at + end.len());
        let end = ends.into_iter().find(|end| is_sentence_end(rest, *end)).unwrap_or(rest.len());
        let sentence = rest[..end].trim_end();
        rest = rest[end..].trim_start();
        Some(sentence)
    })
}

/// Returns whether a sentence ends at the byte position `end`, which is after a `.`, `!` or `?`. A sentence ends there
/// if whitespace follows, then a character other than a lower-case letter, and if the word before is no abbreviation.
fn is_sentence_end(text: &str, end: usize) -> bool {
    let (before, after) = text.split_at(end);
    let next = after.trim_start().chars().next();
    let word =
        before.trim_end_matches(['.', '!', '?']).rsplit([' ', '(', '[', ',']).next().unwrap_or_default();
    let is_abbreviation = ABBREVIATIONS.iter().any(|known| word.eq_ignore_ascii_case(known));
    after.starts_with(char::is_whitespace) && !is_abbreviation && next.is_some_and(|c| !c.is_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_first_sentence_and_the_one_about_the_result() {
        let rows = [
            ("Lists issues. More words.", "Lists issues."),
            ("Searches, e.g. by label. It is fast.", "Searches, e.g. by label."),
            ("Searches labels, etc. The rest.", "Searches labels, etc. The rest."),
            ("Version 1.2 of it. More.", "Version 1.2 of it."),
            (
                "Gets a user. Uses the cache. Returns the user with his groups.",
                "Gets a user. Returns the user with his groups.",
            ),
            (
                "Gets a user\n\nArgs:\n    id: the user\n\nReturns:\n    dict: the user. More",
                "Gets a user. Returns: dict: the user.",
            ),
            ("Returns all users. Cached.", "Returns all users."),
            ("", ""),
            ("Gets x. This tool is deprecated: use y.", "DEPRECATED. Gets x."),
            ("[DEPRECATED] Gets x.", "[DEPRECATED] Gets x."),
            ("Finds deprecated functions.", "Finds deprecated functions."),
            (
                "Lists contacts. Sorted by name. Repeat with next_cursor until it is null. Returns rows.",
                "Lists contacts. Returns rows. Repeat with next_cursor until it is null.",
            ),
            (
                "Lists a page; pass the cursor for the next. More.",
                "Lists a page; pass the cursor for the next.",
            ),
        ];
        for (description, expected) in rows {
            assert_eq!(summary(description), expected, "{description:?}");
        }
    }

    #[test]
    fn a_summary_is_bounded() {
        let long = format!("Gets {}. Returns {}.", "a".repeat(60), "b ".repeat(300));
        let cut = summary(&long);
        assert!(cut.chars().count() <= SUMMARY_CHARS_MAX && cut.ends_with('…'), "{cut}");
        assert_eq!(summary(&"x".repeat(500)).chars().count(), SUMMARY_CHARS_MAX);
        let paged = summary(&format!("{}. Repeat with the cursor {}.", "x".repeat(500), "y".repeat(500)));
        assert_eq!(paged.chars().count(), SUMMARY_CHARS_MAX + 2 + PAGING_CHARS_MAX);
    }

    #[test]
    fn deprecated_tools_are_recognized() {
        for text in
            ["DEPRECATED: use y", "(deprecated) x", "Gets x. DEPRECATED.", "x. This tool is deprecated."]
        {
            assert!(is_deprecated(text), "{text}");
        }
        for text in ["Lists deprecated APIs", "", "Deprecate a package", "Marks it as deprecated"] {
            assert!(!is_deprecated(text), "{text}");
        }
    }
}
