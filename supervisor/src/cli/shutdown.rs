//! The end of a command: background work is waited for with a bound, and every child process is reaped.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use tokio::runtime::Runtime;

/// How long blocking work may take to finish, such as a file that is being written. A blocking read of a terminal or a socket
/// has no end, and must not keep the process alive.
const BLOCKING_WORK_MAX: Duration = Duration::from_millis(500);
/// How long children that were killed may take to end. A child that left its process group is not killed, and is not waited
/// for any longer than this.
const REAPING_MAX: Duration = Duration::from_secs(1);
const REAP_EVERY: Duration = Duration::from_millis(2);

/// Drops all tasks, which kills the child processes that they own, and reaps these.
pub(super) fn shut_down(runtime: Runtime) {
    runtime.shutdown_timeout(BLOCKING_WORK_MAX);
    reap_children();
}

/// This process is the subreaper of what it started: a child that nobody reaps stays a zombie if init does not reap.
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
