//! Processes that survive the AI client whose process starts them: engines and launchers, with `--detach`.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use nix::unistd::setsid;

use super::{UNAVAILABLE, print_error};

/// Starts this program once more without `--detach`, in a session of its own. When this process has ended, the new one
/// has no parent that an AI client could end together with its children.
pub(super) fn detach() -> ExitCode {
    let start = || {
        setsid()?;
        let mut words = std::env::args_os().filter(|word| word != "--detach");
        // Not the path of the executable: a newer version may have replaced it.
        let mut process = Command::new("/proc/self/exe");
        process.arg0(words.next().unwrap_or_default()).args(words).stdin(Stdio::null()).spawn()
    };
    match start() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}
