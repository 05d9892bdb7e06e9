//! What was tried, in order, and how each step went.

use std::io::IsTerminal;
use std::time::Duration;

use lockhouse_protocol::Failure;
use serde_json::{Value, json};

use super::one_line;
use super::reach::Unreachable;
use crate::cli::server::report::{ms, shown};

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// In the words of the server, or of the connection to it.
    #[error("{0}")]
    Unavailable(String),
    #[error("it does not answer")]
    NoAnswer,
    #[error("{}: {}", .0.code.as_str(), .0.message)]
    Call(Failure),
}

struct Step {
    name: &'static str,
    took: Duration,
    outcome: Result<String, StepError>,
}

impl Step {
    /// What came of it, in words.
    fn found(&self) -> String {
        self.outcome.as_ref().map_or_else(StepError::to_string, Clone::clone)
    }
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

    pub(super) fn add(&mut self, name: &'static str, took: Duration, outcome: Result<String, StepError>) {
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

    fn print(&self, step: &Step) {
        let (mark, code) = if step.outcome.is_ok() { ("✓", 32) } else { ("✗", 31) };
        let mark = if self.colour { format!("\x1b[{code}m{mark}\x1b[0m") } else { mark.to_owned() };
        println!("{mark} {:10}{:>8}  {}", step.name, shown(step.took), one_line(&step.found()));
    }

    pub(super) fn to_json(&self, server: &str) -> Value {
        let row = |step: &Step| {
            let is_ok = step.outcome.is_ok();
            json!({"step": step.name, "ok": is_ok, "ms": ms(step.took), "found": step.found()})
        };
        let steps: Vec<Value> = self.steps.iter().map(row).collect();
        json!({"name": server, "ok": self.all_done(), "steps": steps, "hint": self.hint})
    }
}
