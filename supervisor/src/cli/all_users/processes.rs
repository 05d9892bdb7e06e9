//! The processes of this machine that run a program of Lockhouse, of all accounts.

use std::path::Path;

/// The file name of the program.
const PROGRAM: &str = "lockhouse";
/// The commands that run programs: those that an administrator looks for.
const COMMANDS: [&str; 3] = ["serve", "engine", "run"];

/// The options that may come before the command, and have a value.
const OPTIONS_WITH_VALUE: [&str; 5] = ["--config", "--policy", "--servers", "--trust-owner", "--account"];

/// A process that runs a program of Lockhouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunningProcess {
    pub(super) pid: u32,
    /// The account, as the kernel reports it.
    pub(super) uid: u32,
    pub(super) parent: u32,
}

/// Returns all such processes, except those that other commands of Lockhouse start for their work.
pub(super) fn running() -> Vec<RunningProcess> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != own).filter_map(process).collect()
}

/// Returns the process with this number, if it is one that an administrator looks for.
pub(super) fn process(pid: u32) -> Option<RunningProcess> {
    if !runs_lockhouse(pid) {
        return None;
    }
    let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    if !COMMANDS.map(str::as_bytes).contains(&command(&command_line)?) {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // The second of the four user ids is the effective one.
    let uid = number(&status, "Uid:", 1)?;
    Some(RunningProcess { pid, uid, parent: number(&status, "PPid:", 0)? })
}

/// Returns the command in a command line of Lockhouse: the first argument that is no option and no value of one.
fn command(command_line: &[u8]) -> Option<&[u8]> {
    let mut arguments = command_line.split(|byte| *byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        if OPTIONS_WITH_VALUE.map(str::as_bytes).contains(&argument) {
            arguments.next();
        } else if !argument.starts_with(b"-") {
            return Some(argument);
        }
    }
    None
}

/// Whether the program of a process has the name of Lockhouse's.
pub(super) fn runs_lockhouse(pid: u32) -> bool {
    let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) else { return false };
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The kernel adds this to the name of a file that was replaced.
    Path::new(name.strip_suffix(" (deleted)").unwrap_or(name)) == Path::new(PROGRAM)
}

/// Returns the number at a position of the line with this name.
fn number(status: &str, name: &str, position: usize) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().nth(position)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_first_argument_that_is_no_option() {
        let table: [(&[u8], Option<&[u8]>); 4] = [
            (b"/usr/bin/lockhouse\0serve\0--http\0", Some(b"serve")),
            (b"lockhouse\0--config\0/run\0--policy=a\0engine\0", Some(b"engine")),
            (b"lockhouse\0server\0test\0run\0", Some(b"server")),
            (b"lockhouse", None),
        ];
        for (line, expected) in table {
            assert_eq!(command(line), expected, "{line:?}");
        }
    }
}
