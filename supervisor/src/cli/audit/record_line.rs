//! Renders an audit record for people: as one line, which is wrapped to the width of the terminal.

use std::collections::BTreeMap;

use lockhouse_audit::{AdministrativeEvent, Arguments, AuditEvent, CallIdentity, Record};
use lockhouse_policies::printable;
use serde_json::{Map, Value};

use crate::cli::line_width::wrap_line;

/// How many characters of a run's id are shown: enough for `lockhouse audit show` to find the run.
const EXECUTION_CHARS: usize = 18;
const WHAT_CHARS: usize = 28;
/// The maximum number of characters that are shown of a call's arguments.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// The indentation of the wrapped part of a record, so that only the first line of a record begins with its time.
const WRAPPED_INDENT: &str = "    ";
/// The same for the records of one run. It is the width of the time and of the space after it.
const WRAPPED_EXECUTION_INDENT: &str = "              ";

/// Renders an audit record as one line, wrapped to the width of the terminal. Returns `None` for a `chain` record, which is bookkeeping of the log itself.
pub(super) fn format_record(record: &Record) -> Option<String> {
    let (execution, what, details) = columns(&record.event)?;
    let time = format_time(&record.time);
    let execution: String = execution.chars().take(EXECUTION_CHARS).collect();
    let event = event_name(&record.event);
    let row = format!("{time}  {execution:EXECUTION_CHARS$}  {event:10}  {what:WHAT_CHARS$}  {details}");
    Some(wrap_line(&printable(row.trim_end()), WRAPPED_INDENT))
}

/// Renders an audit record of a run as one line, wrapped to the width of the terminal. The line begins with `since_ms`, the number of milliseconds from the
/// start of the run to the record. Returns `None` for a `chain` record, which is bookkeeping of the log itself.
pub(super) fn format_execution_record(record: &Record, since_ms: f64) -> Option<String> {
    let (_, what, details) = columns(&record.event)?;
    let event = event_name(&record.event);
    let row = format!("{since_ms:>9.1} ms  {event:9}  {what:WHAT_CHARS$}  {details}");
    Some(wrap_line(&printable(row.trim_end()), WRAPPED_EXECUTION_INDENT))
}

/// Formats an RFC 3339 time as `2026-01-31 12:00:00.000`.
pub(super) fn format_time(time: &str) -> String {
    let millis = time.get(..23).unwrap_or(time);
    millis.replacen('T', " ", 1)
}

fn event_name(event: &AuditEvent) -> &'static str {
    match event {
        AuditEvent::Execution { .. } => "execution",
        AuditEvent::Skill { .. } => "skill",
        AuditEvent::Refusal { .. } => "refusal",
        AuditEvent::Administration(AdministrativeEvent { event, .. }) => event,
        AuditEvent::Call { .. } => "call",
        AuditEvent::Approval { .. } => "approval",
        AuditEvent::Denial { .. } => "denial",
        AuditEvent::Outcome { .. } => "outcome",
        AuditEvent::Question { .. } => "question",
        AuditEvent::End { .. } => "end",
        AuditEvent::Gap { .. } => "gap",
        AuditEvent::Clock { .. } => "clock",
        AuditEvent::Chain => "chain",
    }
}

fn format_client(client: Option<&str>) -> String {
    client.map(|client| format!(" from {client}")).unwrap_or_default()
}

/// Formats the ids that an AI client gave its request, each with its name.
fn format_claims(claimed: &BTreeMap<String, String>) -> String {
    claimed.iter().fold(String::new(), |text, (name, claim)| text + "; " + name + " " + claim)
}

/// Returns a text with what comes before it; nothing without a text.
fn optional(before: &str, text: Option<&str>) -> String {
    text.map(|text| format!("{before}{text}")).unwrap_or_default()
}

/// Returns the details of the record of an approval. Empty for other records.
fn approval_details(event: &AuditEvent) -> String {
    let AuditEvent::Approval { digest, through, outcome, uid, presence, approver, break_glass, .. } = event
    else {
        return String::new();
    };
    let uid = uid.map(|uid| format!(", user {uid}")).unwrap_or_default();
    let through = through.as_ref().map(|through| format!(" through {through}{uid}")).unwrap_or_default();
    let (approver, presence) =
        (optional(" by ", approver.as_deref()), optional(" with ", presence.as_deref()));
    let alone = optional(", BREAK GLASS: ", break_glass.as_deref());
    format!("{outcome}{approver}{through}{presence}{alone}, {}", digest.get(..16).unwrap_or(digest))
}

