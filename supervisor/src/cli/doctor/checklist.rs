//! A list of checks, each of which passes or fails with what to do.

use lockhouse_policies::printable;
use serde_json::{Value, json};

use crate::cli::line_width;

/// The indentation of the further lines of a check, below its title.
const INDENT: &str = "      ";

/// One check of the list.
pub(super) struct Check {
    /// The stable name in JSON.
    pub(super) id: &'static str,
    /// What must hold.
    pub(super) title: &'static str,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Pass(String),
    Fail { found: String, fix: &'static str },
}

impl Outcome {
    /// Returns a pass with `held` if no text was found that must not be there.
    pub(super) fn none_of(found: &[String], held: &str, fix: &'static str) -> Self {
        match found {
            [] => Self::Pass(held.to_owned()),
            _ => Self::Fail { found: found.join(", "), fix },
        }
    }

    /// Returns a pass with `held` if the condition holds.
    pub(super) fn require(holds: bool, held: &str, found: &str, fix: &'static str) -> Self {
        if holds { Self::Pass(held.to_owned()) } else { Self::Fail { found: found.to_owned(), fix } }
    }
}

/// The results of all checks.
pub(super) struct Checklist {
    /// What the list is about, in JSON.
    pub(super) profile: &'static str,
    pub(super) checks: Vec<Check>,
}

impl Checklist {
    /// Whether all checks pass.
    pub(super) fn passes(&self) -> bool {
        self.checks.iter().all(|check| matches!(check.outcome, Outcome::Pass(_)))
    }

    pub(super) fn to_json(&self) -> Value {
        let check = |check: &Check| {
            let (passes, found, fix) = match &check.outcome {
                Outcome::Pass(found) => (true, found, None),
                Outcome::Fail { found, fix } => (false, found, Some(fix)),
            };
            json!({"check": check.id, "title": check.title, "passes": passes, "found": found, "fix": fix})
        };
        let checks: Vec<Value> = self.checks.iter().map(check).collect();
        json!({"profile": self.profile, "passes": self.passes(), "checks": checks})
    }

    pub(super) fn print(&self) {
        for Check { title, outcome, .. } in &self.checks {
            let line = match outcome {
                Outcome::Pass(found) => format!("pass  {title}: {found}"),
                Outcome::Fail { found, fix } => format!("FAIL  {title}: {found}. To do: {fix}"),
            };
            println!("{}", line_width::wrap_line(&printable(&line), INDENT));
        }
        let passed = self.checks.iter().filter(|check| matches!(check.outcome, Outcome::Pass(_))).count();
        println!("\n{passed} of {} checks pass", self.checks.len());
    }
}
