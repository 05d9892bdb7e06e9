//! Tests of the configuration files of AI clients: Lockhouse reads them in their own formats, imports servers from
//! them, adds itself to them, and takes these changes back.

mod former_entries;
mod import;
mod init;
mod private_servers;
mod root_user;
mod servers_files;
mod setup;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse};

/// Returns the contents of `tests/dialects/NAME`, an example of the configuration file of an AI client.
fn dialect(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dialects").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Runs `lockhouse ARGUMENTS` on a pseudo-terminal, types one of these lines whenever it asks a question, and returns the
/// output.
fn at_a_terminal(lockhouse: &Lockhouse, lines: &[&str], arguments: &[&str]) -> CommandOutput {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("terminal.py");
    let run = lockhouse.command(arguments);
    let mut command = Command::new("python3");
    command.arg(script).args(lines).arg("--").arg(run.get_program()).args(run.get_args());
    command.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PROMPT", r"[?.] \[\S+\] ").current_dir(lockhouse.path("home"));
    CommandOutput::run(&mut command, b"")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Returns the sorted names of the entries of the directory `below` in the test directory. The list is empty if the
/// directory does not exist.
fn files(lockhouse: &Lockhouse, below: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(lockhouse.path(below)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
