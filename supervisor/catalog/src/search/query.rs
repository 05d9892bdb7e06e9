//! What is asked for: words, each with the other ways to say it, and names that are meant exactly.

use super::corpus::{Corpus, is_known};
use super::index::bare;
use super::word_lists::{begins_question, is_without_meaning, synonyms_of, wanted_by_question, weight};
use super::words::{of_name, stem};

/// Of a query no more is read.
const QUERY_CHARS_MAX: usize = 1_000;
/// Words of a query that count.
const WORDS_MAX: usize = 16;
/// Words that are looked for as slips of others, and what may be found for each.
const SLIPS_MAX: usize = 4;
const GUESSES_MAX: usize = 6;
const LOOKED_AT_MAX: usize = 200;
const GUESSED: f32 = 0.6;
const JOINED: f32 = 0.9;

fn asks(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| begins_question(&word.to_lowercase()))
}

/// One word, in the order of what the ways to say it are worth.
pub(super) struct Wanted {
    pub(super) ways: Vec<(String, f32)>,
}

pub(super) struct Query {
    pub(super) wanted: Vec<Wanted>,
    /// As they would be compared with names.
    pub(super) names: Vec<String>,
}

impl Query {
    pub(super) fn of(text: &str, corpora: &[Corpus<'_>]) -> Self {
        let text: String = text.chars().take(QUERY_CHARS_MAX).collect();
        let mut all: Vec<&str> = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if !all.iter().any(|other| other.eq_ignore_ascii_case(word)) {
                all.push(word);
            }
        }
        let telling: Vec<&str> = all
            .iter()
            .copied()
            .filter(|word| !is_without_meaning(&word.to_lowercase()))
            .take(WORDS_MAX)
            .collect();
        let telling = if telling.is_empty() { all.into_iter().take(WORDS_MAX).collect() } else { telling };
        let mut slips = SLIPS_MAX;
        let mut wanted: Vec<Wanted> = telling.iter().map(|word| Wanted::of(word)).collect();
        for one in &mut wanted {
            if slips > 0 && !one.ways.iter().any(|(way, _)| is_known(way, corpora)) {
                slips -= 1;
                one.guess(corpora);
            }
        }
        wanted.extend(telling.windows(2).filter_map(|pair| {
            let joined = stem(&format!("{}{}", pair[0], pair[1]).to_lowercase());
            let known = is_known(&joined, corpora);
            known.then(|| Wanted { ways: vec![(joined, JOINED)] })
        }));
        if asks(&text) {
            wanted.push(Wanted { ways: wanted_by_question().to_vec() });
        }
        let mut names: Vec<String> = vec![bare(&text)];
        names.extend(text.split_whitespace().filter(|word| word.contains(['_', '.', '-', '/'])).map(bare));
        Self { wanted, names }
    }
}

impl Wanted {
    fn of(word: &str) -> Self {
        // The whole is last, and counts most; the parts of a joined word are ways to say it.
        let weight = weight(&word.to_lowercase());
        let mut forms = of_name(word, 8);
        let whole = forms.pop().unwrap_or_default();
        let mut ways = vec![(whole.clone(), weight)];
        ways.extend(forms.into_iter().map(|part| (part, 0.7)));
        ways.extend(synonyms_of(&whole).iter().map(|(other, same)| (other.clone(), same * weight.sqrt())));
        Self { ways }
    }

    /// A word that nobody has may be a slip, or the beginning of one that is known.
    fn guess(&mut self, corpora: &[Corpus<'_>]) {
        let Some((word, _)) = self.ways.first().cloned() else { return };
        let length = word.chars().count();
        let far = match length {
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        let mut guesses: Vec<(usize, &str)> = Vec::new();
        for known in corpora.iter().flat_map(|corpus| corpus.index.vocabulary.iter()) {
            if guesses.len() == LOOKED_AT_MAX {
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
        let ways = guesses.into_iter().take(GUESSES_MAX);
        self.ways.extend(ways.map(|(distance, known)| (known.to_owned(), GUESSED / distance as f32 * 1.2)));
    }
}
