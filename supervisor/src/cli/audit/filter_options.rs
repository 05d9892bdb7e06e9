//! The filter options of `audit query` and `audit export`, and the hints that are printed when no record matches.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_audit::ADMINISTRATIVE_EVENTS;
use lockhouse_audit::reader::{Filter, ReadError};
use lockhouse_base::representable_time::ago;
use lockhouse_engine::execution::Refusal;
use lockhouse_policies::printable;
use lockhouse_protocol::CallOutcome;

use super::matching_records::matching_records;
use crate::cli::USAGE;
use lockhouse_policies::most_similar_name;

/// The names of the audit events about runs.
const RUN_EVENTS: [&str; 9] =
    ["execution", "skill", "call", "approval", "denial", "outcome", "question", "end", "refusal"];
/// The names of the audit events about the log itself, except `chain`, its bookkeeping.
const LOG_EVENTS: [&str; 2] = ["gap", "clock"];
/// The outcomes that this version of Lockhouse writes to audit records, except those of calls and of refused runs.
const OTHER_OUTCOMES: [&str; 37] = [
    // Runs.
    "error",
    "limit",
    "killed",
    "cancelled",
    // Approvals.
    "asked",
    "once",
    "execution",
    "always",
    "declined",
    "no valid answer",
    "nobody to ask",
    "too many prompts",
    "not recorded",
    "abandoned",
    "broken",
    // Questions.
    "accept",
    "decline",
    "cancel",
    "no answer in time",
    "no answer that MCP knows",
    "not asked",
    "handed on",
    // Configurations, tokens, logins and tool definitions.
    "accepted",
    "refused",
    "created",
    "failed",
    "revoked",
    "answered",
    "granted",
    "logged out",
    // Changes, ended runs, processes, servers and actions of the page.
    "changed",
    "ended",
    "started",
    "stopped",
    "lost",
    "requested",
    // Deliveries of the log.
    "rejected",
];

/// Returns the outcomes that this version of Lockhouse writes to audit records. A log that another version wrote may
/// contain others.
fn outcomes() -> Vec<&'static str> {
    let of_refusals = Refusal::ALL.iter().map(|refusal| refusal.as_str());
    CallOutcome::all().map(CallOutcome::as_str).chain(OTHER_OUTCOMES).chain(of_refusals).collect()
}

/// Why the value of a filter option is invalid: no audit record can match it.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidOption {
    #[error("there is no such event; {}Valid events: {}", did_you_mean(*.nearest), events().collect::<Vec<_>>().join(", "))]
    Event { nearest: Option<&'static str> },
    #[error("expected the id of a run, such as 0191a2b3-c4d5-7e6f-8a9b-0c1d2e3f4a5b, or a prefix of it")]
    Execution,
    #[error("use a date (2026-01-31), a time (2026-01-31T12:00:00Z) or an age (2h, 7d)")]
    Time,
    #[error("--since is later than --until, so no record can match")]
    EmptyPeriod,
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map(|name| format!("did you mean {name:?}? ")).unwrap_or_default()
}

/// The maximum number of names of one kind, such as tool names, that are collected from the audit log to suggest
/// corrections.
const NAMES_MAX: usize = 1_000;
/// The byte positions of the hyphens in the id of a run, a UUID such as `01234567-0123-7012-8012-0123456789ab`.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const EXECUTION_CHARS: usize = 36;

#[derive(Debug, clap::Args)]
pub(super) struct FilterOptions {
    /// Only records of this event: execution, call, outcome, denial, approval, refusal, reload, token, login and others
    #[arg(long, value_parser = parse_event)]
    event: Option<String>,
    /// Only records about this upstream server
    #[arg(long)]
    server: Option<String>,
    /// Only records about this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only records about this AI client
    #[arg(long)]
    client: Option<String>,
    /// Only records with this outcome of a call, question or approval, or with this status of a run
    #[arg(long)]
    outcome: Option<String>,
    /// Only records with this policy decision: allow, ask or deny
    #[arg(long, value_parser = ["allow", "ask", "deny"])]
    decision: Option<String>,
    /// Only records of the run with this id, or prefix of an id
    #[arg(long, value_parser = parse_execution)]
    execution: Option<String>,
    /// Only records from this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age such as 2h or 7d
    #[arg(long, value_parser = parse_time)]
    since: Option<SystemTime>,
    /// Only records up to this time, in the formats of --since
    #[arg(long, value_parser = parse_time)]
    until: Option<SystemTime>,
}

