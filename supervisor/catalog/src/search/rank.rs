//! Ranks tools by BM25F over all their fields.

use std::collections::HashMap;

use super::corpus::Corpus;
use super::index::FIELDS;
use super::query::Query;
use super::tokenizer::split_name;

/// Weight of a word in each field: name, summary, description, parameter names, parameter descriptions.
const FIELD_WEIGHTS: [f32; FIELDS] = [5.5, 1.8, 1.0, 0.25, 0.85];
/// Weight of a query word that is part of the server's name.
const SERVER_NAME_WEIGHT: f32 = 30.0;
/// How much the length of each field reduces the weight of the words in it, from 0 (not at all) to 1.
const LENGTH_NORMALIZATION: [f32; FIELDS] = [1.0, 0.45, 0.8, 0.4, 0.35];
/// The saturation of BM25: the weighted frequency at which a word reaches half of its maximum score.
const SATURATION: f32 = 2.2;
/// The part of its score that a tool keeps even if it matches only a small part of the query. The other part shrinks
/// with the share of the query that the tool matches.
const COVERAGE_FLOOR: f32 = 0.33;
/// The share of the best tool's score for a query word that another tool must have to count as a good match for the
/// word.
const TOPIC_SCORE_MIN: f32 = 0.6;

/// A tool that matches the query: the position of its server in the list of corpora, the position of the tool in the
/// server's catalogue, and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub corpus: usize,
    pub tool: u16,
    /// How certain it is that the query names this tool, from 1 to 4; 0 if the query does not name it.
    pub(super) named: u8,
    pub(super) score: f32,
    /// The words of the query for which this tool is a good match, as a bit set. Bit N is set if the searched word N of
    /// the query (counted from 0) may describe a tool, and this tool has at least the share [`TOPIC_SCORE_MIN`] of the
    /// best tool's score for the word.
    pub(super) topics: u32,
}

impl Hit {
    /// Returns the tool's score for the query's words that it matches. Scores are comparable only within one
    /// search.
    pub fn score(&self) -> f32 {
        self.score
    }

    /// Returns whether the query names this tool.
    pub fn is_named(&self) -> bool {
        self.named > 0
    }

    /// Returns the words of the query for which this tool is a good match, as a bit set. Bit N is set if the searched
    /// word N of the query (counted from 0) may describe a tool, and this tool has at least 60 % of the best tool's
    /// score for the word.
    pub fn topics(&self) -> u32 {
        self.topics
    }

    /// Creates the hit for a tool that matches words of the query, but whose name is not in the query. `topics` is the
    /// bit set that [`Self::topics()`] returns.
    pub fn by_words(corpus: usize, tool: u16, score: f32, topics: u32) -> Self {
        Self { corpus, tool, named: 0, score, topics }
    }
}

/// The tools that contain one variant of a query word (the word itself or, for example, a synonym): for each, its
/// position in [`CandidateTools::tools`], and how often it contains the variant, weighted by field.
struct VariantMatches {
    weight: f32,
    tools: Vec<(usize, f32)>,
}

