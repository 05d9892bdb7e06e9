//! Shows the progress of an endurance suite on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const PRINT_INTERVAL: Duration = Duration::from_millis(500);

/// Progress output, which is printed only if standard error is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    title: &'static str,
    total: usize,
    done: usize,
    began: Instant,
    printed_at: Instant,
}

impl Progress {
    pub(crate) fn new(title: &'static str, total: usize) -> Self {
        Self { title, total, done: 0, began: Instant::now(), printed_at: Instant::now() }
    }

    pub(crate) fn step(&mut self) {
        self.done += 1;
        let is_due = self.printed_at.elapsed() >= PRINT_INTERVAL || self.done == self.total;
        if is_due && std::io::stderr().is_terminal() {
            self.printed_at = Instant::now();
            let line_end = if self.done == self.total { "\n" } else { "" };
            let seconds = self.began.elapsed().as_secs();
            let _ = write!(
                std::io::stderr(),
                "\r{}: {} of {}, {seconds} s{line_end}",
                self.title,
                self.done,
                self.total
            );
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}
