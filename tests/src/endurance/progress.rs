//! How far a suite is.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const TELL_AFTER: Duration = Duration::from_millis(500);

/// Told on a terminal alone.
#[derive(Debug)]
pub(crate) struct Progress {
    title: &'static str,
    total: usize,
    done: usize,
    began: Instant,
    told: Instant,
}

impl Progress {
    pub(crate) fn new(title: &'static str, total: usize) -> Self {
        Self { title, total, done: 0, began: Instant::now(), told: Instant::now() }
    }

    pub(crate) fn step(&mut self) {
        self.done += 1;
        let is_due = self.told.elapsed() >= TELL_AFTER || self.done == self.total;
        if is_due && std::io::stderr().is_terminal() {
            self.told = Instant::now();
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
