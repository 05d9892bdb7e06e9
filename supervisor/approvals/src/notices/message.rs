//! What a notice says. It has no arguments of calls and no addresses of resources, which may be secrets.

use std::time::{Duration, SystemTime};

use lockhouse_base::host_name::host_name;
use lockhouse_messages::{ApprovalQuestion, CallSummary};
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

/// Maximum number of calls that a notice names.
const CALLS_MAX: usize = 10;

/// What the notices of one question say.
#[derive(Debug)]
pub(super) struct Notice(Value);

/// Why a message is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessageKind {
    /// The question was asked.
    Requested,
    /// The question still waits.
    Reminder,
}

/// A message to one receiver, with an id that stays the same when the message is sent again.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) body: String,
}

impl Notice {
    pub(super) fn of(question: &ApprovalQuestion, link: Option<&Url>) -> Self {
        let named = question.calls.iter().take(CALLS_MAX).map(call);
        let named: Vec<Value> = named.collect();
        let seconds = Duration::try_from_secs_f64(question.seconds).unwrap_or_default();
        let mut data = json!({
            "text": text(question, link),
            "host": host_name(),
            "question": question.id,
            "digest": question.digest,
            "execution": question.execution,
            "client": question.client,
            "calls": named,
            "calls_left_out": question.calls.len().saturating_sub(CALLS_MAX),
            "expires_at": humantime::format_rfc3339_seconds(SystemTime::now() + seconds).to_string(),
        });
        if let Some(link) = link {
            data["link"] = link.as_str().into();
        }
        Self(data)
    }
}

fn call(call: &CallSummary) -> Value {
    json!({"server": call.server, "kind": call.kind, "name": tool_name(call)})
}

/// Returns the name of the called tool. `None` for other items, whose addresses may contain secrets.
fn tool_name(call: &CallSummary) -> Option<&str> {
    (call.kind == "tool").then_some(call.name.as_str())
}

/// Returns a name without characters that chat programs turn into links or markup. Clients and servers choose their names.
fn plain(name: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "_-.:@ ".contains(character);
    name.chars().map(|character| if is_plain(character) { character } else { '?' }).collect()
}

/// Returns the sentences of a notice for people.
fn text(question: &ApprovalQuestion, link: Option<&Url>) -> String {
    let client = question.client.as_deref().map_or("an AI client".to_owned(), plain);
    let first = question.calls.first().map_or_else(String::new, |call| match tool_name(call) {
        Some(name) => format!("{}.{}", call.server, plain(name)),
        None => format!("a {} of {}", plain(&call.kind), call.server),
    });
    let further = match question.calls.len().saturating_sub(1) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let host = host_name().unwrap_or_else(|| "this host".to_owned());
    let answer = match link {
        Some(link) => link.to_string(),
        None => format!("`lockhouse approvals` or `lockhouse page` on {host}"),
    };
    format!(
        "Code of {client} asks to call {first}{further} on {host}. Answer within {:.0} s: {answer}",
        question.seconds
    )
}

impl Message {
    pub(super) fn new(kind: MessageKind, notice: &Notice) -> Self {
        let kind = match kind {
            MessageKind::Requested => "approval.requested",
            MessageKind::Reminder => "approval.reminder",
        };
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let body = json!({"type": kind, "timestamp": now, "data": notice.0});
        Self { id: format!("msg_{}", Uuid::now_v7().simple()), body: body.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_no_links_and_no_markup() {
        for (name, expected) in [
            ("create_issue", "create_issue"),
            ("oauth:ada@example.com", "oauth:ada@example.com"),
            ("<https://evil.example|Approve here>", "?https:??evil.example?Approve here?"),
            ("<!channel> *now*", "??channel? ?now?"),
            ("[a](http://b)", "?a??http:??b?"),
            ("`a`\n\u{202e}b", "?a???b"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
