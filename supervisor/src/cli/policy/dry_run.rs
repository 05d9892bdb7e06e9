//! `lockhouse policy dry-run`: past calls, decided by another policy.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_policies::{Call, Effect, Policy, explain};
use serde_json::{Value, json};

use super::past::{self, Past};
use super::surroundings::Surroundings;
use crate::cli::terminal::for_stdout;
use crate::cli::{UNAVAILABLE, complain, complain_config, table};
use crate::config::{self, Files};

/// Groups that are told. There can be more only where many resources or clients were used.
const ROWS_MAX: usize = 1_000;

/// Which policy, and which calls.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The policy to try
    new: PathBuf,
    /// Calls since then: 7d or 12h ago, or a day such as 2026-01-31
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = past::since)]
    since: SystemTime,
    /// Show the calls that would be decided as they were, too
    #[arg(long)]
    all: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// What the new policy says of a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Now {
    Decided {
        effect: Effect,
        rule: String,
    },
    /// The arguments decide, and the log has not kept them.
    Depends,
}

/// Calls that differ in nothing that a row shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    server: String,
    kind: &'static str,
    name: String,
    client: String,
    before: Effect,
    now: Now,
}

impl Group {
    fn is_a_change(&self) -> bool {
        !matches!(&self.now, Now::Decided { effect, .. } if *effect == self.before)
    }
}

/// Decides them, and shows what would have been different.
pub(super) fn dry_run(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    // Below the same layers as the policy in force.
    let files = Files { policy: Some(arguments.new.clone()), ..files.clone() };
    let policy = config::load_policy(&files).map_err(|error| complain_config(&error))?;
    let audit = config::load_audit_settings(&files).map_err(|error| complain_config(&error))?;
    let (mut groups, mut judge) =
        (BTreeMap::new(), Judge { policy, surroundings: Surroundings::of(&files), known: HashMap::new() });
    let read =
        past::each(&audit, arguments.since, |past| *groups.entry(judge.group(&past)).or_insert(0) += 1);
    let calls = read.map_err(|error| complain(&error, UNAVAILABLE))?;
    let shown: Vec<(&Group, u64)> = groups
        .iter()
        .filter(|(group, _)| arguments.all || group.is_a_change())
        .map(|(group, times)| (group, *times))
        .collect();
    let told = Told::of(calls, &groups);
    if arguments.json {
        let rows: Value = shown.iter().map(|(group, times)| to_json(group, *times)).collect();
        let whole = json!({
            "calls": calls, "unchanged": told.unchanged, "changed": told.changed, "depends": told.depends, "rows": rows,
        });
        println!("{}", for_stdout(&format!("{whole:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    if !shown.is_empty() {
        let rows: Vec<Vec<String>> =
            shown.iter().take(ROWS_MAX).map(|(group, times)| row(group, *times)).collect();
        println!(
            "{}",
            table::render(&["server", "call", "client", "times", "before", "after", "rule"], &rows)
        );
        if shown.len() > ROWS_MAX {
            println!("and {} rows more: --json has all", shown.len() - ROWS_MAX);
        }
        println!();
    }
    println!("{told}");
    Ok(ExitCode::SUCCESS)
}

/// What is decided, once for all calls of which that is known without their arguments.
struct Judge {
    policy: Policy,
    surroundings: Surroundings,
    known: HashMap<(String, String, &'static str, Option<String>), Option<Now>>,
}

impl Judge {
    fn group(&mut self, past: &Past) -> Group {
        let client = past.client.as_ref().map(|client| client.as_str().to_owned());
        let (server, name, kind) = (past.server.to_string(), past.item.as_str().to_owned(), past.item.kind());
        let key = (server.clone(), name.clone(), kind, client.clone());
        let Self { policy, surroundings, known } = self;
        let mut decided = || decided(policy, &surroundings.complete(policy, past.call()));
        let known = known.entry(key).or_insert_with(|| {
            let certain = policy.certain(&past.server, &past.item, past.client.as_ref());
            certain.map(|_| decided())
        });
        let now = match (known, &past.arguments) {
            (Some(now), _) => now.clone(),
            (None, Some(_)) => decided(),
            (None, None) => Now::Depends,
        };
        Group { server, kind, name, client: client.unwrap_or_default(), before: past.decided, now }
    }
}

fn decided(policy: &Policy, call: &Call) -> Now {
    let explanation = explain(policy, call);
    let rule = explanation.deciding.place.map(|place| place.to_string()).unwrap_or_default();
    Now::Decided { effect: explanation.effect, rule }
}

/// How many calls come to what.
struct Told {
    calls: u64,
    unchanged: u64,
    changed: u64,
    depends: u64,
}

impl Told {
    fn of(calls: u64, groups: &BTreeMap<Group, u64>) -> Self {
        let count = |wanted: fn(&Group) -> bool| {
            groups.iter().filter(|(group, _)| wanted(group)).map(|(_, times)| times).sum()
        };
        let depends = count(|group| group.now == Now::Depends);
        let unchanged: u64 = count(|group| !group.is_a_change());
        Self { calls, unchanged, changed: calls - unchanged - depends, depends }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, unchanged, changed, depends } = self;
        if *calls == 0 {
            return write!(f, "the audit log has no calls in this time");
        }
        write!(f, "of {calls} calls, {changed} would be decided differently and {unchanged} as they were")?;
        if *depends > 0 {
            write!(f, "; {depends} depend on arguments that the log does not have")?;
            write!(
                f,
                "\nhint: with `values = true` under [audit] the log keeps the arguments of later calls"
            )?;
        }
        Ok(())
    }
}

fn row(group: &Group, times: u64) -> Vec<String> {
    let Group { server, kind, name, client, before, now } = group;
    let call = if *kind == "tool" { name.clone() } else { format!("{kind} {name}") };
    let (after, rule) = match now {
        Now::Decided { effect, rule } => (effect.as_str(), rule.clone()),
        Now::Depends => ("depends on its arguments", String::new()),
    };
    vec![server.clone(), call, client.clone(), times.to_string(), before.as_str().into(), after.into(), rule]
}

fn to_json(group: &Group, times: u64) -> Value {
    let Group { server, kind, name, client, before, now } = group;
    let (after, rule) = match now {
        Now::Decided { effect, rule } => (effect.as_str(), Some(rule).filter(|rule| !rule.is_empty())),
        Now::Depends => ("depends", None),
    };
    json!({
        "server": server, "kind": kind, "name": name, "client": Some(client).filter(|client| !client.is_empty()),
        "times": times, "before": before.as_str(), "after": after, "rule": rule,
    })
}
