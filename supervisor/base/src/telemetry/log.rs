//! What this process says of what it does, line by line on standard error, or to the journal.
//!
//! Much of it repeats words of servers and clients. None of them can end a line or steer a terminal: what follows on a
//! further line of one entry is set in, and a control character is shown as what it is.

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

/// What lines are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One object in each line.
    Json,
    /// To systemd's journal, in fields.
    Journald,
}

/// Begins to log what `LOCKHOUSE_LOG` says, or else `default`.
pub fn install(format: Format, default: &str) {
    let filter = EnvFilter::try_from_env("LOCKHOUSE_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // What rmcp says while it authorizes may hold codes and tokens; spans of traces are no lines.
    let traces = format!("{}=off", traces::TARGET);
    let silent = ["rmcp::transport::auth=off", traces.as_str()].map(|directive| directive.parse().ok());
    let filter = silent.into_iter().flatten().fold(filter, EnvFilter::add_directive);
    let (layer, trouble) = match format {
        Format::Text => (text(), None),
        Format::Json => (json(), None),
        Format::Journald => match tracing_journald::layer() {
            // Fields by the names that they have everywhere else: EXECUTION_ID would be F_EXECUTION_ID.
            Ok(layer) => (layer.with_field_prefix(None).boxed(), None),
            Err(error) => (text(), Some(error)),
        },
    };
    let (sent, not_sent) = match traces::layer() {
        Ok(layer) => (layer, None),
        Err(reason) => (None, Some(reason)),
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).with(sent).init();
    if let Some(error) = trouble {
        tracing::warn!("there is no journal to log to, and lines go to standard error: {error}");
    }
    if let Some(reason) = not_sent {
        tracing::warn!(
            "no traces are sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names: {reason}"
        );
    }
}

fn text() -> Box<dyn Layer<Registry> + Send + Sync> {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let fields = debug_fn(field).delimited(" ");
    let layer = tracing_subscriber::fmt::layer().fmt_fields(fields).with_ansi(colour);
    // Its own complaint would go to the same place, and panic there.
    layer.with_writer(std::io::stderr).log_internal_errors(false).boxed()
}

fn json() -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false);
    layer.with_writer(std::io::stderr).log_internal_errors(false).boxed()
}

/// One field, as text. What an entry says comes without a name.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    let value = harmless(&format!("{value:?}"));
    match field.name() {
        "message" => write!(writer, "{value}"),
        name => write!(writer, "{name}={value}"),
    }
}

/// The text with nothing in it that a terminal obeys, or that looks like another entry.
fn harmless(text: &str) -> String {
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
        let forged =
            harmless("done\n2026-01-01T00:00:00Z ERROR lockhouse: \u{1b}[2Jforged\r\u{9b}1m\u{202e}x");
        assert!(forged.lines().skip(1).all(|line| line.starts_with("    ")), "{forged:?}");
        assert!(!forged.contains(['\u{1b}', '\r', '\u{9b}', '\u{202e}']), "{forged:?}");
        assert_eq!(harmless("größer 中 👍 \"x\" = {y}"), "größer 中 👍 \"x\" = {y}");
    }
}
