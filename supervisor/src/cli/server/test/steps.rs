//! The steps of `lockhouse server test`, in order, with their results.

use std::io::IsTerminal;
use std::time::Duration;

use lockhouse_protocol::Failure;
use serde_json::{Value, json};

use super::one_line;
use super::reachability::Unreachable;
use crate::cli::server::status_report::{format_duration, to_ms};

/// Why a step of the server test failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The connection to the server failed. The message comes from the server or from the connection to it.
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
    /// Returns the result or the error of the step as text.
    fn result_text(&self) -> String {
        self.outcome.as_ref().map_or_else(StepError::to_string, Clone::clone)
    }
}

/// The steps of the server test that were completed so far.
pub(super) struct Steps {
    steps: Vec<Step>,
    /// Whether each step is printed as soon as it completes.
    prints: bool,
    colour: bool,
    hint: Option<String>,
}

impl Steps {
    pub(super) fn new(prints: bool) -> Self {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { steps: Vec::new(), prints, colour, hint: None }
    }

    pub(super) fn add(&mut self, name: &'static str, took: Duration, outcome: Result<String, StepError>) {
        let step = Step { name, took, outcome };
        if self.prints {
            self.print(&step);
        }
        self.steps.push(step);
    }

    /// Adds advice for the user about why a step failed.
    pub(super) fn hint(&mut self, hint: &str) {
        if self.prints {
            println!("  hint: {}", one_line(hint));
        }
        self.hint = Some(hint.to_owned());
    }

    pub(super) fn all_passed(&self) -> bool {
        self.steps.iter().all(|step| step.outcome.is_ok())
    }

    fn print(&self, step: &Step) {
        let (mark, code) = if step.outcome.is_ok() { ("✓", 32) } else { ("✗", 31) };
        let mark = if self.colour { format!("\x1b[{code}m{mark}\x1b[0m") } else { mark.to_owned() };
        println!(
            "{mark} {:10}{:>8}  {}",
            step.name,
            format_duration(step.took),
            one_line(&step.result_text())
        );
    }

    pub(super) fn to_json(&self, server: &str) -> Value {
        let row = |step: &Step| {
            let is_ok = step.outcome.is_ok();
            json!({"step": step.name, "ok": is_ok, "ms": to_ms(step.took), "found": step.result_text()})
        };
        let steps: Vec<Value> = self.steps.iter().map(row).collect();
        json!({"name": server, "ok": self.all_passed(), "steps": steps, "hint": self.hint})
    }
}
