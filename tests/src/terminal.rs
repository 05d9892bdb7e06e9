//! Runs programs on a pseudo-terminal, and as in a desktop session.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Lockhouse, wait_until};

/// A Python program that runs its arguments as a command on a pseudo-terminal, and ends with its exit status.
const SPAWN: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// Returns a command that runs another one on a pseudo-terminal. Standard input and output are those of the terminal;
/// `\x04` (Ctrl-D) in the input ends it.
#[must_use]
pub fn on_terminal(inner: &Command) -> Command {
    let mut command = Command::new("python3");
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    command.arg("-c").arg(SPAWN).arg(inner.get_program()).args(inner.get_args());
    command
}

/// A desktop session in which no browser runs: `xdg-open` writes its arguments to a file.
#[derive(Debug)]
pub struct Desktop {
    programs: PathBuf,
    opened: PathBuf,
}

impl Desktop {
    /// # Panics
    /// If the program `xdg-open` cannot be written.
    #[must_use]
    pub fn new(lockhouse: &Lockhouse) -> Self {
        let opened = lockhouse.path("opened");
        let script =
            format!("#!/bin/sh\nprintf '%s ' \"$@\" > {opened:?}.new\nmv {opened:?}.new {opened:?}\n");
        let program = lockhouse.file("desktop/xdg-open", script);
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
        Self { programs: lockhouse.path("desktop"), opened }
    }

    /// Returns the command that runs Lockhouse with these arguments on a terminal of the desktop.
    #[must_use]
    pub fn command(&self, lockhouse: &Lockhouse, arguments: &[&str]) -> Command {
        let mut command = on_terminal(&lockhouse.command(arguments));
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&others).collect::<Vec<_>>();
        let path = std::env::join_paths(std::iter::once(self.programs.clone()).chain(path)).expect("a path");
        command.env("PATH", path).env("DISPLAY", ":9");
        command
    }

    /// Waits until `xdg-open` was started, and returns its arguments.
    pub async fn opened(&self) -> String {
        let arguments = wait_until("an opened address", async || std::fs::read_to_string(&self.opened).ok());
        arguments.await.trim_end().to_owned()
    }

    /// Whether `xdg-open` was not started.
    #[must_use]
    pub fn has_opened_nothing(&self) -> bool {
        !self.opened.exists()
    }
}
