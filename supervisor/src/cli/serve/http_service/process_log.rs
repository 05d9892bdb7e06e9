//! Writes the log lines of a sealed process to this process's log. The process may be in the hands of an attacker: its lines are
//! marked, and limited in length and number.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::Instant;

use super::process_name::ServiceProcess;

/// Maximum length of a line in bytes. The rest of a longer one is a line of its own.
/// Bound: engines and fronts.
const LINE_BYTES_MAX: u64 = 8 * 1024;
/// Maximum number of lines in a second. Further ones are dropped and counted.
/// Bound: engines and fronts.
const LINES_PER_SECOND: u32 = 500;
const SECOND: Duration = Duration::from_secs(1);

/// A line of the process, which writes its log as JSON.
#[derive(Deserialize)]
struct Line {
    level: Level,
    message: String,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Writes an entry of a process to the log of this one, under a name that no other part of this program has.
macro_rules! entry {
    ($target:literal, $level:expr, $($message:tt)+) => {
        match $level {
            Level::Error => tracing::error!(target: $target, $($message)+),
            Level::Warn => tracing::warn!(target: $target, $($message)+),
            Level::Info => tracing::info!(target: $target, $($message)+),
            Level::Debug => tracing::debug!(target: $target, $($message)+),
            Level::Trace => tracing::trace!(target: $target, $($message)+),
        }
    };
}

impl ServiceProcess {
    fn log(self, level: Level, message: &str) {
        match self {
            Self::Front => entry!("lockhouse::http_front", level, "{message}"),
            Self::Signer => entry!("lockhouse::tls_signer", level, "{message}"),
        }
    }
}

/// Reads the lines of the process until it has closed its standard error.
pub(super) async fn relay(process: ServiceProcess, stderr: impl AsyncRead + Unpin) {
    let (mut reader, mut line) = (BufReader::new(stderr), Vec::new());
    let (mut since, mut count) = (Instant::now(), 0);
    loop {
        line.clear();
        match (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if since.elapsed() >= SECOND {
            if count > LINES_PER_SECOND {
                let dropped = format!("{} lines of the log were dropped", count - LINES_PER_SECOND);
                process.log(Level::Warn, &dropped);
            }
            (since, count) = (Instant::now(), 0);
        }
        count += 1;
        if count <= LINES_PER_SECOND {
            write(process, &line);
        }
    }
}

fn write(process: ServiceProcess, line: &[u8]) {
    let Ok(Line { level, mut message, fields }) = serde_json::from_slice(line) else {
        // Such as the message of a panic, or a fault before the log.
        return process.log(Level::Error, String::from_utf8_lossy(line).trim_end());
    };
    for (name, value) in fields {
        if !matches!(name.as_str(), "timestamp" | "target") {
            message.push_str(&format!(" {name}={value}"));
        }
    }
    process.log(level, &message);
}
