//! BM25F: how well a tool fits, over all of its texts at once.

use std::collections::HashMap;

use super::corpus::Corpus;
use super::index::FIELDS;
use super::query::Query;
use super::words::of_name;

/// What a word is worth in each text of a tool: name, summary, description, parameters, what is said of them.
const WORTH: [f32; FIELDS] = [5.5, 1.8, 1.0, 0.25, 0.85];
/// What it is worth when it is in the server's name.
const SERVER_WORTH: f32 = 30.0;
/// How much a text's length counts against it.
const LENGTH: [f32; FIELDS] = [1.0, 0.45, 0.8, 0.4, 0.35];
/// From how often on a word counts hardly any more.
const SATURATION: f32 = 2.2;
/// What a tool is worth at least of its score that has one word of many.
const COVERED: f32 = 0.33;

/// A tool that fits: the place of its server among the corpora, its own, and how well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub corpus: usize,
    pub tool: u16,
    /// How certainly it was meant by its name.
    pub(super) named: u8,
    pub(super) score: f32,
}

impl Hit {
    /// How well it fits by its words, beside others of the same search.
    pub fn score(&self) -> f32 {
        self.score
    }

    /// Whether it was meant by its name.
    pub fn is_named(&self) -> bool {
        self.named > 0
    }

    /// One by its words alone.
    pub fn of(corpus: usize, tool: u16, score: f32) -> Self {
        Self { corpus, tool, named: 0, score }
    }
}

/// A word, and the tools that have it.
struct Found {
    weight: f32,
    tools: Vec<(usize, f32)>,
}

pub(super) fn score(query: &Query, corpora: &[Corpus<'_>]) -> Vec<Hit> {
    let places = Places::of(corpora);
    let mut scores = vec![(0.0_f32, 0.0_f32); places.tools.len()];
    let total = places.tools.len() as f32;
    let mut all = 0.0;
    for wanted in &query.wanted {
        let found: Vec<Found> = wanted.ways.iter().map(|(word, weight)| places.find(word, *weight)).collect();
        let rarity = |count: usize| (1.0 + (total - count as f32 + 0.5) / (count as f32 + 0.5)).ln();
        // A rare word that was not written is worth no more than the one that was.
        let written = found.first().filter(|found| !found.tools.is_empty()).map(|f| rarity(f.tools.len()));
        let mut best: HashMap<usize, f32> = HashMap::new();
        let mut most = 0.0_f32;
        for found in found.iter().filter(|found| !found.tools.is_empty()) {
            let rarity = rarity(found.tools.len()).min(written.unwrap_or(f32::MAX));
            most = most.max(rarity * found.weight);
            for (place, frequency) in &found.tools {
                let score = found.weight * rarity * frequency / (SATURATION + frequency);
                let best = best.entry(*place).or_default();
                *best = best.max(score);
            }
        }
        all += most;
        for (place, score) in best {
            scores[place].0 += score;
            scores[place].1 += most.min(score * 2.0);
        }
    }
    let hit = |(place, (score, covered)): (usize, (f32, f32))| {
        let (corpus, tool) = places.tools[place];
        let score = score * (COVERED + (1.0 - COVERED) * covered / all.max(f32::MIN_POSITIVE));
        Hit { corpus, tool, named: 0, score }
    };
    scores.into_iter().enumerate().filter(|(_, (score, _))| *score > 0.0).map(hit).collect()
}

/// All tools that may be found, one after the other.
struct Places<'a> {
    corpora: &'a [Corpus<'a>],
    tools: Vec<(usize, u16)>,
    /// Where each server's begin.
    starts: Vec<usize>,
    servers: Vec<Vec<String>>,
    mean_lengths: [f32; FIELDS],
}

impl<'a> Places<'a> {
    fn of(corpora: &'a [Corpus<'a>]) -> Self {
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
            servers: corpora.iter().map(|corpus| of_name(corpus.server, 8)).collect(),
            mean_lengths: sums.map(|sum| (sum as f32 / count).max(1.0)),
            corpora,
            tools,
            starts,
        }
    }

    fn find(&self, word: &str, weight: f32) -> Found {
        let mut tools = Vec::new();
        for (number, corpus) in self.corpora.iter().enumerate() {
            let start = self.starts[number];
            let of_server =
                if self.servers[number].iter().any(|name| name == word) { SERVER_WORTH } else { 0.0 };
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
                        let norm = 1.0 - LENGTH[field] + LENGTH[field] * relative;
                        frequency += WORTH[field] * f32::from(posting.counts[field]) / norm;
                    }
                }
                if frequency > 0.0 {
                    tools.push((start + offset, frequency));
                }
            }
        }
        Found { weight, tools }
    }
}
