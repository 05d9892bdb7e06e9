//! What was tried, in order, and how each step went.

use std::io::IsTerminal;
use std::time::Duration;

use serde_json::{Value, json};

use super::one_line;
use crate::cli::server::report::{ms, shown};

struct Step {
    name: &'static str,
    took: Duration,
    outcome: Result<String, String>,
}

/// The steps so far.
pub(super) struct Steps {
    steps: Vec<Step>,
    /// Whether each step is shown as it is done.
    told: bool,
    colour: bool,
    hint: Option<String>,
}

impl Steps {
    pub(super) fn new(told: bool) -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { steps: Vec::new(), told, colour, hint: None }
    }

    pub(super) fn add(&mut self, name: &'static str, took: Duration, outcome: Result<String, String>) {
        let step = Step { name, took, outcome };
        if self.told {
            self.print(&step);
        }
        self.steps.push(step);
    }

    /// What to do about a failure.
    pub(super) fn hint(&mut self, hint: &str) {
        if self.told {
            println!("  hint: {}", one_line(hint));
        }
        self.hint = Some(hint.to_owned());
    }

    pub(super) fn all_done(&self) -> bool {
        self.steps.iter().all(|step| step.outcome.is_ok())
    }

    fn print(&self, Step { name, took, outcome }: &Step) {
        let (mark, code, words) = match outcome {
            Ok(words) => ("✓", 32, words),
            Err(words) => ("✗", 31, words),
        };
        let mark = if self.colour { format!("\x1b[{code}m{mark}\x1b[0m") } else { mark.to_owned() };
        println!("{mark} {name:10}{:>8}  {}", shown(*took), one_line(words));
    }

    pub(super) fn to_json(&self, server: &str) -> Value {
        let row = |Step { name, took, outcome }: &Step| {
            let (Ok(words) | Err(words)) = outcome;
            json!({"step": name, "ok": outcome.is_ok(), "ms": ms(*took), "found": words})
        };
        let steps: Vec<Value> = self.steps.iter().map(row).collect();
        json!({"name": server, "ok": self.all_done(), "steps": steps, "hint": self.hint})
    }
}
