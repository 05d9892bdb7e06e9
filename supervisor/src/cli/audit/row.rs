//! A record as a line for people.

use lockhouse_audit::{About, Administration, Arguments, Event, Record};
use lockhouse_policies::printable;
use serde_json::{Map, Value};

/// Characters of an execution's identifier that are shown: `audit show` takes them.
const EXECUTION_CHARS: usize = 18;
const WHAT_CHARS: usize = 28;
/// Characters of what a call was made with.
const ARGUMENTS_CHARS_MAX: usize = 200;

/// One line; none for what the log says of itself.
pub(super) fn row(record: &Record) -> Option<String> {
    let (execution, what, told) = parts(&record.event)?;
    let time = shown_time(&record.time);
    let execution: String = execution.chars().take(EXECUTION_CHARS).collect();
    let event = name(&record.event);
    let row = format!("{time}  {execution:EXECUTION_CHARS$}  {event:10}  {what:WHAT_CHARS$}  {told}");
    Some(printable(row.trim_end()))
}

/// The same within the story of one execution, with the time since it began.
pub(super) fn story_row(record: &Record, since_ms: f64) -> Option<String> {
    let (_, what, told) = parts(&record.event)?;
    let event = name(&record.event);
    Some(printable(format!("{since_ms:>9.1} ms  {event:9}  {what:WHAT_CHARS$}  {told}").trim_end()))
}

/// `2026-01-31 12:00:00.000`
pub(super) fn shown_time(time: &str) -> String {
    let millis = time.get(..23).unwrap_or(time);
    millis.replacen('T', " ", 1)
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::Execution { .. } => "execution",
        Event::Skill { .. } => "skill",
        Event::Refusal { .. } => "refusal",
        Event::Administration(Administration { event, .. }) => event,
        Event::Call { .. } => "call",
        Event::Approval { .. } => "approval",
        Event::Denial { .. } => "denial",
        Event::Outcome { .. } => "outcome",
        Event::Question { .. } => "question",
        Event::End { .. } => "end",
        Event::Gap { .. } => "gap",
        Event::Chain => "chain",
    }
}

fn parts(event: &Event) -> Option<(&str, String, String)> {
    Some(match event {
        Event::Execution { execution, client, language, servers, code_bytes, .. } => {
            let client = client.as_ref().map(|client| format!(" from {client}")).unwrap_or_default();
            let told = format!("{code_bytes} bytes{client}; servers: {}", servers.join(", "));
            (execution, language.clone(), told)
        }
        Event::Refusal { execution, client, language, outcome, reason, left_out } => {
            let client = client.as_ref().map(|client| format!(" from {client}")).unwrap_or_default();
            let left_out = match left_out {
                0 => String::new(),
                count => format!(" ({count} more of this client have no record)"),
            };
            (execution, language.clone(), format!("{outcome}{client}: {reason}{left_out}"))
        }
        Event::Administration(administration) => ("", administration.subject.clone(), done(administration)),
        Event::Skill { execution, skill, version, code, .. } => {
            (execution, skill.clone(), format!("version {version}, code {}", code.get(..16).unwrap_or(code)))
        }
        Event::Call { about, arguments, decision, rule, approval } => {
            let approval =
                approval.as_ref().map(|scope| format!(", approved for {scope}")).unwrap_or_default();
            let line = about.line.map(|line| format!("line {line} ")).unwrap_or_default();
            let told = format!("{line}{} {decision}{approval} ({rule})", with(arguments));
            (&about.execution, item(about), told)
        }
        Event::Approval { about, digest, through, outcome, uid } => {
            let uid = uid.map(|uid| format!(", user {uid}")).unwrap_or_default();
            let through =
                through.as_ref().map(|through| format!(" through {through}{uid}")).unwrap_or_default();
            (
                &about.execution,
                item(about),
                format!("{outcome}{through}, {}", digest.get(..16).unwrap_or(digest)),
            )
        }
        Event::Denial { about, reason, .. } => (&about.execution, item(about), reason.clone()),
        Event::Outcome { about, outcome, ms, result_bytes } => {
            (&about.execution, item(about), format!("{outcome}, {ms:.1} ms, {result_bytes} bytes"))
        }
        Event::Question { execution, server, outcome } => (execution, server.clone(), outcome.clone()),
        Event::End { execution, status, wall_ms, cpu_ms, calls } => {
            let cpu = cpu_ms.map(|ms| format!(", {ms:.1} ms of CPU")).unwrap_or_default();
            (execution, status.clone(), format!("{wall_ms:.1} ms{cpu}, {calls} calls"))
        }
        Event::Gap { since, records, reason } => {
            let told = format!("since {} could not be written: {reason}", shown_time(since));
            ("", format!("{records} records"), told)
        }
        Event::Chain => return None,
    })
}

/// What was done, by whom, and what it is known by.
fn done(administration: &Administration) -> String {
    let Administration { outcome, reason, digest, uid, login_uid, .. } = administration;
    let by = uid.map(|uid| format!(" by user {uid}")).unwrap_or_default();
    let login = login_uid.filter(|login| Some(*login) != *uid);
    let login = login.map(|login| format!(" (logged in as {login})")).unwrap_or_default();
    let digest = digest.as_ref().map(|digest| format!(", {}", digest.get(..16).unwrap_or(digest)));
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{outcome}{by}{login}{}{reason}", digest.unwrap_or_default())
}

fn item(about: &About) -> String {
    match about.kind {
        "tool" => format!("{}.{}", about.server, about.item),
        kind => format!("{} {kind} {}", about.server, about.item),
    }
}

fn with(arguments: &Arguments) -> String {
    let of = |members: &Map<String, Value>, plain: bool| {
        let shown = |(name, value): (&String, &Value)| match value {
            Value::String(kind) if plain => format!("{name}: {kind}"),
            value => format!("{name}: {value}"),
        };
        members.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let told = match &arguments.values {
        Some(values) => of(values, false),
        None => of(&arguments.shape, true),
    };
    match told.char_indices().nth(ARGUMENTS_CHARS_MAX) {
        Some((end, _)) => format!("({}…)", &told[..end]),
        None => format!("({told})"),
    }
}
