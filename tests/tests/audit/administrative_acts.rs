//! Tests that each administrative act leaves exactly its record, whatever the way by which it comes about.

mod changes;
mod ends;
mod people;

use std::collections::BTreeSet;

use lockhouse_tests::Lockhouse;
use serde_json::{Value, json};

/// A policy that allows one tool.
const ONE_TOOL: &str = "version = 1\n[servers.fixture]\nallow = [\"add\"]\n";
/// The kinds of administrative records that this module is about.
const KINDS: [&str; 6] = ["change", "authentication", "termination", "server", "process", "action"];

/// The administrative records that were written since the last look.
struct Acts<'l> {
    lockhouse: &'l Lockhouse,
    seen: BTreeSet<String>,
}

impl<'l> Acts<'l> {
    fn new(lockhouse: &'l Lockhouse) -> Self {
        let mut acts = Self { lockhouse, seen: BTreeSet::new() };
        acts.next();
        acts
    }

    /// Returns the records since the last look.
    fn next(&mut self) -> Vec<Value> {
        let is_act = |record: &Value| KINDS.iter().any(|kind| record["event"] == *kind);
        let records = self.lockhouse.records().into_iter().filter(is_act);
        records.filter(|record| self.seen.insert(record.to_string())).collect()
    }

    /// Returns these members of the records since the last look.
    fn summaries(&mut self, members: &[&str]) -> Vec<Value> {
        let summary = |record: &Value| members.iter().map(|name| record[*name].clone()).collect();
        self.next().iter().map(summary).collect()
    }
}

const OF_CHANGE: [&str; 5] = ["target", "action", "through", "outcome", "severity"];

fn changed(target: &str, action: &str, through: &str) -> Value {
    json!([target, action, through, "changed", "warning"])
}
