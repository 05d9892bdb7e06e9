//! What holds a stdio server that is configured with `sandbox`.
//!
//! The supervisor never forks without exec. The server's process therefore begins as `lockhouse confine`, which
//! restricts itself for good and then becomes the server's program: what that starts is held as well.
#![allow(
    unsafe_code,
    reason = "Privileges, descriptors and Landlock's version are asked for with bare system calls"
)]

mod bpf;
mod needed;
mod processes;
mod program;
mod sockets;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use tokio::process::Command;

use super::definition::Confinement;
use program::Program;

/// The version of Landlock that is needed, and what brought it. Before it, a server could empty every file of its user.
const NEEDED: (ABI, i64, &str) = (ABI::V3, 3, "Linux 6.2");
/// The newest version whose rights are asked for, where the kernel has them.
const NEWEST: ABI = ABI::V9;

/// Why a server cannot be confined as it is configured. It is then not started at all.
#[derive(Debug, thiserror::Error)]
pub enum Unconfinable {
    #[error(
        "this kernel has no Landlock, or it is switched off ({0}), and nothing else enforces `sandbox`: add landlock to \
         lsm= of the kernel's command line, or take `sandbox` out of the server's configuration"
    )]
    NoLandlock(io::Error),
    #[error(
        "this kernel has version {found} of Landlock, and `sandbox` takes version {} ({}): before it a server could \
         empty any file of its user. Use a newer kernel, or take `sandbox` out of the server's configuration", NEEDED.1, NEEDED.2
    )]
    TooOld { found: i64 },
    #[error("sandbox.{list} has {path:?}, which is not an absolute path")]
    Relative { list: &'static str, path: PathBuf },
    #[error(
        "sandbox.{list} has {path:?}, which cannot be opened: {source}; make it, or take it out of the list"
    )]
    Path { list: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot find the program {0:?} in PATH")]
    NoProgram(OsString),
    #[error("cannot start {path:?}: {source}")]
    NotStarted { path: PathBuf, source: io::Error },
    #[error("cannot confine the server: {step}: {source}")]
    Step { step: &'static str, source: io::Error },
    #[error("cannot confine the server: Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("cannot confine the server: the kernel did not enforce Landlock")]
    NotEnforced,
}

/// The command that confines itself and becomes `program`, whose arguments are still to be added.
///
/// # Errors
/// What can be known beforehand: a kernel that cannot enforce it, a path that is not there.
pub(super) fn confined(confinement: &Confinement, program: &str) -> Result<Command, Unconfinable> {
    check_kernel()?;
    rules(confinement)?;
    // Not by its name: that may stand for a newer Lockhouse by now, or for nothing.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("lockhouse").arg("confine");
    for (flag, paths) in [("--read", &confinement.read), ("--write", &confinement.write)] {
        for path in paths {
            command.arg(flag).arg(path);
        }
    }
    if confinement.network {
        command.arg("--network");
    }
    command.arg("--").arg(program);
    Ok(command)
}

/// Confines this process and becomes the program. Comes back only with the reason why it did not.
pub fn become_confined(confinement: &Confinement, name: &OsStr, arguments: &[OsString]) -> Unconfinable {
    let program = match Program::find(name) {
        Some(program) => program,
        None => return Unconfinable::NoProgram(name.to_owned()),
    };
    if let Err(error) = restrict(confinement, &program) {
        return error;
    }
    let source = std::process::Command::new(&program.path).arg0(name).args(arguments).exec();
    Unconfinable::NotStarted { path: program.path, source }
}

fn restrict(confinement: &Confinement, program: &Program) -> Result<(), Unconfinable> {
    check_kernel()?;
    let mut rules = rules(confinement)?;
    rules.extend(needed::rules(program));
    let supervisor = nix::unistd::getppid();
    close_others()?;
    lead_session()?;
    leave_queues();
    give_up_privileges()?;
    enforce(rules)?;
    let seccomp = |source| Unconfinable::Step { step: "seccomp", source };
    if !confinement.network {
        sockets::refuse().map_err(seccomp)?;
    }
    processes::refuse(supervisor).map_err(seccomp)
}

/// A path and what may be done below it.
type Rule = PathBeneath<PathFd>;

/// What is read may be executed: a server's programs and libraries are among it.
fn reading() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

/// What is written may be read, and is not executed unless it is in `read` as well. Devices are never made.
fn writing() -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    AccessFs::from_all(NEWEST) & !(devices | AccessFs::Execute)
}

