//! The lists of words that a search compares with: `word_lists.toml`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::words::stem;

/// What a word counts that says little of what is wanted.
const WEAK: f32 = 0.35;
const FILE: &str = include_str!("word_lists.toml");

/// The lists as they are in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    without_meaning: String,
    weak: String,
    question: String,
    wanted_by_question: Vec<(String, f32)>,
    synonyms: Vec<Synonyms>,
}

/// Lines of words that count the same for one another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Synonyms {
    weight: f32,
    lines: String,
}

#[derive(Debug, Default)]
struct WordLists {
    without_meaning: HashSet<String>,
    weak: HashSet<String>,
    question: HashSet<String>,
    wanted_by_question: Vec<(String, f32)>,
    /// By stem.
    synonyms: HashMap<String, Vec<(String, f32)>>,
}

/// Empty if the file cannot be read, which a test rules out.
static WORD_LISTS: LazyLock<WordLists> = LazyLock::new(|| WordLists::parse(FILE).unwrap_or_default());

impl WordLists {
    fn parse(file: &str) -> Result<Self, toml::de::Error> {
        let document: Document = toml::from_str(file)?;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Ok(Self {
            without_meaning: words(&document.without_meaning),
            weak: words(&document.weak),
            question: words(&document.question),
            wanted_by_question: document.wanted_by_question,
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

/// Whether a word in lower case says nothing of what is wanted.
pub(super) fn is_without_meaning(word: &str) -> bool {
    WORD_LISTS.without_meaning.contains(word)
}

/// What a word of a query in lower case counts.
pub(super) fn weight(word: &str) -> f32 {
    if WORD_LISTS.weak.contains(word) { WEAK } else { 1.0 }
}

/// Whether a text that begins with this word in lower case is a question.
pub(super) fn begins_question(word: &str) -> bool {
    WORD_LISTS.question.contains(word)
}

/// What a question wants done, and how much it counts.
pub(super) fn wanted_by_question() -> &'static [(String, f32)] {
    &WORD_LISTS.wanted_by_question
}

/// What else a stem may mean, and how much it counts.
pub(super) fn synonyms_of(stem: &str) -> &'static [(String, f32)] {
    WORD_LISTS.synonyms.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_every_list() {
        let lists = WordLists::parse(FILE).expect("the file");
        let counts = [lists.without_meaning.len(), lists.weak.len(), lists.question.len()];
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
        let every = lists.without_meaning.iter().chain(&lists.weak).chain(&lists.question);
        for word in every {
            assert_eq!(*word, word.to_lowercase(), "compared in lower case");
        }
        assert!(!lists.wanted_by_question.is_empty() && lists.synonyms.len() > 300, "{lists:?}");
    }

    #[test]
    fn a_meaning_goes_both_ways_and_never_to_itself() {
        for (word, others) in &WORD_LISTS.synonyms {
            assert!(others.len() < 24, "{word}: {others:?}");
            for (other, weight) in others {
                assert_ne!(word, other);
                let back = synonyms_of(other).iter().find(|(back, _)| back == word);
                assert_eq!(back.map(|(_, weight)| weight), Some(weight), "{word} {other}");
            }
        }
    }
}
