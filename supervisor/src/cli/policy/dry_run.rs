//! `lockhouse policy dry-run`: shows how another policy would decide about the calls in the audit log.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_config::{self as config, Files};
use lockhouse_policies::{Call, Effect, Policy, explain};
use serde_json::{Value, json};

use super::environment::Environment;
use super::recorded_calls::{self, RecordedCall};
use crate::cli::line_width::wrap_lines;
use crate::cli::terminal::for_stdout;
use crate::cli::{UNAVAILABLE, print_config_error, print_error, table};

/// The maximum number of table rows that are printed. Only audit logs with very many resources or AI clients have more
/// rows.
const ROWS_MAX: usize = 1_000;

/// Options of `lockhouse policy dry-run`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The policy file to apply
    new: PathBuf,
    /// Only calls since this time: an age such as 7d or 12h, or a date such as 2026-01-31
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = recorded_calls::parse_since)]
    since: SystemTime,
    /// Also show the calls whose decision would not change
    #[arg(long)]
    all: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The decision of the new policy about a recorded call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NewDecision {
    Decided {
        effect: Effect,
        rule: String,
    },
    /// The decision depends on the arguments of the call, which the audit log does not contain.
    DependsOnArguments,
}

/// A group of recorded calls that is one row of the output: the calls have the same tool, AI client, recorded decision
/// and new decision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    server: String,
    kind: &'static str,
    name: String,
    client: String,
    before: Effect,
    after: NewDecision,
}

impl Group {
    fn is_a_change(&self) -> bool {
        !matches!(&self.after, NewDecision::Decided { effect, .. } if *effect == self.before)
    }
}

/// Runs `lockhouse policy dry-run`: applies the new policy to the recorded calls, and prints the decisions that would
/// change or cannot be determined. With `--all`, prints the unchanged decisions as well.
pub(super) fn dry_run(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    // The administrator's required policies apply as they do to the active policy.
    let files = Files { policy: Some(arguments.new.clone()), ..files.clone() };
    let policy = config::load_policy(&files).map_err(|error| print_config_error(&error))?;
    let audit = config::load_audit_settings(&files).map_err(|error| print_config_error(&error))?;
    let (mut groups, mut reevaluation) = (
        BTreeMap::new(),
        Reevaluation { policy, environment: Environment::load(&files), known: HashMap::new() },
    );
    let read = recorded_calls::for_each(&audit, arguments.since, |call| {
        *groups.entry(reevaluation.group(&call)).or_insert(0) += 1
    });
    let calls = read.map_err(|error| print_error(&error, UNAVAILABLE))?;
    let displayed: Vec<(&Group, u64)> = groups
        .iter()
        .filter(|(group, _)| arguments.all || group.is_a_change())
        .map(|(group, times)| (group, *times))
        .collect();
    let summary = Summary::new(calls, &groups);
    if arguments.json {
        let rows: Value = displayed.iter().map(|(group, times)| to_json(group, *times)).collect();
        let whole = json!({
            "calls": calls, "unchanged": summary.unchanged, "changed": summary.changed, "depends": summary.depends, "rows": rows,
        });
        println!("{}", for_stdout(&format!("{whole:#}")));
        return Ok(ExitCode::SUCCESS);
    }
    if !displayed.is_empty() {
        let rows: Vec<Vec<String>> =
            displayed.iter().take(ROWS_MAX).map(|(group, times)| row(group, *times)).collect();
        println!(
            "{}",
            table::render(&["server", "call", "client", "times", "before", "after", "rule"], &rows)
        );
        if displayed.len() > ROWS_MAX {
            println!("and {} more rows: --json shows all", displayed.len() - ROWS_MAX);
        }
        println!();
    }
    println!("{}", wrap_lines(&summary.to_string()));
    Ok(ExitCode::SUCCESS)
}

/// Applies the new policy to recorded calls. Caches decisions that do not depend on the arguments of a call.
struct Reevaluation {
    policy: Policy,
    environment: Environment,
    known: HashMap<(String, String, &'static str, Option<String>), Option<NewDecision>>,
}

impl Reevaluation {
    fn group(&mut self, call: &RecordedCall) -> Group {
        let client = call.client.as_ref().map(|client| client.as_str().to_owned());
        let (server, name, kind) = (call.server.to_string(), call.item.as_str().to_owned(), call.item.kind());
        let key = (server.clone(), name.clone(), kind, client.clone());
        let Self { policy, environment, known } = self;
        let mut decide_now = || new_decision(policy, &environment.complete(policy, call.call()));
        let known = known.entry(key).or_insert_with(|| {
            let certain = policy.certain_effect(&call.server, &call.item, call.client.as_ref());
            certain.map(|_| decide_now())
        });
        let after = match (known, &call.arguments) {
            (Some(after), _) => after.clone(),
            (None, Some(_)) => decide_now(),
            (None, None) => NewDecision::DependsOnArguments,
        };
        Group { server, kind, name, client: client.unwrap_or_default(), before: call.decided, after }
    }
}

fn new_decision(policy: &Policy, call: &Call) -> NewDecision {
    let explanation = explain(policy, call);
    let rule = explanation.deciding.location.map(|place| place.to_string()).unwrap_or_default();
    NewDecision::Decided { effect: explanation.effect, rule }
}

/// Counts of recorded calls: all calls, calls whose decision stays the same under the new policy, calls whose decision
/// changes, and calls whose new decision depends on arguments that are not recorded.
struct Summary {
    calls: u64,
    unchanged: u64,
    changed: u64,
    depends: u64,
}

impl Summary {
    fn new(calls: u64, groups: &BTreeMap<Group, u64>) -> Self {
        let count = |wanted: fn(&Group) -> bool| {
            groups.iter().filter(|(group, _)| wanted(group)).map(|(_, times)| times).sum()
        };
        let depends = count(|group| group.after == NewDecision::DependsOnArguments);
        let unchanged: u64 = count(|group| !group.is_a_change());
        Self { calls, unchanged, changed: calls - unchanged - depends, depends }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { calls, unchanged, changed, depends } = self;
        if *calls == 0 {
            return write!(f, "the audit log has no calls in this period");
        }
        write!(
            f,
            "of {calls} calls, the decision would change for {changed} and stay the same for {unchanged}"
        )?;
        if *depends > 0 {
            write!(f, "; for {depends} it depends on arguments that the log does not contain")?;
            write!(f, "\nhint: set `values = true` under [audit] to record the arguments of future calls")?;
        }
        Ok(())
    }
}

fn row(group: &Group, times: u64) -> Vec<String> {
    let Group { server, kind, name, client, before, after } = group;
    let call = if *kind == "tool" { name.clone() } else { format!("{kind} {name}") };
    let (after, rule) = match after {
        NewDecision::Decided { effect, rule } => (effect.as_str(), rule.clone()),
        NewDecision::DependsOnArguments => ("depends on its arguments", String::new()),
    };
    vec![server.clone(), call, client.clone(), times.to_string(), before.as_str().into(), after.into(), rule]
}

fn to_json(group: &Group, times: u64) -> Value {
    let Group { server, kind, name, client, before, after } = group;
    let (after, rule) = match after {
        NewDecision::Decided { effect, rule } => {
            (effect.as_str(), Some(rule).filter(|rule| !rule.is_empty()))
        }
        NewDecision::DependsOnArguments => ("depends", None),
    };
    json!({
        "server": server, "kind": kind, "name": name, "client": Some(client).filter(|client| !client.is_empty()),
        "times": times, "before": before.as_str(), "after": after, "rule": rule,
    })
}
