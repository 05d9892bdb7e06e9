//! Process groups of programs that this process has started and killed.

use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Interval between two checks whether killed processes have exited.
const REAP_EVERY: Duration = Duration::from_millis(20);
/// Maximum number of checks whether killed processes have exited.
const REAP_TRIES: usize = 50;

/// Reaps the killed processes of a group, so that no zombies remain. Orphans in the group are children of this process if it is a
/// subreaper.
pub async fn reap(group: Pid) {
    for _ in 0..REAP_TRIES {
        match waitpid(Pid::from_raw(-group.as_raw()), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => tokio::time::sleep(REAP_EVERY).await,
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
