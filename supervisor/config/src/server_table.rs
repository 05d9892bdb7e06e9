//! Converts an upstream server into a `[servers.NAME]` table of Lockhouse's own configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_upstream::{Confinement, HttpTransport, ProtocolMinimum, TextDecoding};
use toml_edit::{Array, InlineTable, Item, Table, Value};

use super::placeholders::Template;
use super::sandbox_choice::SandboxChoice;
use super::secret_detection::replace_secrets;
use super::server_entry::{EntryCommand, EntryEndpoint, EntryLimits, EntryOAuth, EntryUrl, ServerEntry};

/// Converts a server entry to TOML. `secret` receives the name and text of each value that has no placeholder and may
/// be a secret. It returns the placeholder to write in place of the value, or `None` if the value itself is to be
/// written.
pub fn to_server_table(entry: &ServerEntry, secret: &mut impl FnMut(&str, &str) -> Option<String>) -> Table {
    let mut writer = Writer { secret };
    let mut table = Table::new();
    match &entry.endpoint {
        EntryEndpoint::Command(command) => writer.command(&mut table, command),
        EntryEndpoint::Url(url) => writer.url(&mut table, url),
    }
    limits(&mut table, &entry.limits);
    if entry.start.lazy {
        table.insert("start", Item::Value("lazy".into()));
    }
    if entry.start.legacy_handshake {
        table.insert("protocol", Item::Value("2025-11-25".into()));
    }
    if entry.start.protocol_minimum != ProtocolMinimum::default() {
        table.insert("protocol_minimum", Item::Value(entry.start.protocol_minimum.as_str().into()));
    }
    if let Some(idle) = entry.start.idle_stop {
        table.insert("idle_stop_seconds", seconds(idle));
    }
    if let Some(only) = &entry.tools.only {
        table.insert("enabled_tools", list(only.iter().cloned()));
    }
    if !entry.tools.except.is_empty() {
        table.insert("disabled_tools", list(entry.tools.except.iter().cloned()));
    }
    if entry.decode != TextDecoding::default() {
        table.insert("decode", Item::Value(entry.decode.as_str().into()));
    }
    if let Some(exposure) = &entry.exposure
        && let Some(directly) = &exposure.direct
    {
        let expose = if exposure.to_code { "both" } else { "direct" };
        table.insert("expose", Item::Value(expose.into()));
        if let Some(prefix) = &directly.prefix {
            table.insert("prefix", Item::Value(prefix.into()));
        }
    }
    if let Some(on_change) = entry.on_change {
        table.insert("on_change", Item::Value(on_change.as_str().into()));
    }
    table
}

fn list(texts: impl Iterator<Item = String>) -> Item {
    Item::Value(Value::Array(texts.collect::<Array>()))
}

/// Returns a duration as TOML, rounded up to whole seconds, which are the unit of the configuration.
fn seconds(time: Duration) -> Item {
    Item::Value((time.as_secs_f64().ceil() as i64).into())
}

fn limits(table: &mut Table, limits: &EntryLimits) {
    let mut set = |key, value: Option<Item>| {
        if let Some(value) = value {
            table.insert(key, value);
        }
    };
    set("start_timeout_seconds", limits.start_timeout.map(seconds));
    set("call_timeout_seconds", limits.call_timeout.map(seconds));
    let count = |count: usize| Item::Value((count as i64).into());
    set("parallel_calls", limits.parallel_calls.map(count));
    set("queue", limits.queue.map(count));
    set("queue_timeout_seconds", limits.queue_timeout.map(seconds));
}

struct Writer<'s, S> {
    secret: &'s mut S,
}

impl<S: FnMut(&str, &str) -> Option<String>> Writer<'_, S> {
    fn text(&mut self, name: &str, template: &Template) -> String {
        let reference = template.as_literal().and_then(|text| (self.secret)(name, text));
        reference.unwrap_or_else(|| template.to_own_syntax())
    }

    /// Formats an argument or URL, with placeholders in place of the secrets that it contains. `name` is the name of
    /// the whole value: the option that precedes the argument, or `url`.
    fn replace_secrets(&mut self, name: &str, template: &Template) -> String {
        let plain = |text: &str| Template::literal(text).to_own_syntax();
        let reference =
            template.as_literal().and_then(|text| replace_secrets(name, text, &mut *self.secret, plain));
        reference.unwrap_or_else(|| template.to_own_syntax())
    }

    fn command(&mut self, table: &mut Table, command: &EntryCommand) {
        table.insert("command", Item::Value(command.program.to_own_syntax().into()));
        let arguments = self.arguments(&command.arguments);
        if !arguments.is_empty() {
            table.insert("args", list(arguments.into_iter()));
        }
        if let Some(directory) = &command.directory {
            table.insert("cwd", Item::Value(directory.to_own_syntax().into()));
        }
        self.map(table, "env", &command.environment);
        // Only a sandbox that consists of a profile is ever written; lists of paths are the user's own.
        match (&command.confinement, &command.no_sandbox) {
            (Some(Confinement { profile: Some(profile), user_namespaces, .. }), _) => {
                let (profile, user_namespaces) = (*profile, *user_namespaces);
                SandboxChoice::Profile { profile, user_namespaces }.write_to(table);
            }
            (None, Some(reason)) => SandboxChoice::Without(reason.clone()).write_to(table),
            _ => {}
        }
    }

    fn arguments(&mut self, arguments: &[Template]) -> Vec<String> {
        let mut option = "";
        let mut written = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let text = argument.as_literal().unwrap_or_default();
            written.push(self.replace_secrets(option, argument));
            option = if text.starts_with('-') { text.trim_start_matches('-') } else { "" };
        }
        written
    }

    fn url(&mut self, table: &mut Table, url: &EntryUrl) {
        let text = self.replace_secrets("url", &url.url);
        table.insert("url", Item::Value(text.into()));
        if url.transport != HttpTransport::default() {
            table.insert("transport", Item::Value(url.transport.as_str().into()));
        }
        self.map(table, "headers", &url.headers);
        if let Some(token) = &url.bearer_token {
            let text = self.text("bearer_token", token);
            table.insert("bearer_token", Item::Value(text.into()));
        } else if let Some(oauth) = &url.oauth {
            self.oauth(table, oauth);
        }
        if let Some(proxy) = &url.proxy {
            table.insert("proxy", Item::Value(proxy.to_own_syntax().into()));
        }
    }

    fn map(&mut self, table: &mut Table, key: &str, map: &BTreeMap<String, Template>) {
        if map.is_empty() {
            return;
        }
        let mut inline = InlineTable::new();
        for (name, template) in map {
            inline.insert(name, self.text(name, template).into());
        }
        table.insert(key, Item::Value(Value::InlineTable(inline)));
    }

    fn oauth(&mut self, table: &mut Table, oauth: &EntryOAuth) {
        let mut inline = InlineTable::new();
        if let Some(id) = &oauth.client_id {
            inline.insert("client_id", id.to_own_syntax().into());
        }
        if let Some(secret) = &oauth.client_secret {
            inline.insert("client_secret", self.text("client_secret", secret).into());
        }
        if !oauth.scopes.is_empty() {
            inline.insert("scopes", Value::Array(oauth.scopes.iter().cloned().collect()));
        }
        if let Some(port) = oauth.callback_port {
            inline.insert("callback_port", i64::from(port).into());
        }
        table.insert("oauth", Item::Value(Value::InlineTable(inline)));
    }
}