impl FilterOptions {
    /// Converts the options into a filter for audit records.
    ///
    /// # Errors
    /// [`InvalidOption::EmptyPeriod`] if `--since` is later than `--until`.
    pub(super) fn to_filter(&self) -> Result<Filter, InvalidOption> {
        let Self { event, server, tool, client, outcome, decision, execution, since, until } = self;
        if let (Some(since), Some(until)) = (since, until)
            && since > until
        {
            return Err(InvalidOption::EmptyPeriod);
        }
        Ok(Filter {
            event: event.clone(),
            server: server.clone(),
            tool: tool.clone(),
            client: client.clone(),
            outcome: outcome.clone(),
            decision: decision.clone(),
            execution: execution.clone(),
            since: *since,
            until: *until,
        })
    }

    /// Prints that no record matches, and which option values do not occur in the audit log. Returns the exit status.
    /// It is a usage error if the value of `--outcome` neither occurs in the log nor is an outcome of this version of
    /// Lockhouse; otherwise success.
    pub(super) fn report_no_match(&self, directory: &Path) -> Result<ExitCode, ReadError> {
        let names = LoggedNames::collect(directory)?;
        let mut hints = Vec::new();
        for (kind, requested, known) in [
            ("server", &self.server, &names.servers),
            ("tool", &self.tool, &names.tools),
            ("client", &self.client, &names.clients),
        ] {
            let Some(requested) = requested.as_deref().filter(|requested| !known.contains(*requested)) else {
                continue;
            };
            let suggestion = most_similar_name(requested, known.iter().map(String::as_str));
            let suggestion =
                suggestion.map(|name| format!("; did you mean {:?}?", printable(name))).unwrap_or_default();
            hints.push(format!("the log has no {kind} {:?}{suggestion}", printable(requested)));
        }
        if let Some(outcome) = self.outcome.as_deref()
            && !outcomes().contains(&outcome)
            && !names.outcomes.contains(outcome)
        {
            let all = outcomes().into_iter().chain(names.outcomes.iter().map(String::as_str));
            let suggestion = most_similar_name(outcome, all)
                .map(|name| format!("; did you mean {name:?}?"))
                .unwrap_or_default();
            eprintln!("lockhouse: there is no outcome {:?}{suggestion}", printable(outcome));
            return Ok(ExitCode::from(USAGE));
        }
        report_no_records();
        for hint in hints {
            eprintln!("lockhouse: {hint}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints "no records" to standard error, since standard output carries only records.
pub(super) fn report_no_records() {
    eprintln!("lockhouse: no records");
}

/// The names and outcomes that occur in the audit log, at most [`NAMES_MAX`] of each kind.
#[derive(Default)]
struct LoggedNames {
    servers: BTreeSet<String>,
    tools: BTreeSet<String>,
    clients: BTreeSet<String>,
    outcomes: BTreeSet<String>,
}

impl LoggedNames {
    fn collect(directory: &Path) -> Result<Self, ReadError> {
        let mut names = Self::default();
        for found in matching_records(directory, &Filter::default())? {
            let record: serde_json::Value = serde_json::from_str(&found?.text).unwrap_or_default();
            for (members, names) in [
                (&["server"][..], &mut names.servers),
                (&["tool"], &mut names.tools),
                (&["client"], &mut names.clients),
                (&["outcome", "status"], &mut names.outcomes),
            ] {
                let found = members.iter().filter_map(|member| record[*member].as_str());
                let room = NAMES_MAX.saturating_sub(names.len());
                names.extend(found.take(room).map(str::to_owned));
            }
        }
        Ok(names)
    }
}

/// Returns the names of the audit events that `--event` accepts.
fn events() -> impl Iterator<Item = &'static str> {
    RUN_EVENTS.into_iter().chain(ADMINISTRATIVE_EVENTS).chain(LOG_EVENTS)
}

fn parse_event(text: &str) -> Result<String, InvalidOption> {
    match events().any(|event| event == text) {
        true => Ok(text.to_owned()),
        false => Err(InvalidOption::Event { nearest: most_similar_name(text, events()) }),
    }
}

fn parse_execution(text: &str) -> Result<String, InvalidOption> {
    let fits = |(at, byte): (usize, u8)| match HYPHENS.contains(&at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    match (1..=EXECUTION_CHARS).contains(&text.len()) && text.bytes().enumerate().all(fits) {
        true => Ok(text.to_lowercase()),
        false => Err(InvalidOption::Execution),
    }
}

pub(super) fn parse_time(text: &str) -> Result<SystemTime, InvalidOption> {
    let midnight = format!("{text}T00:00:00Z");
    if let Ok(time) = humantime::parse_rfc3339_weak(text).or_else(|_| humantime::parse_rfc3339(&midnight)) {
        return Ok(time);
    }
    humantime::parse_duration(text).map(ago).map_err(|_| InvalidOption::Time)
}
