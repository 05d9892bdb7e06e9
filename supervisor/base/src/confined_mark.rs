//! The mark of the processes of a sandboxed upstream server: their hard limit for bytes in POSIX message queues is 0.
//!
//! Other processes of the account cannot see who is restricted by Landlock. A limit can be seen in `/proc`, children
//! inherit it, and only a process with `CAP_SYS_RESOURCE` in the first user namespace can raise it, which a sandboxed
//! server does not have. This limit restricts nothing else of the server, whose seccomp filter refuses the system calls of
//! these queues; and no desktop program has the value 0, unlike other limits.

use std::io;

use nix::sys::resource::{Resource, setrlimit};

/// The row of `/proc/PID/limits`.
const ROW: &str = "Max msgqueue size";

/// Marks this process and all processes that it starts, permanently.
///
/// # Errors
/// If the kernel refuses the limit.
pub fn mark_this_process() -> io::Result<()> {
    Ok(setrlimit(Resource::RLIMIT_MSGQUEUE, 0, 0)?)
}

/// Whether a process that has connected to a socket has the mark, so that it is refused. A process that has ended is
/// refused as well; one of another PID namespace has the id 0 and cannot be one of a server of this process.
pub fn refuses_peer(id: Option<u32>) -> bool {
    let Some(id) = id.filter(|id| *id != 0) else { return false };
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits"));
    limits.and_then(|limits| is_in(&limits)).unwrap_or(true)
}

/// Whether the process has the mark whose `/proc/PID/limits` has this text.
pub(crate) fn is_in(limits: &str) -> io::Result<bool> {
    hard_limit(limits).map(|limit| limit == "0").ok_or_else(|| io::Error::other("no limit of message queues"))
}

/// Returns the hard limit in the text of `/proc/PID/limits`, whose rows have the soft and the hard limit.
fn hard_limit(limits: &str) -> Option<&str> {
    let row = limits.lines().find_map(|line| line.strip_prefix(ROW))?;
    row.split_ascii_whitespace().nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_is_the_second_number() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max pending signals       95939                95939                signals   \n\
                      Max msgqueue size         7                    819200               bytes     \n";
        assert_eq!(hard_limit(limits), Some("819200"));
        assert_eq!(hard_limit("Max pending signals 1 1 signals\n"), None);
    }

    #[test]
    fn this_process_is_not_marked() {
        let limits = std::fs::read_to_string("/proc/self/limits").expect("limits");
        assert!(!is_in(&limits).expect("a limit of message queues"));
        assert!(!refuses_peer(Some(std::process::id())));
        assert!(!refuses_peer(None) && !refuses_peer(Some(0)));
        // No process has an id above the limit of the kernel.
        assert!(refuses_peer(Some(1 << 30)));
    }
}
