//! The exit status and output of a finished program.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The beginning of the warning about a reduced sandbox. Tests ignore this warning, because it appears only on some
/// hosts.
const REDUCED: &str = "lockhouse: reduced sandbox:";

/// The time limit of a program. A program that takes longer is killed and fails the test.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The exit status and output of a finished program.
#[derive(Debug)]
pub struct CommandOutput {
    /// The exit status; `None` if a signal ended the program.
    pub status: Option<i32>,
    /// Standard output, decoded as UTF-8.
    pub stdout: String,
    /// Standard error, decoded as UTF-8.
    pub stderr: String,
    /// The test's temporary directory, which [`CommandOutput::transcript`] replaces by a placeholder.
    pub(crate) directory: String,
}

impl CommandOutput {
    /// Runs a program until it exits, with `input` as its standard input.
    ///
    /// # Panics
    /// If the program cannot be started, or has not exited within a minute.
    #[must_use]
    pub fn run(command: &mut Command, input: &[u8]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("its standard input");
        let input = input.to_owned();
        // Writing fails if the program closes its standard input without reading it.
        std::thread::spawn(move || drop(stdin.write_all(&input)));
        let pid = Pid::from_raw(child.id() as i32);
        let (ended, hangs) = mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let is_over = hangs.recv_timeout(RESPONSE_TIMEOUT).is_ok();
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

    /// Returns the program's standard error without the warning about a reduced sandbox, which appears only on some
    /// hosts.
    #[must_use]
    pub fn errors(&self) -> String {
        self.stderr
            .lines()
            .filter(|line| !line.starts_with(REDUCED))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// Parses the program's standard output as JSON.
    ///
    /// # Panics
    /// If standard output is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// Returns standard output, standard error and exit status as the text of a snapshot, without the parts that
    /// differ between runs and hosts.
    #[must_use]
    pub fn transcript(&self) -> String {
        let text = format!("{}{}", self.stdout, self.stderr);
        let text = if self.directory.is_empty() { text } else { text.replace(&self.directory, "[DIR]") };
        let lines = text.lines().filter(|line| !line.starts_with(REDUCED));
        let lines: Vec<&str> = lines.map(|line| without_time(line.trim_end())).collect();
        format!("{}\nexit status {:?}", lines.join("\n"), self.status)
    }
}

/// Removes the timestamp from a log line.
fn without_time(line: &str) -> &str {
    let is_time = |word: &str| word.starts_with("20") && word.ends_with('Z') && word.contains('T');
    line.split_once(' ').filter(|(word, _)| is_time(word)).map_or(line, |(_, rest)| rest.trim_start())
}
