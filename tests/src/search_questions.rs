//! Measures how well `search_tools` answers the questions in `tests/search/questions.tsv`: queries of users, each
//! with the tools that answer it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{Lockhouse, Session, structured};

/// The number of searches before [`Session::all_connected`] gives up. A search takes up to two seconds while a
/// server starts.
const SEARCHES_MAX: usize = 60;

/// One line of `questions.tsv`.
#[derive(Debug)]
pub struct Question {
    /// The query, phrased by a user who does not know the tools' names.
    pub words: String,
    /// The tools that answer the question, as `server.tool`; finding one of them is enough.
    pub tools: Vec<String>,
    /// Whether the question was held out when the ranking was tuned.
    pub held_out: bool,
}

/// The search results of a set of questions, for metrics.
#[derive(Debug, Default)]
pub struct Figures {
    /// For each question the rank of the first correct tool, from 0; `None` if no correct tool was found.
    ranks: Vec<Option<usize>>,
    /// The duration of each search.
    pub times: Vec<Duration>,
}

impl Figures {
    /// Adds a question with the tools that were found for it, best first.
    pub fn add(&mut self, question: &Question, found: &[String], took: Duration) {
        self.ranks.push(found.iter().position(|name| question.tools.contains(name)));
        self.times.push(took);
    }

    /// Returns the number of questions.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the recall: the fraction of the questions with a correct tool among the first `among` results.
    #[must_use]
    pub fn recall(&self, among: usize) -> f64 {
        let found = self.ranks.iter().flatten().filter(|rank| **rank < among).count();
        found as f64 / self.ranks.len().max(1) as f64
    }

    /// Returns the mean reciprocal rank over the first ten results.
    #[must_use]
    pub fn mean_reciprocal_rank(&self) -> f64 {
        let each = self.ranks.iter().flatten().map(|rank| 1.0 / (*rank as f64 + 1.0));
        each.sum::<f64>() / self.ranks.len().max(1) as f64
    }
}

/// Reads all questions.
///
/// # Panics
/// If the file is missing or malformed.
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

/// Returns the tool catalogues in the directory `LOCKHOUSE_CATALOGUES`, sorted by name, or `None` if the variable
/// is not set. Each file has the `tools/list` answer of the real server that it is named after.
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
    /// Creates a test directory with a server for each catalogue, all of whose tools are allowed.
    #[must_use]
    pub fn with_catalogues(catalogues: &[(String, PathBuf)]) -> Self {
        Self::new().adding_catalogues(catalogues)
    }

    /// Adds a server for each catalogue to an existing test directory, and replaces its policy by one that allows
    /// their tools.
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
    /// Searches for tools and returns their names as `server.tool`, best first.
    pub async fn names_found(&self, query: &str) -> Vec<String> {
        let arguments = serde_json::json!({"query": query, "detail": "names"});
        let found = structured(self.call("search_tools", arguments).await);
        let name = |tool: &Value| {
            format!("{}.{}", tool["server"].as_str().unwrap_or(""), tool["tool"].as_str().unwrap_or(""))
        };
        found["tools"].as_array().into_iter().flatten().map(name).collect()
    }

    /// Waits until every upstream server is connected. Dozens of interpreters start slowly; a search itself waits
    /// for them for up to two seconds.
    ///
    /// # Panics
    /// If a server does not connect in time.
    pub async fn all_connected(&self) {
        for _ in 0..SEARCHES_MAX {
            let found = self.search_tools("nothing of that kind").await;
            if found.get("unavailable").is_none() {
                return;
            }
        }
        panic!("never happened: all servers are connected");
    }
}
