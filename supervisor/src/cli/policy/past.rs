//! Calls of the past, as the audit log has them.

use std::io::{ErrorKind, IsTerminal};
use std::time::{Duration, Instant, SystemTime};

use lockhouse_audit::read::{Filter, ReadError, records};
use lockhouse_audit::{About, AuditSettings, Event};
use lockhouse_policies::{Call, ClientName, Effect, Item, Listing};
use lockhouse_protocol::{PromptName, ResourceUri, ServerName, ToolName};
use serde_json::{Map, Value};

/// How often a person is told how far the reading is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// One call, whether it was made or refused.
pub(super) struct Past {
    pub(super) server: ServerName,
    pub(super) item: Item,
    pub(super) client: Option<ClientName>,
    /// What was decided about it.
    pub(super) decided: Effect,
    /// Whether it went out.
    pub(super) made: bool,
    /// Its arguments, where the log has them as they were.
    pub(super) arguments: Option<Map<String, Value>>,
}

impl Past {
    /// The same call, to be decided again. Without arguments where they are not known.
    pub(super) fn call(&self) -> Call {
        let arguments = self.arguments.clone().unwrap_or_default();
        Call::new(&self.server, self.item.clone()).with_arguments(arguments).by(self.client.clone())
    }

    fn of(event: Event) -> Option<Self> {
        let (about, decided, made, arguments) = match event {
            Event::Call { about, decision, arguments, .. } => {
                (about, decision, true, arguments.values.filter(|_| arguments.values_exact))
            }
            Event::Denial { about, decision, .. } => (about, decision, false, None),
            _ => return None,
        };
        let decided = match decided.as_str() {
            "allow" => Effect::Allow,
            "ask" => Effect::Ask,
            _ => Effect::Deny,
        };
        let About { server, kind, item, client, .. } = about;
        Some(Self {
            server: ServerName::new(server).ok()?,
            item: item_of(kind, item)?,
            client: client.as_deref().map(ClientName::of),
            decided,
            made,
            arguments,
        })
    }
}

fn item_of(kind: &str, name: String) -> Option<Item> {
    match kind {
        "tool" => ToolName::new(name).ok().map(Item::Tool),
        "resource" => ResourceUri::new(name).ok().map(Item::Resource),
        "prompt" => PromptName::new(name).ok().map(Item::Prompt),
        _ => [Listing::Resources, Listing::Prompts]
            .into_iter()
            .find(|list| list.as_str() == name)
            .map(Item::List),
    }
}

/// Hands each call since then to `meet`, the oldest first, and gives their number. A person at a terminal is told how far
/// it is.
///
/// # Errors
/// [`ReadError`]: the log, or a part of it, cannot be read.
pub(super) fn each(
    audit: &AuditSettings,
    since: SystemTime,
    mut meet: impl FnMut(Past),
) -> Result<u64, ReadError> {
    let filter = Filter { since: Some(since), ..Filter::default() };
    let tells = std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let (mut told, mut read, mut calls) = (Instant::now(), 0_u64, 0);
    let found = match records(&audit.directory, &filter) {
        // Nothing ran yet.
        Err(error) if error.source.kind() == ErrorKind::NotFound => return Ok(0),
        found => found?,
    };
    for found in found {
        let found = found?;
        read += 1;
        if tells && read % 1_000 == 0 && told.elapsed() > TOLD_EVERY {
            eprint!("\r\x1b[2Kread {read} records, to {}", lockhouse_policies::printable(&found.record.time));
            told = Instant::now();
        }
        if let Some(past) = Past::of(found.record.event) {
            calls += 1;
            meet(past);
        }
    }
    if tells {
        eprint!("\r\x1b[2K");
    }
    Ok(calls)
}

/// A text that is neither a period nor a day nor a moment.
#[derive(Debug, thiserror::Error)]
#[error("write how long ago, such as 7d or 12h, or a day, such as 2026-01-31")]
pub(super) struct InvalidTime;

/// `7d` or `12h`: that long ago; or a day or moment: `2026-01-31`, `2026-01-31T12:00:00Z`.
pub(super) fn since(text: &str) -> Result<SystemTime, InvalidTime> {
    if let Ok(ago) = humantime::parse_duration(text) {
        return Ok(SystemTime::now().checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH));
    }
    let moment = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    humantime::parse_rfc3339(&moment).map_err(|_| InvalidTime)
}
