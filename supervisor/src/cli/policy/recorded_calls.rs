//! Reads past calls from the audit log.

use std::io::{ErrorKind, IsTerminal};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_audit::reader::{Filter, ReadError, records};
use lockhouse_audit::{AuditEvent, AuditSettings, CallIdentity};
use lockhouse_base::representable_time::ago;
use lockhouse_policies::{Call, CallTarget, ClientName, Effect, Listing};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use serde_json::{Map, Value};

/// How often the progress line on the terminal is updated while the audit log is read.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// A call in the audit log, which was either sent to an upstream server or denied.
pub(super) struct RecordedCall {
    pub(super) server: ServerName,
    pub(super) item: CallTarget,
    pub(super) client: Option<ClientName>,
    /// The decision of the policy at the time of the call.
    pub(super) decided: Effect,
    /// Whether the call was sent to the upstream server.
    pub(super) made: bool,
    /// The arguments of the call. `None` if the audit log does not contain their exact values.
    pub(super) arguments: Option<Map<String, Value>>,
}

impl RecordedCall {
    /// Returns the call in the form that a policy evaluates. If its arguments are not recorded, the returned call has
    /// no arguments.
    pub(super) fn call(&self) -> Call {
        let arguments = self.arguments.clone().unwrap_or_default();
        Call::new(&self.server, self.item.clone()).with_arguments(arguments).with_client(self.client.clone())
    }

    fn from_event(event: AuditEvent) -> Option<Self> {
        let (about, decided, made, arguments) = match event {
            AuditEvent::Call { about, decision, arguments, .. } => {
                (about, decision, true, arguments.values.filter(|_| arguments.values_exact))
            }
            AuditEvent::Denial { about, decision, .. } => (about, decision, false, None),
            _ => return None,
        };
        let decided = match decided.as_str() {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            _ => Effect::Deny,
        };
        let CallIdentity { server, kind, item, client, .. } = about;
        Some(Self {
            server: ServerName::new(server).ok()?,
            item: parse_item(kind, item)?,
            client: client.as_deref().map(ClientName::new),
            decided,
            made,
            arguments,
        })
    }
}

fn parse_item(kind: &str, name: String) -> Option<CallTarget> {
    match kind {
        "tool" => ToolName::new(name).ok().map(CallTarget::Tool),
        "resource" => ResourceUri::new(name).ok().map(CallTarget::Resource),
        "prompt" => PromptName::new(name).ok().map(CallTarget::Prompt),
        _ => [Listing::Resources, Listing::Prompts]
            .into_iter()
            .find(|list| list.as_str() == name)
            .map(CallTarget::List),
    }
}

/// Passes each call since `since` in the audit log to `visit`, oldest first, and returns the number of calls. Shows
/// progress on a terminal.
///
/// # Errors
/// [`ReadError`] if the audit log, or a part of it, cannot be read.
pub(super) fn for_each(
    audit: &AuditSettings,
    since: SystemTime,
    mut visit: impl FnMut(RecordedCall),
) -> Result<u64, ReadError> {
    let filter = Filter { since: Some(since), ..Filter::default() };
    let shows_progress =
        std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let (mut last_progress, mut read, mut calls) = (Instant::now(), 0_u64, 0);
    let found = match records(&audit.directory, &filter) {
        // No log exists before the first run.
        Err(error) if error.source.kind() == ErrorKind::NotFound => return Ok(0),
        found => found?,
    };
    for found in found {
        let found = found?;
        read += 1;
        if shows_progress && read % 1_000 == 0 && last_progress.elapsed() > PROGRESS_INTERVAL {
            eprint!("\r\x1b[2Kread {read} records, to {}", lockhouse_policies::printable(&found.record.time));
            last_progress = Instant::now();
        }
        if let Some(call) = RecordedCall::from_event(found.record.event) {
            calls += 1;
            visit(call);
        }
    }
    if shows_progress {
        eprint!("\r\x1b[2K");
    }
    Ok(calls)
}

/// The value of `--since` is neither an age, a date nor a time.
#[derive(Debug, thiserror::Error)]
#[error("use an age such as 7d or 12h, or a date such as 2026-01-31")]
pub(super) struct InvalidTime;

/// Parses an age (`7d`, `12h`), a date (`2026-01-31`) or a time (`2026-01-31T12:00:00Z`).
pub(super) fn parse_since(text: &str) -> Result<SystemTime, InvalidTime> {
    if let Ok(age) = humantime::parse_duration(text) {
        return Ok(ago(age));
    }
    let moment = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    humantime::parse_rfc3339(&moment).map_err(|_| InvalidTime)
}
