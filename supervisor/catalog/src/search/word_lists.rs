//! The stop words, weak words, question words and synonyms in `word_lists.toml`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::tokenizer::stem;

/// Weight of a weak word of a query, which says little about the wanted tool. Other words have the weight 1.
const WEAK_WEIGHT: f32 = 0.35;
const FILE: &str = include_str!("word_lists.toml");

/// The contents of `word_lists.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    stop_words: String,
    weak_words: String,
    question_words: String,
    implied_by_question: Vec<(String, f32)>,
    synonyms: Vec<Synonyms>,
}

/// Groups of synonyms that have the same weight. Each line of `lines` is one group: words with the same meaning,
/// separated by spaces.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Synonyms {
    weight: f32,
    lines: String,
}

#[derive(Debug, Default)]
struct WordLists {
    stop_words: HashSet<String>,
    weak_words: HashSet<String>,
    question_words: HashSet<String>,
    implied_by_question: Vec<(String, f32)>,
    /// The synonyms of each word, with their weights. The words and their synonyms are stored as stems.
    synonyms: HashMap<String, Vec<(String, f32)>>,
}

/// The word lists, parsed from the file at first use. They are empty if the file is invalid, which a test prevents.
static WORD_LISTS: LazyLock<WordLists> = LazyLock::new(|| WordLists::parse(FILE).unwrap_or_default());

impl WordLists {
    fn parse(file: &str) -> Result<Self, toml::de::Error> {
        let document: Document = toml::from_str(file)?;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Ok(Self {
            stop_words: words(&document.stop_words),
            weak_words: words(&document.weak_words),
            question_words: words(&document.question_words),
            implied_by_question: document.implied_by_question,
            synonyms: synonyms(&document.synonyms),
        })
    }
}

fn synonyms(tables: &[Synonyms]) -> HashMap<String, Vec<(String, f32)>> {
    let mut synonyms: HashMap<String, Vec<(String, f32)>> = HashMap::new();
    for Synonyms { weight, lines } in tables {
        for line in lines.lines() {
            let words: Vec<String> = line.split_whitespace().map(stem).collect();
            for word in &words {
                let others = synonyms.entry(word.clone()).or_default();
                for other in words.iter().filter(|other| *other != word) {
                    if !others.iter().any(|(known, _)| known == other) {
                        others.push((other.clone(), *weight));
                    }
                }
            }
        }
    }
    synonyms
}

/// Returns whether a word in lower case is a stop word.
pub(super) fn is_stop_word(word: &str) -> bool {
    WORD_LISTS.stop_words.contains(word)
}

/// Returns the weight of a query word in lower case.
pub(super) fn weight(word: &str) -> f32 {
    if WORD_LISTS.weak_words.contains(word) { WEAK_WEIGHT } else { 1.0 }
}

/// Returns whether a query that begins with this word is a question. The word is in lower case.
pub(super) fn begins_question(word: &str) -> bool {
    WORD_LISTS.question_words.contains(word)
}

/// Returns the words that a search adds to a query that is a question, with their weights.
pub(super) fn implied_by_question() -> &'static [(String, f32)] {
    &WORD_LISTS.implied_by_question
}

/// Returns the synonyms of a stem, with their weights.
pub(super) fn synonyms_for(stem: &str) -> &'static [(String, f32)] {
    WORD_LISTS.synonyms.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_lists_are_valid() {
        let lists = WordLists::parse(FILE).expect("the file");
        let counts = [lists.stop_words.len(), lists.weak_words.len(), lists.question_words.len()];
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
        let every = lists.stop_words.iter().chain(&lists.weak_words).chain(&lists.question_words);
        for word in every {
            assert_eq!(*word, word.to_lowercase(), "compared in lower case");
        }
        assert!(!lists.implied_by_question.is_empty() && lists.synonyms.len() > 300, "{lists:?}");
    }

    #[test]
    fn synonyms_are_symmetric_and_not_reflexive() {
        for (word, others) in &WORD_LISTS.synonyms {
            assert!(others.len() < 24, "{word}: {others:?}");
            for (other, weight) in others {
                assert_ne!(word, other);
                let back = synonyms_for(other).iter().find(|(back, _)| back == word);
                assert_eq!(back.map(|(_, weight)| weight), Some(weight), "{word} {other}");
            }
        }
    }
}