pub(super) fn score(query: &Query, corpora: &[Corpus<'_>]) -> Vec<Hit> {
    let candidates = CandidateTools::new(corpora);
    let mut scores = vec![(0.0_f32, 0.0_f32, 0_u32); candidates.tools.len()];
    let total = candidates.tools.len() as f32;
    let mut all = 0.0;
    for (terms, position) in query.terms.iter().zip(0_u32..) {
        let topic = if terms.is_topic { 1 << position } else { 0 };
        let found: Vec<VariantMatches> =
            terms.variants.iter().map(|(word, weight)| candidates.find(word, *weight)).collect();
        let rarity = |count: usize| (1.0 + (total - count as f32 + 0.5) / (count as f32 + 0.5)).ln();
        // A synonym has at most the weight of the word in the query, even if it is rarer.
        let written = found.first().filter(|found| !found.tools.is_empty()).map(|f| rarity(f.tools.len()));
        let mut best: HashMap<usize, f32> = HashMap::new();
        let mut most = 0.0_f32;
        for found in found.iter().filter(|found| !found.tools.is_empty()) {
            let rarity = rarity(found.tools.len()).min(written.unwrap_or(f32::MAX));
            most = most.max(rarity * found.weight);
            for (position, frequency) in &found.tools {
                let score = found.weight * rarity * frequency / (SATURATION + frequency);
                let best = best.entry(*position).or_default();
                *best = best.max(score);
            }
        }
        all += most;
        let highest = best.values().copied().fold(0.0, f32::max);
        for (position, score) in best {
            scores[position].0 += score;
            scores[position].1 += most.min(score * 2.0);
            scores[position].2 |= if score >= highest * TOPIC_SCORE_MIN { topic } else { 0 };
        }
    }
    let hit = |(position, (score, covered, topics)): (usize, (f32, f32, u32))| {
        let (corpus, tool) = candidates.tools[position];
        let score = score * (COVERAGE_FLOOR + (1.0 - COVERAGE_FLOOR) * covered / all.max(f32::MIN_POSITIVE));
        Hit { corpus, tool, named: 0, score, topics }
    };
    scores.into_iter().enumerate().filter(|(_, (score, ..))| *score > 0.0).map(hit).collect()
}

/// The permitted tools of all servers, as one list.
struct CandidateTools<'a> {
    corpora: &'a [Corpus<'a>],
    tools: Vec<(usize, u16)>,
    /// For each server, the position of its first tool in `tools`.
    starts: Vec<usize>,
    servers: Vec<Vec<String>>,
    mean_lengths: [f32; FIELDS],
}

impl<'a> CandidateTools<'a> {
    fn new(corpora: &'a [Corpus<'a>]) -> Self {
        let (mut tools, mut starts, mut sums) = (Vec::new(), Vec::new(), [0_u64; FIELDS]);
        for (number, corpus) in corpora.iter().enumerate() {
            starts.push(tools.len());
            for tool in corpus.permitted {
                tools.push((number, *tool));
                let lengths = corpus.index.lengths.get(usize::from(*tool)).copied().unwrap_or_default();
                for (sum, length) in sums.iter_mut().zip(lengths) {
                    *sum += u64::from(length);
                }
            }
        }
        let count = tools.len().max(1) as f32;
        Self {
            servers: corpora.iter().map(|corpus| split_name(corpus.server, 8)).collect(),
            mean_lengths: sums.map(|sum| (sum as f32 / count).max(1.0)),
            corpora,
            tools,
            starts,
        }
    }

    fn find(&self, word: &str, weight: f32) -> VariantMatches {
        let mut tools = Vec::new();
        for (number, corpus) in self.corpora.iter().enumerate() {
            let start = self.starts[number];
            let of_server =
                if self.servers[number].iter().any(|name| name == word) { SERVER_NAME_WEIGHT } else { 0.0 };
            let mut postings = corpus.index.postings.get(word).map_or(&[][..], Vec::as_slice);
            for (offset, tool) in corpus.permitted.iter().enumerate() {
                if postings.is_empty() && of_server == 0.0 {
                    break;
                }
                let before = postings.iter().take_while(|posting| posting.tool < *tool).count();
                postings = &postings[before..];
                let mut frequency = of_server;
                if let Some(posting) = postings.first().filter(|posting| posting.tool == *tool) {
                    let lengths = corpus.index.lengths[usize::from(*tool)];
                    for field in 0..FIELDS {
                        let relative = f32::from(lengths[field]) / self.mean_lengths[field];
                        let norm = 1.0 - LENGTH_NORMALIZATION[field] + LENGTH_NORMALIZATION[field] * relative;
                        frequency += FIELD_WEIGHTS[field] * f32::from(posting.counts[field]) / norm;
                    }
                }
                if frequency > 0.0 {
                    tools.push((start + offset, frequency));
                }
            }
        }
        VariantMatches { weight, tools }
    }
}
