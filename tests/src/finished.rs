//! A program that ran to its end.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// What depends on the host.
const REDUCED: &str = "lockhouse: reduced sandbox:";

/// Far more than any test needs; what is still running then has hung.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The directory of the test, which [`Finished::told`] leaves out.
    pub(crate) directory: String,
}

impl Finished {
    /// Runs a program to its end with `input`.
    ///
    /// # Panics
    /// If it cannot be started, or has not ended after a minute.
    #[must_use]
    pub fn of(command: &mut Command, input: &[u8]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("its standard input");
        let input = input.to_owned();
        // A program that does not read its input may close it.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        let pid = Pid::from_raw(child.id() as i32);
        let (ended, hangs) = mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let is_over = hangs.recv_timeout(HANGS_AFTER).is_ok();
            if !is_over {
                let _ = kill(pid, Signal::SIGKILL);
            }
            is_over
        });
        let output = child.wait_with_output().expect("its output");
        let _ = ended.send(());
        let finished = Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            directory: String::new(),
        };
        assert!(watchdog.join().expect("the watchdog"), "{command:?} hung: {finished:?}");
        finished
    }

    /// Standard error without what depends on the host.
    #[must_use]
    pub fn complaints(&self) -> String {
        self.stderr
            .lines()
            .filter(|line| !line.starts_with(REDUCED))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// Standard output as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// What a person read, both streams, without what differs from run to run.
    #[must_use]
    pub fn told(&self) -> String {
        let text = format!("{}{}", self.stdout, self.stderr);
        let text = if self.directory.is_empty() { text } else { text.replace(&self.directory, "[DIR]") };
        let lines = text.lines().filter(|line| !line.starts_with(REDUCED));
        let lines: Vec<&str> = lines.map(|line| without_time(line.trim_end())).collect();
        format!("{}\nexit status {:?}", lines.join("\n"), self.status)
    }
}

/// A line of the log without its time.
fn without_time(line: &str) -> &str {
    let is_time = |word: &str| word.starts_with("20") && word.ends_with('Z') && word.contains('T');
    line.split_once(' ').filter(|(word, _)| is_time(word)).map_or(line, |(_, rest)| rest.trim_start())
}
