//! `lockhouse doctor --profile enterprise`: the checklist for hosts that an administrator manages (docs/fleet.md), as checks
//! of this host and of the configuration in use.

mod host;
mod presence;
mod servers;

use lockhouse_config::{Configuration, Files};
use lockhouse_policies::printable;
use serde_json::{Value, json};

use super::report::Report;
use crate::cli::command_error::CommandError;
use crate::cli::line_width;

/// The name of the profile, as `--profile` has it.
pub(super) const NAME: &str = "enterprise";
/// The indentation of the further lines of a check, below its title.
const INDENT: &str = "      ";

/// One check of the list.
struct Check {
    /// The stable name in JSON.
    id: &'static str,
    /// What must hold.
    title: &'static str,
    outcome: Outcome,
}

enum Outcome {
    Pass(String),
    Fail { found: String, fix: &'static str },
}

impl Outcome {
    /// Returns a pass with `held` if no text was found that must not be there.
    fn none_of(found: &[String], held: &str, fix: &'static str) -> Self {
        match found {
            [] => Self::Pass(held.to_owned()),
            _ => Self::Fail { found: found.join(", "), fix },
        }
    }

    /// Returns a pass with `held` if the condition holds.
    fn require(holds: bool, held: &str, found: &str, fix: &'static str) -> Self {
        if holds { Self::Pass(held.to_owned()) } else { Self::Fail { found: found.to_owned(), fix } }
    }
}

/// The results of all checks.
pub(super) struct Checklist(Vec<Check>);

impl Checklist {
    /// Checks this host, of which `report` has the protections, and the configuration.
    ///
    /// # Errors
    /// If the configuration, the policy or the requirements cannot be used.
    pub(super) fn examine(files: &Files, report: &Report) -> Result<Self, CommandError> {
        let configuration = Configuration::load(files)?;
        let mut checks = host::checks(report, &configuration.settings);
        checks.extend(servers::checks(&configuration));
        Ok(Self(checks))
    }

    /// Whether all checks pass.
    pub(super) fn passes(&self) -> bool {
        self.0.iter().all(|check| matches!(check.outcome, Outcome::Pass(_)))
    }

    pub(super) fn to_json(&self) -> Value {
        let check = |check: &Check| {
            let (passes, found, fix) = match &check.outcome {
                Outcome::Pass(found) => (true, found, None),
                Outcome::Fail { found, fix } => (false, found, Some(fix)),
            };
            json!({"check": check.id, "title": check.title, "passes": passes, "found": found, "fix": fix})
        };
        let checks: Vec<Value> = self.0.iter().map(check).collect();
        json!({"profile": NAME, "passes": self.passes(), "checks": checks})
    }

    pub(super) fn print(&self) {
        for Check { title, outcome, .. } in &self.0 {
            let line = match outcome {
                Outcome::Pass(found) => format!("pass  {title}: {found}"),
                Outcome::Fail { found, fix } => format!("FAIL  {title}: {found}. To do: {fix}"),
            };
            println!("{}", line_width::wrap_line(&printable(&line), INDENT));
        }
        let passed = self.0.iter().filter(|check| matches!(check.outcome, Outcome::Pass(_))).count();
        println!("\n{passed} of {} checks pass", self.0.len());
    }
}
