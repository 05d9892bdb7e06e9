//! Shuts a command down: waits for background work for a bounded time, and reaps every child process.

use std::time::{Duration, Instant};

use lockhouse_upstream::process_guard;
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use tokio::runtime::Runtime;

/// How long blocking work, such as writing a file, may take to finish when a command ends. A blocking read of a
/// terminal or a socket may never finish, and must not keep the process alive.
const BLOCKING_WORK_MAX: Duration = Duration::from_millis(500);
/// How long to wait for killed child processes to exit. A child process that left its process group is not killed, so
/// the wait may end before that child exits.
const REAPING_MAX: Duration = Duration::from_secs(1);
const REAP_EVERY: Duration = Duration::from_millis(2);

/// Ends all tasks of the Tokio runtime. The child processes of these tasks are killed and reaped. Takes at most the sum
/// of [`BLOCKING_WORK_MAX`] and [`REAPING_MAX`].
pub(super) fn shut_down(runtime: Runtime) {
    runtime.shutdown_timeout(BLOCKING_WORK_MAX);
    process_guard::release();
    reap_children();
}

/// Reaps exited child processes until none is left, for at most [`REAPING_MAX`]. This process is their subreaper, so no
/// other process would reap them.
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
