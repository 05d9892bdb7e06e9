//! The log of this process: lines on standard error, or fields in the systemd journal.
//!
//! Many entries quote text from upstream servers and AI clients. Such text cannot forge an entry or control a terminal:
//! all lines of an entry except the first are indented, and control characters are escaped.

use std::fmt::Write as _;
use std::io::IsTerminal;

use serde::Deserialize;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::traces;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text for people. An entry is one line, or several lines if its message has several.
    #[default]
    Text,
    /// One JSON object in each line.
    Json,
    /// Entries with fields in the systemd journal.
    Journald,
}

/// Starts logging with the log filter in the environment variable `LOCKHOUSE_LOG`, or with the log filter `default` if
/// the variable is not set or not valid. Logs as [`Format::Text`] if the format is [`Format::Journald`] and there is no
/// journal. Also starts the export of spans if the environment names a collector.
pub fn install(format: Format, default: &str) {
    let filter = EnvFilter::try_from_env("LOCKHOUSE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // rmcp may log OAuth codes and tokens while it authorizes. Spans of traces are not log lines.
    let traces = format!("{}=off", traces::TARGET);
    let silent = ["rmcp::transport::auth=off", traces.as_str()].map(|directive| directive.parse().ok());
    let filter = silent.into_iter().flatten().fold(filter, EnvFilter::add_directive);
    let (layer, journal_error) = match format {
        Format::Text => (text(), None),
        Format::Json => (json(), None),
        Format::Journald => match tracing_journald::layer() {
            // No prefix, so that fields have the same names as in the other formats: not F_EXECUTION_ID.
            Ok(layer) => (layer.with_field_prefix(None).boxed(), None),
            Err(error) => (text(), Some(error)),
        },
    };
    let (traces_layer, traces_error) = match traces::layer() {
        Ok(layer) => (layer, None),
        Err(reason) => (None, Some(reason)),
    };
    let log = tracing_subscriber::registry().with(layer.with_filter(filter));
    match traces_layer {
        Some(traces_layer) => log.with(traces_layer).init(),
        // A layer that is `None` would enable every span of the process.
        None => log.init(),
    }
    if let Some(error) = journal_error {
        tracing::warn!("there is no journal to log to, and lines go to standard error: {error}");
    }
    if let Some(reason) = traces_error {
        tracing::warn!(
            "no traces are sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names: {reason}"
        );
    }
}

fn text() -> Box<dyn Layer<Registry> + Send + Sync> {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let fields = debug_fn(field).delimited(" ");
    let layer = tracing_subscriber::fmt::layer().fmt_fields(fields).with_ansi(colour);
    // The layer's own error message would go to standard error as well, and panic there.
    layer.with_writer(std::io::stderr).log_internal_errors(false).boxed()
}

fn json() -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false);
    layer.with_writer(std::io::stderr).log_internal_errors(false).boxed()
}

/// Writes one field of an entry as text: `NAME=VALUE`, and for the message only its value.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    let value = escape_control_characters(&format!("{value:?}"));
    match field.name() {
        "message" => write!(writer, "{value}"),
        name => write!(writer, "{name}={value}"),
    }
}

/// Escapes control characters and invisible characters, and indents all lines except the first, so that the text cannot
/// control a terminal or look like another entry.
fn escape_control_characters(text: &str) -> String {
    // Most values are of this kind, such as the ids of runs, and need no look at each character.
    if text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\n    "),
            c if lockhouse_policies::printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]) => shown.push(c),
            c => drop(write!(shown, "{}", c.escape_unicode())),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_can_end_it_or_steer_a_terminal() {
        let forged = escape_control_characters(
            "done\n2026-01-01T00:00:00Z ERROR lockhouse: \u{1b}[2Jforged\r\u{9b}1m\u{202e}x",
        );
        assert!(forged.lines().skip(1).all(|line| line.starts_with("    ")), "{forged:?}");
        assert!(!forged.contains(['\u{1b}', '\r', '\u{9b}', '\u{202e}']), "{forged:?}");
        assert_eq!(escape_control_characters("größer 中 👍 \"x\" = {y}"), "größer 中 👍 \"x\" = {y}");
    }
}
