//! Reads lines from standard input on a separate thread, so that the async tasks never block.

use std::io::{BufRead, Read};

use tokio::sync::mpsc;

/// The maximum length of a line in bytes. A longer line is split, and none of its pieces is a valid answer.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// The lines of standard input. A thread reads them ahead until the process exits, since a blocking read cannot be
/// cancelled. Each answer contains the id of its question, so a line that is read ahead cannot answer a later question
/// by mistake.
#[derive(Debug)]
pub(super) struct StdinLines(mpsc::Receiver<String>);

impl StdinLines {
    pub(super) fn new() -> Self {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            loop {
                let mut line = Vec::new();
                match Read::take(&mut stdin, LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                    Ok(1..) => {}
                    _ => return,
                }
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// Returns the next line of standard input, or `None` at the end of the input.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}
