//! Lines on the standard output of an upstream server that are no messages. They are ignored, and often say why a server
//! does not work: a usage text, a prompt, an error.

use std::sync::Arc;

use lockhouse_base::secrets::Secrets;
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;

/// Number of lines that are kept.
const LINES_MAX: usize = 3;
/// Length of a line that is kept, in characters.
const LINE_CHARS_MAX: usize = 200;
/// Number of bytes of a line that are examined.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The first lines of one process that are no messages. Clones share the lines.
#[derive(Clone, Default)]
pub(super) struct StdoutNoise {
    lines: Arc<Mutex<Vec<String>>>,
    secrets: Secrets,
    server: Option<ServerName>,
}

impl StdoutNoise {
    pub(super) fn new(server: &ServerName, secrets: Secrets) -> Self {
        Self { lines: Arc::default(), secrets, server: Some(server.clone()) }
    }

    /// Keeps a line if it is no message. The first one of a process is logged.
    pub(super) fn examine(&self, line: &[u8]) {
        let text = line.trim_ascii_start();
        // Messages are objects, or lists of them in older versions of the protocol.
        if text.is_empty() || text.starts_with(b"{") || text.starts_with(b"[{") {
            return;
        }
        let mut lines = self.lines.lock();
        if lines.len() == LINES_MAX {
            return;
        }
        let text = String::from_utf8_lossy(&text[..text.len().min(LINE_BYTES_MAX)]);
        // First the control characters: without them, the pieces of a secret around one are together again.
        let visible: String = text.chars().filter(|c| !c.is_control()).collect();
        let line: String = self.secrets.redact(&visible).trim().chars().take(LINE_CHARS_MAX).collect();
        if lines.is_empty()
            && let Some(server) = &self.server
        {
            tracing::info!(%server, "it writes lines to stdout that are no messages, and are ignored: {line:?}");
        }
        lines.push(line);
    }

    /// Returns the lines as a clause to append to an error message; an empty text if there are none.
    pub(super) fn clause(&self) -> String {
        let lines = self.lines.lock();
        let quoted: Vec<String> = lines.iter().map(|line| format!("{line:?}")).collect();
        match quoted.is_empty() {
            true => String::new(),
            false => format!("; it wrote to stdout, which is for messages only: {}", quoted.join(" | ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_messages_are_quoted_without_secrets() {
        let secrets = Secrets::from_environment(&[("TOKEN".to_owned(), "SEKRET-CANARY".to_owned())].into());
        let noise = StdoutNoise::new(&ServerName::new("s").expect("a name"), secrets);
        for line in [r#"{"jsonrpc":"2.0"}"#, "  ", "[{}]"] {
            noise.examine(line.as_bytes());
        }
        assert_eq!(noise.clause(), "");
        for line in ["Usage: x\u{1b}[0m SEK\u{7}RET-CANARY", "two", "three", "four"] {
            noise.examine(line.as_bytes());
        }
        let clause = noise.clause();
        assert!(clause.contains("\"Usage: x[0m ") && clause.ends_with("\"two\" | \"three\""), "{clause}");
        assert!(!clause.contains("CANARY"), "{clause}");
    }
}
