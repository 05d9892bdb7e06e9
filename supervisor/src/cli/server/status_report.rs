//! The state of one upstream server, as `lockhouse server list` and `lockhouse server get` show it.

use std::time::Duration;

use lockhouse_config::SkippedServer;
use lockhouse_upstream::{
    Connection, ConnectionState, Endpoint, HttpTransport, KernelGap, ServerClass, ServerDefinition,
    ServerSandbox,
};
use serde_json::{Value, json};

use crate::cli::unavailable_servers::unavailable_reason;

/// The state of one upstream server. The fields are the keys of the `--json` output, except that `start` is
/// called `start_ms` there. The names of these keys are stable.
pub(super) struct StatusReport {
    name: String,
    transport: Option<&'static str>,
    /// Whose account its process has. `None` for a server over HTTP, and one that is not used.
    class: Option<ServerClass>,
    /// `None` for a server that Lockhouse does not start.
    sandbox: Option<ServerSandbox>,
    origin: String,
    state: &'static str,
    tools: Option<usize>,
    /// The size in bytes of all tool definitions, which an AI client would load if it connected to the server without
    /// Lockhouse. `None` if the tools are unknown.
    definitions_bytes: Option<usize>,
    era: Option<String>,
    fell_back: bool,
    /// The time from the start of the server to the receipt of its tool list. `None` if no tool list was received.
    start: Option<Duration>,
    error: Option<String>,
}

/// The names of the columns that [`StatusReport::cells`] returns.
pub(super) const COLUMNS: [&str; 8] = ["name", "class", "state", "tools", "era", "start", "sandbox", "error"];

/// The maximum number of characters of an error that the table shows. `server get` and `--json` show the whole error.
const ERROR_CHARS_MAX: usize = 100;

impl StatusReport {
    /// Returns the state of a configured server, without connecting to the server.
    pub(super) fn configured(name: &str, definition: &ServerDefinition) -> Self {
        Self {
            name: name.to_owned(),
            transport: Some(transport(definition)),
            class: ServerClass::of(&definition.endpoint),
            sandbox: ServerSandbox::of(&definition.endpoint),
            origin: definition.origin.clone(),
            state: "idle",
            tools: None,
            definitions_bytes: None,
            era: None,
            fell_back: false,
            start: None,
            error: None,
        }
    }

    /// Returns the state of a server after an attempt to connect to it.
    pub(super) fn connected(name: &str, definition: &ServerDefinition, connection: &Connection) -> Self {
        let status = connection.status();
        let known = connection.known_catalogue();
        Self {
            state: match connection.state() {
                ConnectionState::Idle => "idle",
                ConnectionState::Connecting => "connecting",
                ConnectionState::Connected(_) => "connected",
                ConnectionState::Failed(_) => "failed",
            },
            tools: known.as_ref().map(|known| known.tools.len()),
            definitions_bytes: known.map(|known| known.definitions_bytes),
            era: status.protocol_version,
            fell_back: status.used_legacy_handshake,
            start: status.start_time,
            error: unavailable_reason(connection),
            ..Self::configured(name, definition)
        }
    }

    /// Returns the state of a configured server that Lockhouse does not use, because it is disabled or for the reason
    /// in `unused`.
    pub(super) fn unused(unused: &SkippedServer) -> Self {
        Self {
            name: unused.name.clone(),
            transport: None,
            class: None,
            sandbox: None,
            origin: unused.origin.clone(),
            state: if unused.disabled { "disabled" } else { "left_out" },
            tools: None,
            definitions_bytes: None,
            era: None,
            fell_back: false,
            start: None,
            error: (!unused.disabled).then(|| unused.reason.clone()),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let sandbox = |sandbox: &ServerSandbox| {
            let missing: Vec<&str> = sandbox.missing().iter().map(KernelGap::name).collect();
            json!({"level": sandbox.level(), "profile": sandbox.profile(), "missing": missing})
        };
        json!({
            "name": self.name, "transport": self.transport, "class": self.class.map(ServerClass::as_str),
            "sandbox": self.sandbox.as_ref().map(sandbox), "origin": self.origin, "state": self.state,
            "tools": self.tools, "definitions_bytes": self.definitions_bytes, "era": self.era,
            "fell_back": self.fell_back, "start_ms": self.start.map(to_ms), "error": self.error,
        })
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let era = self.era.clone().unwrap_or_default();
        let error = self.error.clone().unwrap_or_default();
        let short: String = error.chars().take(ERROR_CHARS_MAX).collect();
        vec![
            self.name.clone(),
            self.class_or_transport(),
            self.state.replace('_', " "),
            self.tools.map(|tools| tools.to_string()).unwrap_or_default(),
            if self.fell_back { format!("{era} (fell back)") } else { era },
            self.start.map(format_duration).unwrap_or_default(),
            self.sandbox.as_ref().map(ServerSandbox::to_string).unwrap_or_default(),
            if short.len() < error.len() { format!("{short}…") } else { short },
        ]
    }

    /// Returns the class of a server whose process Lockhouse knows, and the transport of any other one.
    fn class_or_transport(&self) -> String {
        match (self.class, self.transport.unwrap_or_default()) {
            (Some(class), _) => class.title().to_owned(),
            (None, transport) if transport == HttpTransport::Sse.as_str() => {
                format!("{transport} (deprecated)")
            }
            (None, transport) => transport.to_owned(),
        }
    }

    /// Returns the parts of the state that are known, such as the number of tools, as pairs of label and text.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let [_, class, state, tools, era, start, _, _] =
            <[String; 8]>::try_from(self.cells()).unwrap_or_default();
        let missing = self.sandbox.iter().flat_map(ServerSandbox::missing).map(KernelGap::to_string);
        let missing = missing.collect::<Vec<_>>().join("; ");
        let bytes = self.definitions_bytes.map(|bytes| format!("{tools} ({bytes} bytes of definitions)"));
        let error = self.error.clone().unwrap_or_default();
        let class = if self.class.is_some() { class } else { String::new() };
        let lines = [
            ("class", class),
            ("not enforced", missing),
            ("state", state),
            ("error", error),
            ("era", era),
            ("start time", start),
            ("tools", bytes.unwrap_or(tools)),
        ];
        lines.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

fn transport(definition: &ServerDefinition) -> &'static str {
    match &definition.endpoint {
        Endpoint::Stdio(_) => "stdio",
        Endpoint::Http(endpoint) => endpoint.transport.as_str(),
        Endpoint::Socket(_) => "socket",
    }
}

/// Converts a duration to milliseconds, with microsecond precision.
pub(super) fn to_ms(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}

/// Formats a duration in seconds or milliseconds, with the unit.
pub(super) fn format_duration(took: Duration) -> String {
    match took.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 0.001 => format!("{:.0} ms", seconds * 1000.0),
        seconds => format!("{:.1} ms", seconds * 1000.0),
    }
}
