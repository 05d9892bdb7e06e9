//! Who did something at this machine, as the kernel says.

use super::line::Body;

/// What the kernel sets for a process that nobody has logged in to.
const NO_LOGIN: u32 = u32::MAX;

/// A user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// Of the process that they used.
    pub uid: u32,
    pub pid: Option<i32>,
    /// As whom they logged in, which stays the same when they become another user.
    pub login_uid: Option<u32>,
}

impl Person {
    /// Whoever started this process.
    pub fn of_this_process() -> Self {
        let login_uid = std::fs::read_to_string("/proc/self/loginuid").ok();
        let login_uid = login_uid.and_then(|uid| uid.trim().parse().ok()).filter(|uid| *uid != NO_LOGIN);
        Self { uid: nix::unistd::getuid().as_raw(), pid: i32::try_from(std::process::id()).ok(), login_uid }
    }

    /// Into a record.
    pub(super) fn tell(self, body: Body) -> Body {
        let Self { uid, pid, login_uid } = self;
        body.number("uid", uid).number_if("pid", pid).number_if("login_uid", login_uid)
    }
}
