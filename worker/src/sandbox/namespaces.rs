//! Namespaces of the zygote, shared by its workers: an empty root, no network but a loopback that is down.
//!
//! Root enters them directly; everyone else needs a user namespace. Where a host
//! refuses, Landlock and seccomp hold without them, and the result says `reduced`. Some hosts permit `unshare` and refuse
//! what must follow (Ubuntu's AppArmor restriction does), so a child tries the whole way first: nobody stays halfway.
#![allow(unsafe_code, reason = "fork, for the rehearsal")]

use std::io::{Read, Write};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Uid, chdir, fork, getgid, getuid, pivot_root};

use super::SandboxError;

/// What is new in them, as `/proc/self/ns` names it.
const KINDS: [&str; 5] = ["net", "ipc", "uts", "mnt", "cgroup"];

/// Where the zygote stands now.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// Whether it has a user namespace of its own.
    pub(super) user: bool,
    /// Why it is still in the host's, if it is.
    pub(super) refused: Option<String>,
}

/// Enters what the host permits.
pub(super) fn enter() -> Result<Namespaces, SandboxError> {
    let refused = rehearse().map_err(SandboxError::step("try the namespaces in a child"))?;
    if refused.is_none() {
        enter_all().map_err(|(step, errno)| SandboxError::errno(step)(errno))?;
    }
    Ok(Namespaces { user: !getuid().is_root() && refused.is_none(), refused })
}

/// Goes the whole way in a child, and gives what was refused.
fn rehearse() -> std::io::Result<Option<String>> {
    let (mut told, mut tell) = std::io::pipe()?;
    // SAFETY: the zygote has one thread, which it has asserted; the child makes system calls, writes, and ends.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop(told);
            if let Err((step, errno)) = enter_all() {
                let _ = write!(tell, "{step}: {}", errno.desc());
            }
            // SAFETY: ends this process without running what belongs to its parent.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(tell);
            let mut refused = String::new();
            told.read_to_string(&mut refused)?;
            waitpid(child, None)?;
            Ok(Some(refused).filter(|refused| !refused.is_empty()))
        }
    }
}

type Refused = (&'static str, nix::Error);

fn enter_all() -> Result<(), Refused> {
    let mut flags = CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWCGROUP;
    let (user, group) = (getuid(), getgid());
    if !user.is_root() {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    let host = links();
    unshare(flags).map_err(|errno| ("unshare", errno))?;
    // That unshare said yes is not enough: some hosts only pretend.
    if links().iter().zip(&host).any(|(own, host)| own == host) {
        return Err(("unshare left a namespace as it was", nix::Error::ENOSYS));
    }
    if !user.is_root() {
        map_ids(user, group).map_err(|error| ("map the user", to_errno(&error)))?;
    }
    empty_root().map_err(|errno| ("make an empty root", errno))
}

fn links() -> [Option<std::path::PathBuf>; KINDS.len()] {
    KINDS.map(|kind| std::fs::read_link(format!("/proc/self/ns/{kind}")).ok())
}

fn to_errno(error: &std::io::Error) -> nix::Error {
    nix::Error::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
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
