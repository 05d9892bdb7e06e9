//! The user of this machine who performed an action that the audit log records, as reported by the kernel.

use super::hash_chain::RecordBody;

/// Value of `/proc/self/loginuid` for a process outside of any login session.
const NO_LOGIN: u32 = u32::MAX;

/// The user of this machine whom an audit record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalUser {
    /// User ID of the process through which the user acted.
    pub uid: u32,
    pub pid: Option<i32>,
    /// User ID of the login session, which `su` and `sudo` do not change. `None` outside of a login session.
    pub login_uid: Option<u32>,
}

impl LocalUser {
    /// Returns the user who runs this process.
    pub fn current() -> Self {
        let pid = i32::try_from(std::process::id()).ok();
        Self { uid: nix::unistd::getuid().as_raw(), pid, login_uid: login_uid("self") }
    }

    /// Returns the user at the other end of a connection: `uid` and `pid` are those that the kernel reports.
    pub fn of_peer(uid: u32, pid: Option<i32>) -> Self {
        Self { uid, pid, login_uid: pid.and_then(|pid| login_uid(&pid.to_string())) }
    }

    /// Appends the user's IDs and the process ID to an audit record.
    pub(super) fn write_to(self, body: RecordBody) -> RecordBody {
        let Self { uid, pid, login_uid } = self;
        body.number("uid", uid).number_if("pid", pid).number_if("login_uid", login_uid)
    }
}

/// Returns the user ID of the login session of a process. `None` outside of a login session.
fn login_uid(process: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/loginuid")).ok()?;
    text.trim().parse().ok().filter(|uid| *uid != NO_LOGIN)
}