fn columns(event: &AuditEvent) -> Option<(&str, String, String)> {
    Some(match event {
        AuditEvent::Execution { execution, client, language, servers, code_bytes, claimed, .. } => {
            let (client, claimed) = (format_client(client.as_deref()), format_claims(claimed));
            let details = format!("{code_bytes} bytes{client}; servers: {}{claimed}", servers.join(", "));
            (execution, language.clone(), details)
        }
        AuditEvent::Refusal { execution, client, language, outcome, reason, left_out, claimed } => {
            let client = format_client(client.as_deref());
            let left_out = match left_out {
                0 => String::new(),
                count => format!(" ({count} more of this client have no record)"),
            };
            (
                execution,
                language.clone(),
                format!("{outcome}{client}: {reason}{left_out}{}", format_claims(claimed)),
            )
        }
        AuditEvent::Administration(administration) => {
            ("", administration.subject.clone(), describe_administration(administration))
        }
        AuditEvent::Skill { execution, skill, version, code, .. } => {
            (execution, skill.clone(), format!("version {version}, code {}", code.get(..16).unwrap_or(code)))
        }
        AuditEvent::Call { about, arguments, decision, rule, approval, .. } => {
            let approval = optional(", approved for ", approval.as_deref());
            let line = about.line.map(|line| format!("line {line} ")).unwrap_or_default();
            let details = format!("{line}{} {decision}{approval} ({rule})", format_arguments(arguments));
            (&about.execution, format_item(about), details)
        }
        AuditEvent::Approval { about, .. } => (&about.execution, format_item(about), approval_details(event)),
        AuditEvent::Denial { about, reason, .. } => (&about.execution, format_item(about), reason.clone()),
        AuditEvent::Outcome { about, outcome, ms, result_bytes } => {
            (&about.execution, format_item(about), format!("{outcome}, {ms:.1} ms, {result_bytes} bytes"))
        }
        AuditEvent::Question { execution, server, outcome } => (execution, server.clone(), outcome.clone()),
        AuditEvent::End { execution, status, ended_by, wall_ms, cpu_ms, calls, .. } => {
            let ended_by = optional(", ended by ", ended_by.as_deref());
            let cpu = cpu_ms.map(|ms| format!(", {ms:.1} ms of CPU")).unwrap_or_default();
            (execution, status.clone(), format!("{wall_ms:.1} ms{cpu}, {calls} calls{ended_by}"))
        }
        AuditEvent::Gap { since, records, reason } => {
            let details = format!("since {} could not be written: {reason}", format_time(since));
            ("", format!("{records} records"), details)
        }
        AuditEvent::Clock { from, to, difference_s } => {
            let details = format!("from {} to {}", format_time(from), format_time(to));
            ("", format!("{difference_s:+.0} s"), details)
        }
        AuditEvent::Chain => return None,
    })
}

/// Describes an administrative action, such as the creation of a token: its outcome, its Unix user, and if it has them,
/// its reason and the digest of the policy or definitions that it is about.
fn describe_administration(administration: &AdministrativeEvent) -> String {
    let AdministrativeEvent { outcome, reason, digest, uid, login_uid, action, file, client, .. } =
        administration;
    let by = uid.map(|uid| format!(" by user {uid}")).unwrap_or_default();
    let login = login_uid.filter(|login| Some(*login) != *uid);
    let login = login.map(|login| format!(" (logged in as {login})")).unwrap_or_default();
    let digest = digest.as_ref().map(|digest| format!(", {}", digest.get(..16).unwrap_or(digest)));
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let what = [action, file, client, &administration.execution, &administration.session];
    let what: String = what.into_iter().flatten().fold(String::new(), |text, part| text + ", " + part);
    let through = administration.through.as_ref().map(|through| format!(" through {through}"));
    let through = through.filter(|_| administration.event != "authentication").unwrap_or_default();
    let presence = optional(" with ", administration.presence.as_deref());
    let status = administration.exit_status.map(|status| format!(", exit status {status}"));
    let left_out = match administration.left_out {
        0 => String::new(),
        count => format!(" ({count} more have no record)"),
    };
    let (digest, status) = (digest.unwrap_or_default(), status.unwrap_or_default());
    format!("{outcome}{through}{presence}{by}{login}{what}{digest}{status}{reason}{left_out}")
}

fn format_item(about: &CallIdentity) -> String {
    match about.kind {
        "tool" => format!("{}.{}", about.server, about.item),
        kind => format!("{} {kind} {}", about.server, about.item),
    }
}

fn format_arguments(arguments: &Arguments) -> String {
    let format_members = |members: &Map<String, Value>, plain: bool| {
        let format_member = |(name, value): (&String, &Value)| match value {
            Value::String(kind) if plain => format!("{name}: {kind}"),
            value => format!("{name}: {value}"),
        };
        members.iter().map(format_member).collect::<Vec<_>>().join(", ")
    };
    let details = match &arguments.values {
        Some(values) => format_members(values, false),
        None => format_members(&arguments.shape, true),
    };
    match details.char_indices().nth(ARGUMENTS_CHARS_MAX) {
        Some((end, _)) => format!("({}…)", &details[..end]),
        None => format!("({details})"),
    }
}
