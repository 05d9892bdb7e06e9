//! Prints what `lockhouse policy allow`, `ask` and `deny` have changed, and what is decided about the tools now.

use std::path::PathBuf;

use lockhouse_policies::edit::{EditedPolicy, Statement};
use lockhouse_policies::{Effect, Explanation, printable};
use serde_json::{Value, json};

use super::Target;
use crate::cli::policy::explain;
use crate::cli::terminal::for_stdout;

/// The maximum number of tools or statements that decide otherwise and are printed. JSON has all of them.
const PRINTED_MAX: usize = 20;

/// What a change of the policy has done, or would do.
pub(in crate::cli) struct Report {
    pub(in crate::cli) path: PathBuf,
    pub(super) target: Target,
    pub(super) wanted: Effect,
    /// Whether the text after the edit differs from the text before.
    pub(in crate::cli) changed: bool,
    pub(super) dry_run: bool,
    pub(in crate::cli) diff: String,
    pub(in crate::cli) digest: String,
    pub(super) edit: EditedPolicy,
    /// The decisions about calls without arguments, of the tool or of the known tools that match the prefix.
    pub(super) decisions: Vec<Explanation>,
    pub(in crate::cli) notes: Vec<String>,
}

impl Report {
    pub(super) fn print(&self) {
        let Self { target, wanted, edit, .. } = self;
        let file = self.file();
        match (self.changed, self.dry_run) {
            (false, _) => println!("{file} needs no change: {target} {} already", wanted.predicate()),
            (true, true) => {
                println!("{}\nthis is a dry run: {file} was not changed\n", for_stdout(&self.diff))
            }
            (true, false) => println!("{}\nchanged {file}\n", for_stdout(&self.diff)),
        }
        if self.is_exact() {
            self.decisions.iter().for_each(|decision| print!("{decision}"));
        } else {
            for statement in edit.exceptions.iter().take(PRINTED_MAX) {
                println!("{}, at {file}:{}, decides otherwise", statement.describe(), statement.line);
            }
        }
        for decision in self.otherwise().take(PRINTED_MAX) {
            eprintln!("lockhouse: warning: {}", self.describe_otherwise(decision));
        }
        if let Some(more @ 1..) = self.otherwise().count().checked_sub(PRINTED_MAX) {
            eprintln!("lockhouse: warning: so do {more} more tools; --json lists all");
        }
        self.notes.iter().for_each(|note| println!("note: {note}"));
        if self.changed && !self.dry_run {
            println!("note: running Lockhouse processes use the change after `lockhouse reload`");
        }
    }

    /// Whether the wanted effect applies to all calls without arguments that were examined.
    pub(in crate::cli) fn is_in_effect(&self) -> bool {
        self.otherwise().next().is_none()
    }

    /// Returns a sentence for each decision that differs from the wanted effect.
    pub(in crate::cli) fn warnings(&self) -> Vec<String> {
        self.otherwise().map(|decision| self.describe_otherwise(decision)).collect()
    }

    /// Returns the decisions that differ from the wanted effect.
    fn otherwise(&self) -> impl Iterator<Item = &Explanation> {
        self.decisions.iter().filter(|decision| decision.effect != self.wanted)
    }

    fn describe_otherwise(&self, decision: &Explanation) -> String {
        let Explanation { server, item, effect, deciding, .. } = decision;
        let place = deciding.location.as_ref().map(|location| format!(", at {location}")).unwrap_or_default();
        let whose = match self.is_required(decision) {
            true => ", in a policy that the administrator requires",
            false => "",
        };
        format!("{server}.{item} still {} because of {}{place}{whose}", effect.predicate(), deciding.what)
    }

    /// Whether a policy that the administrator requires makes the decision.
    fn is_required(&self, decision: &Explanation) -> bool {
        let location = decision.deciding.location.as_ref();
        location.is_some_and(|location| location.line > 0 && location.path != self.path.display().to_string())
    }

    fn is_exact(&self) -> bool {
        !self.target.pattern.to_string().ends_with('*')
    }

    fn file(&self) -> String {
        printable(&self.path.display().to_string())
    }

    pub(super) fn print_json(&self) {
        let path = self.path.display().to_string();
        let statement = |statement: &Statement| {
            json!({
                "effect": statement.effect.as_str(), "pattern": statement.pattern.to_string(),
                "rule": statement.is_rule(), "file": path, "line": statement.line,
            })
        };
        let decision = |decision: &Explanation| {
            let mut told = explain::to_json(decision, &[]);
            told["required_by_administrator"] = self.is_required(decision).into();
            if let Some(told) = told.as_object_mut() {
                told.remove("notes");
            }
            told
        };
        let told = json!({
            "tool": self.target.to_string(), "effect": self.wanted.as_str(), "file": path,
            "changed": self.changed && !self.dry_run, "dry_run": self.dry_run, "diff": self.diff,
            "digest": self.digest, "warnings": self.warnings(), "in_effect": self.is_in_effect(),
            "removed": self.edit.removed.iter().map(statement).collect::<Value>(),
            "exceptions": self.edit.exceptions.iter().map(statement).collect::<Value>(),
            "decisions": self.decisions.iter().map(decision).collect::<Value>(), "notes": self.notes,
        });
        println!("{}", for_stdout(&format!("{told:#}")));
    }
}
