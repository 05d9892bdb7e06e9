//! Which records are wanted: the options of `query` and `export`, and what is said where no record is as they say.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_audit::read::{Filter, ReadError};
use lockhouse_policies::printable;

use super::matching::matching;
use crate::cli::USAGE;
use lockhouse_policies::nearest;

/// The events that are shown. What the log says of itself is none of them.
const EVENTS: [&str; 14] = [
    "execution",
    "skill",
    "call",
    "approval",
    "denial",
    "outcome",
    "question",
    "end",
    "refusal",
    "reload",
    "token",
    "login",
    "definition",
    "gap",
];
/// The outcomes that this version writes. A log may have others, of other versions.
const OUTCOMES: [&str; 50] = [
    // Of calls.
    "ok",
    "draft",
    "unknown",
    "not_sent",
    "denied",
    "invalid_arguments",
    "unknown_tool",
    "timeout",
    "upstream_unavailable",
    "tool_failed",
    "result_too_large",
    "approval_declined",
    "rate_limited",
    "not_found",
    // Of executions.
    "error",
    "limit",
    "killed",
    "cancelled",
    // Of approvals.
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
    // Of questions.
    "accept",
    "decline",
    "cancel",
    "no answer in time",
    "no answer that MCP knows",
    "not asked",
    "handed on",
    // Of refused runs.
    "InvalidRequest",
    "Unavailable",
    "SessionEnded",
    "SessionsBusy",
    "RateLimited",
    "Busy",
    // Of configurations, tokens, logins and definitions.
    "accepted",
    "refused",
    "created",
    "failed",
    "revoked",
    "answered",
    "granted",
    "logged out",
];
/// A value of an option that no record can have.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidOption {
    #[error("there is no such event; {}They are {}", did_you_mean(*.nearest), EVENTS.join(", "))]
    Event { nearest: Option<&'static str> },
    #[error("an identifier is as 0191a2b3-c4d5-7e6f-8a9b-0c1d2e3f4a5b, or its beginning")]
    Execution,
    #[error("use 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, as 2h or 7d")]
    Time,
    #[error("--since is later than --until, so that no record can be between them")]
    EmptyPeriod,
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map(|name| format!("did you mean {name:?}? ")).unwrap_or_default()
}

/// Names of one kind that are compared with one that is not there.
const NAMES_MAX: usize = 1_000;
/// `01234567-0123-7012-8012-0123456789ab`
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const EXECUTION_CHARS: usize = 36;

#[derive(Debug, clap::Args)]
pub(super) struct Wanted {
    /// Of this event: execution, call, outcome, denial, approval, refusal, reload, token, login and so on
    #[arg(long, value_parser = event)]
    event: Option<String>,
    /// Of this upstream server
    #[arg(long)]
    server: Option<String>,
    /// Of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Of this AI client
    #[arg(long)]
    client: Option<String>,
    /// With this outcome of a call, a question or an approval, or this status of an execution
    #[arg(long)]
    outcome: Option<String>,
    /// With this decision: allow, ask or deny
    #[arg(long, value_parser = ["allow", "ask", "deny"])]
    decision: Option<String>,
    /// Of this execution; the beginning of its identifier is enough
    #[arg(long, value_parser = execution)]
    execution: Option<String>,
    /// From this time on: 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, as 2h or 7d
    #[arg(long, value_parser = moment)]
    since: Option<SystemTime>,
    /// Until this time, in the same forms
    #[arg(long, value_parser = moment)]
    until: Option<SystemTime>,
}

impl Wanted {
    /// What the options say.
    ///
    /// # Errors
    /// [`InvalidOption::EmptyPeriod`]
    pub(super) fn filter(&self) -> Result<Filter, InvalidOption> {
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

    /// Says that no record is as the options say, and which of their names the log does not have. An outcome that neither the
    /// log nor this version has is a mistake.
    pub(super) fn tell_none(&self, directory: &Path) -> Result<ExitCode, ReadError> {
        let names = Names::of(directory)?;
        let mut hints = Vec::new();
        for (kind, wanted, there) in [
            ("server", &self.server, &names.servers),
            ("tool", &self.tool, &names.tools),
            ("client", &self.client, &names.clients),
        ] {
            let Some(wanted) = wanted.as_deref().filter(|wanted| !there.contains(*wanted)) else { continue };
            let meant = nearest(wanted, there.iter().map(String::as_str));
            let meant =
                meant.map(|name| format!("; did you mean {:?}?", printable(name))).unwrap_or_default();
            hints.push(format!("the log has no {kind} {:?}{meant}", printable(wanted)));
        }
        if let Some(outcome) = self.outcome.as_deref()
            && !OUTCOMES.contains(&outcome)
            && !names.outcomes.contains(outcome)
        {
            let all = OUTCOMES.into_iter().chain(names.outcomes.iter().map(String::as_str));
            let meant =
                nearest(outcome, all).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            eprintln!("lockhouse: there is no outcome {:?}{meant}", printable(outcome));
            return Ok(ExitCode::from(USAGE));
        }
        no_records();
        for hint in hints {
            eprintln!("lockhouse: {hint}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// On standard error: standard output has records alone.
pub(super) fn no_records() {
    eprintln!("lockhouse: no records");
}

/// Names that a log has.
#[derive(Default)]
struct Names {
    servers: BTreeSet<String>,
    tools: BTreeSet<String>,
    clients: BTreeSet<String>,
    outcomes: BTreeSet<String>,
}

impl Names {
    fn of(directory: &Path) -> Result<Self, ReadError> {
        let mut names = Self::default();
        for found in matching(directory, &Filter::default())? {
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

fn event(text: &str) -> Result<String, InvalidOption> {
    match EVENTS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(InvalidOption::Event { nearest: nearest(text, EVENTS.into_iter()) }),
    }
}

fn execution(text: &str) -> Result<String, InvalidOption> {
    let fits = |(at, byte): (usize, u8)| match HYPHENS.contains(&at) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    match (1..=EXECUTION_CHARS).contains(&text.len()) && text.bytes().enumerate().all(fits) {
        true => Ok(text.to_lowercase()),
        false => Err(InvalidOption::Execution),
    }
}

fn moment(text: &str) -> Result<SystemTime, InvalidOption> {
    let midnight = format!("{text}T00:00:00Z");
    if let Ok(time) = humantime::parse_rfc3339_weak(text).or_else(|_| humantime::parse_rfc3339(&midnight)) {
        return Ok(time);
    }
    let ago = humantime::parse_duration(text).ok().and_then(|ago| SystemTime::now().checked_sub(ago));
    ago.ok_or(InvalidOption::Time)
}
