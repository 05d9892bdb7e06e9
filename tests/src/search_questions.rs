//! Measures how well `search_tools` answers the questions in `tests/search/questions.tsv`: queries of users, each
//! with the tools that answer it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{Lockhouse, Session, structured};

/// The number of searches after which [`Session::all_connected`] gives up. Each search waits up to two seconds for
/// servers that are still starting.
const SEARCHES_MAX: usize = 60;

/// One line of `questions.tsv`: a search query with the tools that answer it.
#[derive(Debug)]
pub struct Question {
    /// The query, phrased by a user who does not know the tools' names.
    pub words: String,
    /// The tools that answer the question, as `server.tool`. A search is correct if it finds one of them.
    pub tools: Vec<String>,
    /// Whether the question was held out: it was not used to tune the search ranking.
    pub held_out: bool,
}

/// The results of searching for a set of questions, from which metrics are computed.
#[derive(Debug, Default)]
pub struct Figures {
    /// For each question the rank of the first correct tool in the search results, from 0; `None` if no correct tool
    /// was found.
    ranks: Vec<Option<usize>>,
    /// The duration of each search.
    pub times: Vec<Duration>,
}

impl Figures {
    /// Adds a question with the tools that the search found for it, best first, and the duration of the search.
    pub fn add(&mut self, question: &Question, found: &[String], took: Duration) {
        self.ranks.push(found.iter().position(|name| question.tools.contains(name)));
        self.times.push(took);
    }

    /// Returns the number of questions that were added.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the recall: the fraction of the questions with a correct tool among the first `among` search results.
    #[must_use]
    pub fn recall(&self, among: usize) -> f64 {
        let found = self.ranks.iter().flatten().filter(|rank| **rank < among).count();
        found as f64 / self.ranks.len().max(1) as f64
    }

    /// Returns the mean reciprocal rank of the first correct tool over all questions; a question without a correct
    /// tool counts as 0.
    #[must_use]
    pub fn mean_reciprocal_rank(&self) -> f64 {
        let each = self.ranks.iter().flatten().map(|rank| 1.0 / (*rank as f64 + 1.0));
        each.sum::<f64>() / self.ranks.len().max(1) as f64
    }
}

/// Reads all questions of `questions.tsv`.
///
/// # Panics
/// If a line of the file is malformed.
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

/// Returns the name and path of each tool catalogue in the directory `LOCKHOUSE_CATALOGUES`, sorted by name, or
/// `None` if the variable is not set. A catalogue is the `tools/list` answer of a real MCP server, whose name is the
/// file's name.
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
    /// Creates a test directory with an upstream server for each tool catalogue, and a policy that allows all of
    /// their tools.
    #[must_use]
    pub fn with_catalogues(catalogues: &[(String, PathBuf)]) -> Self {
        Self::new().adding_catalogues(catalogues)
    }

    /// Adds an upstream server for each tool catalogue to this test directory, and replaces its policy by one that
    /// allows all of their tools.
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
    /// Searches for tools with `search_tools` and returns the names of the found tools as `server.tool`, best match
    /// first.
    pub async fn names_found(&self, query: &str) -> Vec<String> {
        let arguments = serde_json::json!({"query": query, "detail": "names"});
        let found = structured(self.call("search_tools", arguments).await);
        let name = |tool: &Value| {
            format!("{}.{}", tool["server"].as_str().unwrap_or(""), tool["tool"].as_str().unwrap_or(""))
        };
        found["tools"].as_array().into_iter().flatten().map(name).collect()
    }

    /// Waits until every upstream server is connected, by repeated searches. Each search waits up to two seconds for
    /// servers that are still starting.
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
