//! Whether the process has one thread. Namespaces, privileges and Landlock apply to the calling thread alone.

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use super::SandboxError;

/// Returns an error if this process has a second thread.
pub(super) fn only_one() -> Result<(), SandboxError> {
    // This changes nothing. The kernel refuses it to a process with several threads, and needs no `/proc` for that.
    match unshare(CloneFlags::CLONE_THREAD) {
        Ok(()) => Ok(()),
        Err(Errno::EINVAL) => Err(SandboxError::Threads),
        // A host that refuses every unshare has left the process its `/proc`.
        Err(_) => {
            let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
            match threads.map_err(SandboxError::step("read /proc/self/task"))? {
                1 => Ok(()),
                _ => Err(SandboxError::Threads),
            }
        }
    }
}
