//! What the kernel says about processes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// A condition that does not hold after so long will not hold.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Its command line, words separated by spaces.
    pub command: String,
}

/// Processes whose parent is `parent`, without those that have ended and only wait to be reaped.
#[must_use]
pub fn children(parent: u32) -> Vec<Process> {
    all().into_iter().filter(|process| process.parent == parent).collect()
}

/// Children, their children and so on.
#[must_use]
pub fn descendants(ancestor: u32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.pid);
            found.push(process.clone());
        }
    }
    found
}

/// Whether a process has not ended.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    process(pid).is_some()
}

/// Ends a process at once.
///
/// # Panics
/// If it is not there.
pub fn kill(pid: u32) {
    nix::sys::signal::kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("the process is there");
}

/// Waits until there is something.
///
/// # Panics
/// If there is nothing after 20 seconds.
pub async fn wait_until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(began.elapsed() < GIVE_UP_AFTER, "never happened: {what}");
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
}

fn all() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: u32) -> Option<Process> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let stat = std::fs::read_to_string(directory.join("stat")).ok()?;
    // The name before it may hold anything, also brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    if state == "Z" || state == "X" {
        return None;
    }
    let command = std::fs::read(directory.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Process { pid, parent, command })
}
