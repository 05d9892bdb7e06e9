//! Splits text into words for the search. Words are converted to lower case, compound names are split, and English
//! endings are removed.

/// Maximum length of an indexed word, in characters. The rest is removed.
const WORD_CHARS_MAX: usize = 32;

/// Splits a name into at most `most` stemmed words. A compound word, such as `listIssues`, yields its parts and then
/// the whole word.
pub(super) fn split_name(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if words.len() >= most {
            break;
        }
        let word: String = word.chars().take(WORD_CHARS_MAX).collect();
        let parts = word_parts(&word);
        if parts.len() > 1 {
            let significant = parts.iter().filter(|part| part.chars().nth(1).is_some());
            words.extend(significant.map(|part| stem(&part.to_lowercase())));
        }
        words.push(stem(&word.to_lowercase()));
    }
    words.truncate(most);
    words
}

/// Splits a name into at most `most` words in lower case, without stemming: `listIssues` yields `list` and `issues`.
pub(crate) fn name_words(name: &str, most: usize) -> Vec<String> {
    let compounds = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    compounds.flat_map(word_parts).take(most).map(str::to_lowercase).collect()
}

/// Splits prose into at most `most` stemmed words. Compound words are not split, because in prose they are brands such
/// as OpenAI.
pub(super) fn split_text(text: &str, most: usize) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let cut = |word: &str| word.chars().take(WORD_CHARS_MAX).collect::<String>().to_lowercase();
    words.take(most).map(|word| stem(&cut(word))).collect()
}

/// Splits a compound word into its parts: `generateReactCode` and `parseXMLFile` have three parts, `utf8` has two.
fn word_parts(word: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = word.char_indices().collect();
    let (mut parts, mut start) = (Vec::new(), 0);
    for (index, window) in characters.windows(2).enumerate() {
        let [(_, before), (at, here)] = [window[0], window[1]];
        let after = characters.get(index + 2).map(|(_, after)| *after);
        // A plural of capitals, such as URLs, is one word.
        if after.is_none() && before.is_uppercase() && here == 's' {
            continue;
        }
        let rises = before.is_lowercase() && here.is_uppercase();
        let plural = after == Some('s') && characters.len() == index + 3;
        let ends_capitals =
            before.is_uppercase() && here.is_uppercase() && after.is_some_and(char::is_lowercase) && !plural;
        if rises || ends_capitals || before.is_numeric() != here.is_numeric() {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// Removes English endings from a word in lower case. Queries and indexed texts are stemmed in the same way, so a stem
/// need not be an English word.
pub(super) fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 3 {
        return word.to_owned();
    }
    let mut stem = singular(word);
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= 3
            && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            stem = strip_doubled_consonant(rest).to_owned();
            break;
        }
    }
    if let Some(rest) = stem.strip_suffix("ion")
        && rest.len() >= 4
        && ["at", "et", "it", "ut"].iter().any(|ending| rest.ends_with(ending))
    {
        stem = rest.to_owned();
    }
    if stem.len() > 3
        && let Some(rest) = stem.strip_suffix('e')
    {
        stem = rest.to_owned();
    }
    stem
}

fn singular(word: &str) -> String {
    for ending in ["ies", "ied"] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() > 1
        {
            return format!("{rest}y");
        }
    }
    for ending in ["sses", "xes", "ches", "shes", "zes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    let stays = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    word.strip_suffix('s').filter(|_| !stays).unwrap_or(word).to_owned()
}

/// Reduces a doubled consonant at the end to one: `runn` becomes `run`, but `call` and `add` are unchanged.
fn strip_doubled_consonant(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [_, _, .., a, b] if a == b && !b"lsz".contains(b) && !b"aeiou".contains(b) => &word[..word.len() - 1],
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compound_names_yield_their_parts_and_the_whole() {
        let of = |text| split_name(text, 20);
        assert_eq!(of("generateReactCode"), ["generat", "react", "cod", "generatereactcod"]);
        assert_eq!(of("mcp__github__list-issues"), ["mcp", "github", "list", "issu"]);
        assert_eq!(of("PRs URLs"), ["pr", "url"]);
        assert_eq!(of("parseXMLFile utf8"), ["pars", "xml", "fil", "parsexmlfil", "utf", "utf8"]);
        assert_eq!(of("Größe, 数据"), ["größe", "数据"]);
    }

    #[test]
    fn inflections_have_the_same_stem() {
        for forms in [
            &["create", "creates", "created", "creating", "creation"][..],
            &["query", "queries", "queried", "querying"],
            &["run", "runs", "running"],
            &["delete", "deleted", "deletion"],
            &["search", "searches", "searching"],
            &["box", "boxes"],
            &["call", "calling", "called"],
            &["add", "adds", "adding", "added"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|one| *one == stems[0]), "{stems:?}");
        }
        assert_ne!(stem("status"), stem("state"));
    }

    #[test]
    fn parsing_is_bounded_for_any_text() {
        assert_eq!(split_name(&"word ".repeat(100_000), 50).len(), 50);
        assert_eq!(split_text(&"x".repeat(1_000_000), 50)[0].len(), WORD_CHARS_MAX);
    }
}
