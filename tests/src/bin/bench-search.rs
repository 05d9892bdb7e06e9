//! `make bench-search`: measures how well `search_tools` answers users' questions about the tools of real servers,
//! in comparison with a plain substring search. `LOCKHOUSE_CATALOGUES` names a directory with the `tools/list`
//! answer of each server as NAME.json.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a table")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lockhouse_tests::{Figures, Lockhouse, Question, catalogues, questions};
use serde_json::Value;

/// The minimum fraction of questions with a correct tool among the first five search results. The program fails below
/// this fraction.
const RECALL_MIN: f64 = 0.9;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(catalogues) = catalogues() else {
        eprintln!(
            "bench-search: set LOCKHOUSE_CATALOGUES to a directory with NAME.json for each server: its answer to tools/list"
        );
        return ExitCode::FAILURE;
    };
    let texts = texts(&catalogues);
    let lockhouse = Lockhouse::with_catalogues(&catalogues);
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let (mut ours, mut plain): ([Figures; 3], [Figures; 3]) = Default::default();
    let mut missed = Vec::new();
    for question in questions() {
        let started = Instant::now();
        let found = session.names_found(&question.words).await;
        let took = started.elapsed();
        if !found.iter().take(5).any(|name| question.tools.contains(name)) && !question.held_out {
            missed.push((question.words.clone(), found.first().cloned().unwrap_or_default()));
        }
        add(&mut ours, &question, &found, took);
        let started = Instant::now();
        let found = by_substring(&texts, &question.words);
        add(&mut plain, &question, &found, started.elapsed());
    }
    session.close().await;
    println!("{} tools of {} servers\n", texts.len(), catalogues.len());
    let columns = ["questions", "recall@1", "recall@5", "recall@10", "MRR", "median ms", "p99 ms"];
    print!("{:<28}", "");
    columns.iter().for_each(|column| print!("{column:>11}"));
    println!();
    for (name, figures) in [("search_tools", &ours), ("plain substring search", &plain)] {
        println!("{name}");
        for (part, figures) in ["  all", "  tuned on", "  held out"].iter().zip(figures) {
            row(part, figures);
        }
    }
    println!("\nnot among the first five, of those tuned on:");
    for (words, first) in missed {
        println!("  {words}  (first: {first})");
    }
    let worst = ours.iter().map(|figures| figures.recall(5)).fold(1.0, f64::min);
    if worst < RECALL_MIN {
        eprintln!("bench-search: recall@5 is {worst:.3}, below {RECALL_MIN}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn add(figures: &mut [Figures; 3], question: &Question, found: &[String], took: Duration) {
    figures[0].add(question, found, took);
    figures[if question.held_out { 2 } else { 1 }].add(question, found, took);
}

fn row(name: &str, figures: &Figures) {
    let mut times = figures.times.clone();
    times.sort_unstable();
    let at = |part: f64| {
        let index = (times.len() as f64 * part) as usize;
        times.get(index.min(times.len().saturating_sub(1))).map_or(0.0, Duration::as_secs_f64) * 1e3
    };
    print!("{name:<28}{:>11}", figures.count());
    for recall in [1, 5, 10].map(|among| figures.recall(among)) {
        print!("{recall:>11.3}");
    }
    println!("{:>11.3}{:>11.2}{:>11.2}", figures.mean_reciprocal_rank(), at(0.5), at(0.99));
}

/// Returns for every tool its name (`server.tool`), and the text that is searched: its name and description in lower
/// case.
fn texts(catalogues: &[(String, PathBuf)]) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (server, path) in catalogues {
        let listed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for tool in listed["tools"].as_array().unwrap() {
            let name = format!("{server}.{}", tool["name"].as_str().unwrap());
            let text = format!("{name} {}", tool["description"].as_str().unwrap_or_default()).to_lowercase();
            texts.push((name, text));
        }
    }
    texts
}

/// Ranks the tools by the number of query words, of at least three bytes each, that their name or description contains
/// as a substring, and returns the names of the first ten. `texts` comes from [`texts`].
fn by_substring(texts: &[(String, String)], query: &str) -> Vec<String> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().filter(|word| word.len() > 2).collect();
    let count = |text: &str| words.iter().filter(|word| text.contains(**word)).count();
    let mut found: Vec<(usize, &String)> =
        texts.iter().map(|(name, text)| (count(text), name)).filter(|(count, _)| *count > 0).collect();
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found.into_iter().take(10).map(|(_, name)| name.clone()).collect()
}
