//! Ends the processes of upstream servers if this process is killed.
//!
//! A second process, `lockhouse guard`, waits for the end of this one: it reads a pipe that only this process holds open.
//! Then it ends every process whose environment has the mark of this process. Children inherit the mark, also those that
//! leave the process group of their server. A parent-death signal would reach the server alone, and not what `npx` and
//! `sh -c` start; and this process runs no code of its own between fork and exec that could ask for the signal.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::Mutex;

use super::NESTED_VARIABLE;

/// How long marked processes may take to exit after SIGTERM, before SIGKILL.
const LEAVE: Duration = Duration::from_secs(1);
/// How long the guard kills marked processes that appear again, such as children that a killed process has just forked.
const KILL_MAX: Duration = Duration::from_secs(5);
/// Interval between two searches for marked processes.
const SEARCH_EVERY: Duration = Duration::from_millis(20);
/// Maximum number of bytes of an environment that are searched for the mark.
const ENVIRONMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The guard of this process, with the pipe to it. `None` before the first server starts, and after [`release`].
static GUARD: Mutex<Option<Child>> = Mutex::new(None);

/// Returns the mark of this process: its id and its start time, which no other process since the boot has.
fn own_mark() -> io::Result<String> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in brackets, may contain anything.
    let start = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(19));
    let start = start.ok_or_else(|| io::Error::other("/proc/self/stat has no start time"))?;
    Ok(format!("{}.{start}", std::process::id()))
}

/// Starts the guard of this process, if it does not run. Returns the mark for the environment of a server.
///
/// # Errors
/// Returns an error if the guard cannot be started. The server must not be started then.
pub(super) fn start() -> io::Result<String> {
    let mark = own_mark()?;
    let mut running = GUARD.lock();
    let is_running = running.as_mut().is_some_and(|guard| matches!(guard.try_wait(), Ok(None)));
    // The executable of unit tests has no such command.
    if !is_running && !cfg!(test) {
        // Not the path of the executable: a newer version may have replaced it.
        let mut guard = Command::new("/proc/self/exe");
        guard.arg0("lockhouse").args(["guard", &mark]).env_clear().current_dir("/").process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        *running = Some(guard.spawn()?);
    }
    Ok(mark)
}

/// Ends the guard, which then ends what is left of the servers. Call it when the servers have been ended.
pub fn release() {
    // Closes the pipe. The process is reaped with all other children of this one.
    GUARD.lock().take();
}

/// The process `lockhouse guard`: waits until the process that started it ends, and then ends all processes with its mark.
pub fn guard(mark: &str) {
    // Signals for the group of the terminal do not reach this process, which is in a group of its own.
    let mut pipe = io::stdin().lock();
    let mut byte = [0];
    while matches!(pipe.read(&mut byte), Err(ref error) if error.kind() == io::ErrorKind::Interrupted) {}
    let begun = Instant::now();
    let mut signal = Signal::SIGTERM;
    while begun.elapsed() < LEAVE + KILL_MAX {
        let marked = marked_processes(mark);
        if marked.is_empty() {
            return;
        }
        for process in marked {
            // A process that cannot be signalled has ended.
            let _ = kill(process, signal);
        }
        std::thread::sleep(SEARCH_EVERY);
        if begun.elapsed() >= LEAVE {
            signal = Signal::SIGKILL;
        }
    }
}

/// Returns the running processes of this user whose environment has the mark.
fn marked_processes(mark: &str) -> Vec<Pid> {
    let entry = format!("{NESTED_VARIABLE}={mark}");
    let is_marked = |process: &Pid| {
        let environment = std::fs::File::open(format!("/proc/{process}/environ"));
        let mut bytes = Vec::new();
        // The environment of a zombie is empty, that of another user cannot be opened.
        let read = environment.and_then(|file| file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes));
        read.is_ok() && bytes.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.map(Pid::from_raw).filter(is_marked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_with_the_mark_are_found() {
        let mark = format!("{}.test", std::process::id());
        let sleeping = |mark: &str| {
            let mut command = Command::new("sleep");
            command.arg("7776").env(NESTED_VARIABLE, mark).spawn().expect("sleep")
        };
        let mut children = [sleeping(&mark), sleeping(&format!("{mark}x"))];
        let [own, _] = children.each_ref().map(|child| Pid::from_raw(child.id() as i32));
        // The environment is that of this process until the program is executed.
        let deadline = Instant::now() + Duration::from_secs(10);
        while marked_processes(&mark).is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(marked_processes(&mark), [own]);
        for child in &mut children {
            child.kill().expect("a running process");
            child.wait().expect("its end");
        }
        assert!(marked_processes(&mark).is_empty());
    }

    #[test]
    fn the_mark_names_this_process() {
        let mark = own_mark().expect("a mark");
        assert!(mark.starts_with(&format!("{}.", std::process::id())), "{mark}");
        assert_eq!(mark, own_mark().expect("the same mark"));
    }
}
