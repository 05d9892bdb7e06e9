//! Information about processes from `/proc`, and waiting for conditions, for tests.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// The commands of the processes that `lockhouse serve --http` starts.
const FRONT: &str = "http-front";
const SIGNER: &str = "tls-signer";
/// The timeout of [`wait_until`].
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The process id of the parent.
    pub parent: u32,
    /// The command line, with arguments separated by spaces.
    pub command: String,
}

/// Returns the processes whose parent is `parent`, without zombies, and without the front and the signer of
/// `lockhouse serve --http`.
#[must_use]
pub fn children(parent: u32) -> Vec<Process> {
    let is_service = |process: &Process| [FRONT, SIGNER].iter().any(|name| process.runs(name));
    processes().into_iter().filter(|process| process.parent == parent && !is_service(process)).collect()
}

/// Returns the front of a `lockhouse serve --http`, if there is one.
#[must_use]
pub fn front_of(server: u32) -> Option<Process> {
    fronts_of(server).into_iter().next()
}

/// Returns the fronts of a `lockhouse serve --http`.
#[must_use]
pub fn fronts_of(server: u32) -> Vec<Process> {
    processes().into_iter().filter(|process| process.parent == server && process.runs(FRONT)).collect()
}

/// Returns the signer of a `lockhouse serve --http`, if there is one.
#[must_use]
pub fn signer_of(server: u32) -> Option<Process> {
    processes().into_iter().find(|process| process.parent == server && process.runs(SIGNER))
}

impl Process {
    /// Whether the process runs this command of the product.
    fn runs(&self, command: &str) -> bool {
        self.command.split(' ').nth(1) == Some(command)
    }
}

/// Returns the children of a process, their children and so on.
#[must_use]
pub fn descendants(ancestor: u32) -> Vec<Process> {
    let all = processes();
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

/// Whether a process is running. A zombie does not count as running, but for one whose threads have not all ended: they hold its
/// files open.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| state(&thread.path()).is_some_and(|(state, _)| is_running(&state)))
}

/// Sends SIGKILL to a process.
///
/// # Panics
/// If there is no such process.
pub fn kill(pid: u32) {
    nix::sys::signal::kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("the process is there");
}

/// Polls `condition` until it returns a value. `what` describes the condition in the message of a failure.
///
/// # Panics
/// If the condition returns nothing within 20 seconds.
pub async fn wait_until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(began.elapsed() < WAIT_TIMEOUT, "never happened: {what}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns all processes, without zombies.
///
/// # Panics
/// If `/proc` cannot be read.
#[must_use]
pub fn processes() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

fn process(pid: u32) -> Option<Process> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let (state, parent) = state(&directory)?;
    if !is_running(&state) {
        return None;
    }
    let command = std::fs::read(directory.join("cmdline")).ok()?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    Some(Process { pid, parent, command })
}

/// Returns the state of a process or a thread, and the process ID of its parent, from its directory in `/proc`.
fn state(directory: &Path) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(directory.join("stat")).ok()?;
    // The name in this line may itself contain brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn is_running(state: &str) -> bool {
    state != "Z" && state != "X"
}
