//! Connects to several servers concurrently, with a progress line on a terminal.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lockhouse_upstream::Upstreams;

/// The maximum length of the progress line in characters, so that the line does not wrap.
const LINE_CHARS_MAX: usize = 79;

/// Waits until each upstream server is connected or has failed. The start timeout of each server bounds the wait.
pub(in crate::cli) async fn connect_all(upstreams: &Upstreams) {
    let shows_progress =
        std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut waiting: BTreeSet<&str> = upstreams.iter().map(|(name, _)| name.as_str()).collect();
    let count = waiting.len();
    let mut settling: FuturesUnordered<_> = upstreams
        .iter()
        .map(async |(name, connection)| {
            let _ = connection.connected_server().await;
            name.as_str()
        })
        .collect();
    loop {
        if shows_progress {
            let names: Vec<&str> = waiting.iter().copied().collect();
            let line = format!("connected to {} of {count}; ", count - waiting.len());
            let line = format!("{line}waiting for {}", names.join(", "));
            let line: String = line.chars().take(LINE_CHARS_MAX).collect();
            // Overwrites the previous progress line.
            eprint!("\r\x1b[2K{}", if waiting.is_empty() { "" } else { &line });
        }
        match settling.next().await {
            Some(name) => waiting.remove(name),
            None => return,
        };
    }
}