/// What the configuration grants.
fn rules(confinement: &Confinement) -> Result<Vec<Rule>, Unconfinable> {
    let lists = [("read", &confinement.read, reading()), ("write", &confinement.write, writing())];
    let rule = |list: &'static str, path: &Path, access| {
        let path = path.to_owned();
        if !path.is_absolute() {
            return Err(Unconfinable::Relative { list, path });
        }
        grant(&path, access).map_err(|source| Unconfinable::Path { list, path, source })
    };
    let rules = lists
        .into_iter()
        .flat_map(|(list, paths, access)| paths.iter().map(move |path| rule(list, path, access)));
    rules.collect()
}

/// Of the rights, a file gets those that mean something for a file.
fn grant(path: &Path, access: BitFlags<AccessFs>) -> io::Result<Rule> {
    let is_directory = std::fs::metadata(path)?.is_dir();
    let opened = PathFd::new(path).map_err(io::Error::other)?;
    let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
    Ok(PathBeneath::new(opened, access))
}

fn enforce(rules: Vec<Rule>) -> Result<(), Unconfinable> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED.0))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let status = ruleset.add_rules(rules.into_iter().map(Ok::<_, RulesetError>))?.restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(Unconfinable::NotEnforced),
        _ => Ok(()),
    }
}

fn check_kernel() -> Result<(), Unconfinable> {
    const CREATE_RULESET_VERSION: u32 = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: a query for the version; it reads no memory.
    match unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, CREATE_RULESET_VERSION) } {
        version if version >= NEEDED.1 => Ok(()),
        version if version > 0 => Err(Unconfinable::TooOld { found: version }),
        _ => Err(Unconfinable::NoLandlock(io::Error::last_os_error())),
    }
}

/// Landlock does not govern what is open already: the program gets its standard streams and nothing else.
fn close_others() -> Result<(), Unconfinable> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: marks descriptors; no pointers.
    done("close_range", unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, flags) })
}

/// A session of its own: a process can join any group of its session, and with it what is done to that group.
fn lead_session() -> Result<(), Unconfinable> {
    let failed = |errno: nix::Error| Unconfinable::Step { step: "setsid", source: errno.into() };
    match nix::unistd::setsid() {
        Ok(_) => Ok(()),
        // Of a process that leads a group already: whoever called this may have made a session for it.
        Err(_) if nix::unistd::getsid(None).map_err(failed)? == nix::unistd::getpid() => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// Queues and shared memory of its own, where this costs no other right. The filter refuses all of them in any case.
fn leave_queues() {
    if nix::unistd::geteuid().is_root() {
        // In a container root may lack the right: then the filter holds alone.
        let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWIPC);
    }
}

/// Root's own rights would reach around any list of files: modules, other namespaces, the memory of the machine.
fn give_up_privileges() -> Result<(), Unconfinable> {
    // Root becomes an ordinary user at the next exec, and stays one.
    const NOROOT_FOR_GOOD: libc::c_ulong = 0b11;
    nix::sys::prctl::set_no_new_privs()
        .map_err(|errno| Unconfinable::Step { step: "no_new_privs", source: errno.into() })?;
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    // SAFETY: changes a set of this process; no pointers.
    done("clear ambient capabilities", unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0) }.into())?;
    if nix::unistd::geteuid().is_root() {
        // SAFETY: changes flags of this process; no pointers.
        let set = unsafe { libc::prctl(libc::PR_SET_SECUREBITS, NOROOT_FOR_GOOD, 0, 0, 0) };
        done("give up root's capabilities", set.into())?;
    }
    Ok(())
}

fn done(step: &'static str, result: libc::c_long) -> Result<(), Unconfinable> {
    match result {
        0 => Ok(()),
        _ => Err(Unconfinable::Step { step, source: io::Error::last_os_error() }),
    }
}
