//! Namespaces of the zygote, inherited by its workers: an empty root directory, and a network with only a
//! loopback interface that is down.
//!
//! Root enters them directly; other users need a user namespace. If the host refuses, only the other layers of the
//! sandbox protect files and the network, above all Landlock and seccomp, and the sandbox is reported as `reduced`.
//! Some hosts permit `unshare` but refuse later steps (such as Ubuntu's AppArmor restriction). A child process
//! therefore tries all steps first, so that the zygote enters either all namespaces or none.
#![allow(unsafe_code, reason = "fork, for the rehearsal")]

use std::io::{Read, Write};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Uid, chdir, fork, getgid, getuid, pivot_root};

use super::SandboxError;

/// Namespaces that the zygote creates, besides a user namespace if it is not root. The names are those in
/// `/proc/self/ns`.
const KINDS: [&str; 5] = ["net", "ipc", "uts", "mnt", "cgroup"];

/// Result of entering namespaces.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// Whether the zygote has its own user namespace.
    pub(super) user: bool,
    /// The step that the host refused, with its error, so that the zygote stayed in the host's namespaces; `None` if
    /// the zygote entered its own.
    pub(super) refused: Option<String>,
}

/// Enters all namespaces if the host permits it. A refusal by the host is no error, but part of the result.
pub(super) fn enter() -> Result<Namespaces, SandboxError> {
    let refused = try_in_child().map_err(SandboxError::step("try the namespaces in a child"))?;
    if refused.is_none() {
        enter_all().map_err(|(step, errno)| SandboxError::errno(step)(errno))?;
    }
    Ok(Namespaces { user: !getuid().is_root() && refused.is_none(), refused })
}

/// Tries in a child process whether the host permits all namespaces. Returns the refused step with its error,
/// or `None` if nothing is refused.
fn try_in_child() -> std::io::Result<Option<String>> {
    let (mut reader, mut writer) = std::io::pipe()?;
    // SAFETY: the zygote has one thread, which it has asserted; the child makes system calls, writes, and ends.
    match unsafe { fork() }? {
        ForkResult::Child => {
            drop(reader);
            if let Err((step, errno)) = enter_all() {
                let _ = write!(writer, "{step}: {}", errno.desc());
            }
            // SAFETY: ends this process without running what belongs to its parent.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut refused = String::new();
            reader.read_to_string(&mut refused)?;
            waitpid(child, None)?;
            Ok(Some(refused).filter(|refused| !refused.is_empty()))
        }
    }
}

type FailedStep = (&'static str, nix::Error);

fn enter_all() -> Result<(), FailedStep> {
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
    // A successful `unshare` is not sufficient: some hosts return success without creating namespaces.
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

/// Maps user and group to the same ids inside the namespace, so that nothing in a worker looks like root.
fn map_ids(user: Uid, group: Gid) -> std::io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Makes an empty, read-only tmpfs the root directory and detaches all other mounts.
fn empty_root() -> nix::Result<()> {
    let none: Option<&str> = None;
    let sealed = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    // Any directory that exists on every system will do: the mount is visible in this namespace only.
    mount(Some("tmpfs"), "/tmp", Some("tmpfs"), sealed, Some("size=4k,nr_inodes=2,mode=0555"))?;
    chdir("/tmp")?;
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    mount(none, "/", none, MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | sealed, none)
}
