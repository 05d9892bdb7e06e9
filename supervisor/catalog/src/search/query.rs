//! Parses a search query: its words with their synonyms, and the tool names in it.

use super::corpus::{Corpus, is_indexed};
use super::index::normalize_name;
use super::tokenizer::{split_name, stem};
use super::word_lists::{begins_question, implied_by_question, is_stop_word, synonyms_for, weight};

/// Maximum length of a search query, in characters. The rest is ignored.
/// Bound: tools and searches.
const QUERY_CHARS_MAX: usize = 1_000;
/// Maximum number of words of a query that are searched for. Further words are ignored.
/// Bound: tools and searches.
const WORDS_MAX: usize = 16;
/// Maximum number of unknown words of a query that are treated as misspellings.
const MISSPELLINGS_MAX: usize = 4;
/// Maximum number of indexed words that are added as variants of a misspelled word.
const GUESSES_MAX: usize = 6;
/// Maximum number of similar indexed words from which the variants of a misspelled word are selected.
const GUESSES_COMPARED_MAX: usize = 200;
/// Factor in the weight of an indexed word that is added as a variant of a misspelled word. The weight
/// also depends on the edit distance between the two words.
const GUESS_WEIGHT: f32 = 0.6;
/// Weight of an indexed word that consists of two consecutive words of the query.
const JOINED_WEIGHT: f32 = 0.9;

fn is_question(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| begins_question(&word.to_lowercase()))
}

/// A word of the query and its variants, such as synonyms. Each is a stem with its weight, and the word
/// itself is first.
pub(super) struct QueryTerm {
    pub(super) variants: Vec<(String, f32)>,
    /// Whether the word alone may describe a wanted tool, as most nouns do. False for words of little meaning, for two
    /// words joined into one, and for words that were added because the query is a question.
    pub(super) is_topic: bool,
}

pub(super) struct Query {
    pub(super) terms: Vec<QueryTerm>,
    /// The texts of the query that may be tool names, in lower case without punctuation: first the complete query, then
    /// its words that contain `_`, `.`, `-` or `/`.
    pub(super) names: Vec<String>,
}

impl Query {
    pub(super) fn parse(text: &str, corpora: &[Corpus<'_>]) -> Self {
        let text: String = text.chars().take(QUERY_CHARS_MAX).collect();
        let mut all: Vec<&str> = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if !all.iter().any(|other| other.eq_ignore_ascii_case(word)) {
                all.push(word);
            }
        }
        let significant: Vec<&str> =
            all.iter().copied().filter(|word| !is_stop_word(&word.to_lowercase())).take(WORDS_MAX).collect();
        let significant =
            if significant.is_empty() { all.into_iter().take(WORDS_MAX).collect() } else { significant };
        let mut misspellings = MISSPELLINGS_MAX;
        let mut terms: Vec<QueryTerm> = significant.iter().map(|word| QueryTerm::new(word)).collect();
        for one in &mut terms {
            if misspellings > 0 && !one.variants.iter().any(|(way, _)| is_indexed(way, corpora)) {
                misspellings -= 1;
                one.add_guesses(corpora);
            }
        }
        terms.extend(significant.windows(2).filter_map(|pair| {
            let joined = stem(&format!("{}{}", pair[0], pair[1]).to_lowercase());
            let known = is_indexed(&joined, corpora);
            known.then(|| QueryTerm { variants: vec![(joined, JOINED_WEIGHT)], is_topic: false })
        }));
        if is_question(&text) {
            terms.push(QueryTerm { variants: implied_by_question().to_vec(), is_topic: false });
        }
        let mut names: Vec<String> = vec![normalize_name(&text)];
        names.extend(
            text.split_whitespace().filter(|word| word.contains(['_', '.', '-', '/'])).map(normalize_name),
        );
        Self { terms, names }
    }
}

impl QueryTerm {
    fn new(word: &str) -> Self {
        // `split_name` returns the whole word last. The whole word has the highest weight, and its parts count as
        // variants.
        let weight = weight(&word.to_lowercase());
        let mut forms = split_name(word, 8);
        let whole = forms.pop().unwrap_or_default();
        let mut variants = vec![(whole.clone(), weight)];
        variants.extend(forms.into_iter().map(|part| (part, 0.7)));
        variants
            .extend(synonyms_for(&whole).iter().map(|(other, same)| (other.clone(), same * weight.sqrt())));
        Self { variants, is_topic: weight >= 1.0 }
    }

    /// Adds variants for a query word that is not in the index: indexed words of which it may be a misspelling, indexed
    /// words that begin with it, and indexed words with which it begins.
    fn add_guesses(&mut self, corpora: &[Corpus<'_>]) {
        let Some((word, _)) = self.variants.first().cloned() else { return };
        let length = word.chars().count();
        let far = match length {
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        let mut guesses: Vec<(usize, &str)> = Vec::new();
        for known in corpora.iter().flat_map(|corpus| corpus.index.vocabulary.iter()) {
            if guesses.len() == GUESSES_COMPARED_MAX {
                break;
            }
            if known.len().abs_diff(word.len()) > far + 6
                || guesses.iter().any(|(_, other)| **other == **known)
            {
                continue;
            }
            let begins =
                length >= 3 && (known.starts_with(&word) || (known.len() > 3 && word.starts_with(&**known)));
            if begins {
                guesses.push((1, known));
            } else if far > 0 && known.len().abs_diff(word.len()) <= far {
                let distance = strsim::damerau_levenshtein(known, &word);
                if distance <= far {
                    guesses.push((distance, known));
                }
            }
        }
        guesses.sort_unstable();
        let variants = guesses.into_iter().take(GUESSES_MAX);
        self.variants.extend(
            variants.map(|(distance, known)| (known.to_owned(), GUESS_WEIGHT / distance as f32 * 1.2)),
        );
    }
}
