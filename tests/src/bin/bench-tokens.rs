//! `make bench-tokens`: counts the tokens (in the vocabulary o200k) that complete tasks put into a model's context:
//! once with the definitions of all tools in the context, and once through Lockhouse. Reads the recordings of
//! tests/upstreams/record_workflows.py; `--json` prints the figures as JSON.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a table")]

use lockhouse_tests::tokens;
use serde_json::{Value, json};

/// The number of tokens of one task, without Lockhouse (all tools in the context) and through Lockhouse.
struct Row {
    workflow: String,
    calls: usize,
    /// The tokens without Lockhouse: those of the tool definitions, and those of the calls' arguments and results.
    direct: [usize; 2],
    /// The tokens with Lockhouse: those of its tool definitions, of a search with its answer, of the code, and of the
    /// code's answer.
    ours: [usize; 4],
}

impl Row {
    fn new(recorded: &Value) -> Self {
        let (direct, ours) = (&recorded["direct"], &recorded["ours"]);
        let calls = direct["calls"].as_array().unwrap();
        let each = |call: &Value| counted(&call["call"]) + counted(&call["result"]);
        Self {
            workflow: format!(
                "{} ({})",
                recorded["workflow"].as_str().unwrap(),
                recorded["language"].as_str().unwrap()
            ),
            calls: calls.len(),
            direct: [all(&direct["definitions"]), calls.iter().map(each).sum()],
            ours: [
                counted(&ours["definitions"]),
                all(&ours["search"]),
                counted(&ours["code"]),
                counted(&ours["answer"]),
            ],
        }
    }

    fn totals(&self) -> (usize, usize) {
        (self.direct.iter().sum(), self.ours.iter().sum())
    }

    fn ratio(&self) -> f64 {
        let (direct, ours) = self.totals();
        direct as f64 / ours as f64
    }

    fn json(&self) -> Value {
        let (direct, ours) = self.totals();
        let [definitions, search, code, answer] = self.ours;
        json!({
            "workflow": self.workflow, "calls": self.calls,
            "direct": {"definitions": self.direct[0], "calls": self.direct[1], "total": direct},
            "ours": {"definitions": definitions, "search": search, "code": code, "answer": answer, "total": ours},
            "ratio": (self.ratio() * 10.0).round() / 10.0,
        })
    }
}

fn counted(text: &Value) -> usize {
    tokens(text.as_str().unwrap())
}

fn all(texts: &Value) -> usize {
    texts.as_array().unwrap().iter().map(counted).sum()
}

fn main() {
    let recorded: Value = serde_json::from_reader(std::io::stdin()).unwrap();
    let rows: Vec<Row> = recorded.as_array().unwrap().iter().map(Row::new).collect();
    if std::env::args().any(|argument| argument == "--json") {
        println!("{:#}", rows.iter().map(Row::json).collect::<Value>());
        return;
    }
    println!(
        "| task | calls | direct: definitions | calls and results | total | ours: definitions | search | code | answer | total | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for row in &rows {
        let (direct, ours) = row.totals();
        let [definitions, search, code, answer] = row.ours;
        println!(
            "| {} | {} | {} | {} | {direct} | {definitions} | {search} | {code} | {answer} | {ours} | {:.1} |",
            row.workflow,
            row.calls,
            row.direct[0],
            row.direct[1],
            row.ratio()
        );
    }
}
