//! Shuts a command down: waits for background work for a bounded time, and reaps every child process.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use tokio::runtime::Runtime;

/// How long blocking work, such as writing a file, may take to finish. A blocking read of a terminal or a socket
/// never finishes, and must not keep the process alive.
const BLOCKING_WORK_MAX: Duration = Duration::from_millis(500);
/// How long killed children may take to exit. A child that left its process group is not killed, and is waited for no
/// longer than this.
const REAPING_MAX: Duration = Duration::from_secs(1);
const REAP_EVERY: Duration = Duration::from_millis(2);

/// Drops all tasks, which kills their child processes, and reaps the children.
pub(super) fn shut_down(runtime: Runtime) {
    runtime.shutdown_timeout(BLOCKING_WORK_MAX);
    reap_children();
}

/// Reaps exited children. This process is a child subreaper, so that no other process does.
fn reap_children() {
    let began = Instant::now();
    while began.elapsed() < REAPING_MAX {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => std::thread::sleep(REAP_EVERY),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}
