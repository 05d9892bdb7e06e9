//! How well a search finds what people ask for, by `tests/search/questions.tsv`: their words, and the tools that answer them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{Lockhouse, Session, structured};

/// Searches, of two seconds each while a server starts.
const PATIENCE_SEARCHES: usize = 60;

/// One line of the file.
#[derive(Debug)]
pub struct Question {
    /// In the words of somebody who does not know the names.
    pub words: String,
    /// `server.tool`; any of them will do.
    pub tools: Vec<String>,
    /// Whether nothing was tuned on it.
    pub held_out: bool,
}

/// What became of a number of questions.
#[derive(Debug, Default)]
pub struct Figures {
    /// The place of the first tool that answers, from 0; `None` if it is not among those shown.
    places: Vec<Option<usize>>,
    /// How long each took.
    pub times: Vec<Duration>,
}

impl Figures {
    /// Adds one question and what was found, best first.
    pub fn add(&mut self, question: &Question, found: &[String], took: Duration) {
        self.places.push(found.iter().position(|name| question.tools.contains(name)));
        self.times.push(took);
    }

    /// How many questions there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The part of the questions that have an answer among the first so many.
    #[must_use]
    pub fn recall(&self, among: usize) -> f64 {
        let found = self.places.iter().flatten().filter(|place| **place < among).count();
        found as f64 / self.places.len().max(1) as f64
    }

    /// The mean of 1 / place, of the first ten.
    #[must_use]
    pub fn mean_reciprocal_rank(&self) -> f64 {
        let each = self.places.iter().flatten().map(|place| 1.0 / (*place as f64 + 1.0));
        each.sum::<f64>() / self.places.len().max(1) as f64
    }
}

/// All questions.
///
/// # Panics
/// If the file is not as it should be.
#[must_use]
pub fn questions() -> Vec<Question> {
    let text = include_str!("../search/questions.tsv");
    let question = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [words, tools, held_out] = columns[..] else { panic!("not three columns: {line}") };
        let tools = tools.split(' ').map(str::to_owned).collect();
        Question { words: words.to_owned(), tools, held_out: held_out == "yes" }
    };
    text.lines().skip(1).map(question).collect()
}

/// The catalogues of `LOCKHOUSE_CATALOGUES`, in the order of their names: files with the answers of real servers to
/// `tools/list`, each named as its server.
///
/// # Panics
/// If the directory cannot be read.
#[must_use]
pub fn catalogues() -> Option<Vec<(String, PathBuf)>> {
    let directory = std::env::var_os("LOCKHOUSE_CATALOGUES").filter(|value| !value.is_empty())?;
    let entries = std::fs::read_dir(Path::new(&directory)).expect("the directory of LOCKHOUSE_CATALOGUES");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_catalogue = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let name = |path: PathBuf| (path.file_stem().expect("a name").to_string_lossy().into_owned(), path);
    let mut catalogues: Vec<(String, PathBuf)> = paths.filter(is_catalogue).map(name).collect();
    catalogues.sort();
    Some(catalogues)
}

impl Lockhouse {
    /// With a server for each catalogue, all of whose tools are permitted.
    #[must_use]
    pub fn with_catalogues(catalogues: &[(String, PathBuf)]) -> Self {
        Self::new().adding_catalogues(catalogues)
    }

    /// The same for one that has files already.
    #[must_use]
    pub fn adding_catalogues(self, catalogues: &[(String, PathBuf)]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/catalogue.py");
        let mut policy = "version = 1\n".to_owned();
        let mut lockhouse = self;
        for (name, path) in catalogues {
            let entry = serde_json::json!({"command": "python3", "args": [&script, path]});
            lockhouse = lockhouse.servers_entry(name, entry);
            policy.push_str(&format!("[servers.{name}]\nallow = [\"*\"]\n"));
        }
        lockhouse.policy(&policy)
    }
}

impl Session {
    /// `server.tool` of what is found, best first.
    pub async fn names_found(&self, query: &str) -> Vec<String> {
        let arguments = serde_json::json!({"query": query, "detail": "names"});
        let found = structured(self.call("search_tools", arguments).await);
        let name = |tool: &Value| {
            format!("{}.{}", tool["server"].as_str().unwrap_or(""), tool["tool"].as_str().unwrap_or(""))
        };
        found["tools"].as_array().into_iter().flatten().map(name).collect()
    }

    /// Waits until every server is there: dozens of interpreters take their time. A search itself waits for them, for a while.
    ///
    /// # Panics
    /// If one of them does not come.
    pub async fn all_connected(&self) {
        for _ in 0..PATIENCE_SEARCHES {
            let found = self.search_tools("nothing of that kind").await;
            if found.get("unavailable").is_none() {
                return;
            }
        }
        panic!("never happened: all servers are connected");
    }
}
