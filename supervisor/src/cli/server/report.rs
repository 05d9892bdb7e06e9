//! How one server is: what `list` and `get` show of it.

use std::time::Duration;

use lockhouse_upstream::{Connection, Reach, ServerDefinition, State};
use serde_json::{Value, json};

use crate::cli::unavailable::why_unavailable;
use crate::config::Unused;

/// One server. The names of its fields are those of `--json`, and stay.
pub(super) struct Report {
    name: String,
    transport: Option<&'static str>,
    origin: String,
    state: &'static str,
    tools: Option<usize>,
    /// What a client that loads all definitions would get of them.
    definitions_bytes: Option<usize>,
    era: Option<String>,
    fell_back: bool,
    /// From the start to its list of tools.
    start: Option<Duration>,
    error: Option<String>,
}

/// The columns of [`Report::cells`].
pub(super) const COLUMNS: [&str; 7] = ["name", "transport", "state", "tools", "era", "start", "error"];

/// Characters of an error in a table. `get` and `--json` have all of it.
const ERROR_CHARS_MAX: usize = 100;

impl Report {
    /// Of a server that nobody connected to.
    pub(super) fn configured(name: &str, definition: &ServerDefinition) -> Self {
        Self {
            name: name.to_owned(),
            transport: Some(transport(definition)),
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

    /// Of a server that was connected to, or could not be.
    pub(super) fn connected(name: &str, definition: &ServerDefinition, connection: &Connection) -> Self {
        let status = connection.status();
        let known = connection.known();
        Self {
            state: match connection.state() {
                State::Idle => "idle",
                State::Connecting => "connecting",
                State::Connected(_) => "connected",
                State::Failed(_) => "failed",
            },
            tools: known.as_ref().map(|known| known.tools.len()),
            definitions_bytes: known.map(|known| known.definitions_bytes),
            era: status.era,
            fell_back: status.fell_back,
            start: status.start,
            error: why_unavailable(connection),
            ..Self::configured(name, definition)
        }
    }

    /// Of a server that is configured and not used.
    pub(super) fn unused(unused: &Unused) -> Self {
        Self {
            name: unused.name.clone(),
            transport: None,
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
        json!({
            "name": self.name, "transport": self.transport, "origin": self.origin, "state": self.state,
            "tools": self.tools, "definitions_bytes": self.definitions_bytes, "era": self.era,
            "fell_back": self.fell_back, "start_ms": self.start.map(ms), "error": self.error,
        })
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let era = self.era.clone().unwrap_or_default();
        let error = self.error.clone().unwrap_or_default();
        let short: String = error.chars().take(ERROR_CHARS_MAX).collect();
        vec![
            self.name.clone(),
            self.transport.unwrap_or_default().into(),
            self.state.replace('_', " "),
            self.tools.map(|tools| tools.to_string()).unwrap_or_default(),
            if self.fell_back { format!("{era} (fell back)") } else { era },
            self.start.map(shown).unwrap_or_default(),
            if short.len() < error.len() { format!("{short}…") } else { short },
        ]
    }

    /// What is known of it now, line by line.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let [_, _, state, tools, era, start, _] = <[String; 7]>::try_from(self.cells()).unwrap_or_default();
        let bytes = self.definitions_bytes.map(|bytes| format!("{tools} ({bytes} bytes of definitions)"));
        let error = self.error.clone().unwrap_or_default();
        let lines = [
            ("state", state),
            ("error", error),
            ("era", era),
            ("start took", start),
            ("tools", bytes.unwrap_or(tools)),
        ];
        lines.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

fn transport(definition: &ServerDefinition) -> &'static str {
    match definition.reach {
        Reach::Stdio(_) => "stdio",
        Reach::Http(_) => "http",
    }
}

/// Milliseconds, to the microsecond.
pub(super) fn ms(took: Duration) -> f64 {
    took.as_micros() as f64 / 1000.0
}

/// For a person.
pub(super) fn shown(took: Duration) -> String {
    match took.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 0.001 => format!("{:.0} ms", seconds * 1000.0),
        seconds => format!("{:.1} ms", seconds * 1000.0),
    }
}
