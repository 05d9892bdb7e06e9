//! Namespaces of the zygote, shared by its workers: an empty root, no network but a loopback that is down.
//!
//! Root enters them directly and becomes an unprivileged user; everyone else needs a user namespace. Where a host
//! refuses, Landlock and seccomp hold without them, and the result says `reduced`.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, chdir, getgid, getuid, pivot_root, setgroups, setresgid, setresuid};

use super::SandboxError;

/// Where the zygote stands now.
pub(super) struct Entered {
    /// Whether it has a user namespace of its own.
    pub(super) user: bool,
    /// What the host refused.
    pub(super) reduced: Option<String>,
}

/// Enters what the host permits. `unprivileged_id` is the user to become when this is root.
pub(super) fn enter(unprivileged_id: Option<u32>) -> Result<Entered, SandboxError> {
    let mut flags = CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWCGROUP;
    let (user, group) = (getuid(), getgid());
    if !user.is_root() {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    let entered = match unshare(flags) {
        Ok(()) => {
            if !user.is_root() {
                map_ids(user, group).map_err(SandboxError::step("write the user namespace's maps"))?;
            }
            empty_root().map_err(SandboxError::errno("make an empty root"))?;
            Entered { user: !user.is_root(), reduced: None }
        }
        Err(errno) => {
            Entered { user: false, reduced: Some(format!("no namespaces (unshare: {})", errno.desc())) }
        }
    };
    if let (true, Some(id)) = (user.is_root(), unprivileged_id) {
        become_unprivileged(id).map_err(SandboxError::errno("become an unprivileged user"))?;
    }
    Ok(entered)
}

/// The same ids inside as outside: nothing in the worker looks like root.
fn map_ids(user: Uid, group: Gid) -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Makes an empty, read-only tmpfs the root and lets go of everything else.
fn empty_root() -> nix::Result<()> {
    let none: Option<&str> = None;
    let sealed = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    // Any directory that every system has will do: only this namespace sees what is mounted on it.
    mount(Some("tmpfs"), "/tmp", Some("tmpfs"), sealed, Some("size=4k,nr_inodes=2,mode=0555"))?;
    chdir("/tmp")?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    mount(none, "/", none, MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | sealed, none)
}

fn become_unprivileged(id: u32) -> nix::Result<()> {
    let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)
}
