//! Lines from standard input, without holding up anything else.

use std::io::{BufRead, Read};

use tokio::sync::mpsc;

/// Bytes of a line. What is longer arrives in pieces, none of which is an answer.
const LINE_BYTES_MAX: u64 = 4 * 1024;

/// Standard input, read ahead by a thread that ends with the process: a read cannot be taken back. Each line says for itself
/// which question it answers.
#[derive(Debug)]
pub(super) struct Lines(mpsc::Receiver<String>);

impl Lines {
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

    /// The next line. None at the end of the input.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}
