//! The sandbox (Landlock and seccomp) of upstream servers that run as child processes and are configured with
//! `sandbox`.
//!
//! The supervisor runs no code of its own between fork and exec. The server's process therefore starts as
//! `lockhouse confine`, which restricts itself permanently and then executes the server's program. Child
//! processes inherit the restrictions. On an older kernel a server starts with what that enforces, unless the whole sandbox
//! is required; [`kernel_gaps`] says what is missing.
#![allow(unsafe_code, reason = "Privileges and descriptors are asked for with bare system calls")]

mod default_paths;
mod kernel;
mod landlock_room;
mod named_paths;
mod profile;
mod program;
mod protected_paths;
mod refusal;
mod runtime_paths;
mod seccomp;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use lockhouse_base::own_places::OwnPlaces;
use lockhouse_sandbox::SandboxError;
use tokio::process::Command;

use super::definition::{Confinement, ConfinementProfile, Network, ServerCommand};
use super::start_fault::{explain, missing};
use program::Program;

pub use kernel::{KernelGap, kernel_gaps};
pub use landlock_room::{LANDLOCK_LAYERS_MAX, has_landlock, use_up_landlock_room};
pub use named_paths::{NamedPaths, Withheld};
pub use profile::profile_paths;
pub use program::program_files;
pub(super) use refusal::RefusalNotice;
pub use refusal::{refused_path, without_sandbox_advice};

/// The newest Landlock ABI that this code knows. Of its access rights, those that the kernel supports are restricted.
const NEWEST: ABI = ABI::V9;

/// Which servers need the whole sandbox, for errors.
const REQUIRED_BY: &str =
    "requirements with `sandbox = \"required\"` and an engine of the system start no server without that";

/// Why the sandbox of an upstream server cannot be set up as configured. If the sandbox cannot be set up, the server is
/// not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    #[error(
        "{gap}, and {REQUIRED_BY}: add landlock to lsm= of the kernel's command line, or use a newer kernel"
    )]
    NoLandlock { gap: KernelGap },
    #[error("{gap}, and {REQUIRED_BY}: use a newer kernel")]
    TooOld { gap: KernelGap },
    #[error("sandbox.{list} has {path:?}, which is not an absolute path")]
    Relative { list: &'static str, path: PathBuf },
    #[error(
        "sandbox.{list} has {path:?}, which cannot be opened: {source}; make it, or take it out of the list"
    )]
    Path { list: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "sandbox.profile needs a folder for the server's caches and temporary files, and there is no state directory for \
         it: set HOME or XDG_STATE_HOME"
    )]
    NoFolder,
    #[error("cannot create the server's own folder {path:?}: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error(
        "{program} reads {path:?}, which seems to contain credentials, and sandbox.profile does not grant it: add it to \
         sandbox.read if the server may read them"
    )]
    Credentials { program: String, path: PathBuf },
    #[error("{0}")]
    NotStarted(String),
    #[error("cannot confine the server: {step}: {source}")]
    Step { step: &'static str, source: io::Error },
    #[error("cannot confine the server: {0}")]
    Layer(#[from] SandboxError),
    #[error("cannot confine the server: Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("cannot confine the server: the kernel did not enforce Landlock")]
    NotEnforced,
}

impl ConfineError {
    /// Whether a server cannot be executed with or without its sandbox, as `error` says.
    pub(super) fn is_of_program(error: &io::Error) -> bool {
        let source = error.get_ref().and_then(|source| source.downcast_ref());
        matches!(source, Some(Self::NotStarted(_)))
    }
}

/// What a sandboxed upstream server may access, in addition to the files that every program needs to run. All paths are
/// absolute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// Files and directories that the server may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and directories that the server may read and change, but not execute.
    pub write: Vec<PathBuf>,
    pub network: Network,
    /// Whether the server may create user namespaces.
    pub user_namespaces: bool,
    /// Whether the program is not started if the kernel cannot enforce the restrictions of files.
    pub requires_full: bool,
}

impl Grants {
    /// Returns the configured grants, without those of the profile.
    fn configured(confinement: &Confinement) -> Self {
        let Confinement { read, write, network, user_namespaces, requires_full, profile: _ } = confinement;
        let (read, write) = (read.clone(), write.clone());
        Self {
            read,
            write,
            network: *network,
            user_namespaces: *user_namespaces,
            requires_full: *requires_full,
        }
    }
}

/// The places on this machine that the profile of a server's sandbox depends on.
#[derive(Clone, Debug, Default)]
pub struct SandboxPlaces {
    /// The server's own folder; `None` if there is no place for one.
    pub folder: Option<PathBuf>,
    /// The places of Lockhouse's own files, which the profile does not grant.
    pub own: Arc<OwnPlaces>,
}

/// The command that enters the sandbox and then executes the program of a server.
pub(super) struct ConfinedCommand {
    /// The command, to which the caller must append the program's arguments.
    pub(super) process: Command,
    /// Environment variables for the program, which configured variables replace.
    pub(super) environment: Vec<(&'static str, PathBuf)>,
}

/// Returns the command that enters the sandbox and then executes the program of `command`. The profile needs the folder
/// of `places`.
///
/// # Errors
///
/// Returns an error if the kernel cannot enforce a sandbox that is required, or if a configured path is not absolute or
/// cannot be opened.
pub(super) fn confined(
    command: &ServerCommand,
    confinement: &Confinement,
    places: &SandboxPlaces,
) -> Result<ConfinedCommand, ConfineError> {
    kernel::check(confinement.requires_full)?;
    if let Some(reason) = missing(command) {
        // The same error as without a sandbox, not that of the process which enters it.
        return Err(ConfineError::NotStarted(reason));
    }
    let mut grants = Grants::configured(confinement);
    rules(&grants)?;
    // Not the path of the executable: a newer version may have replaced it, or it may have been removed.
    let mut process = Command::new("/proc/self/exe");
    process.arg0("lockhouse").arg("confine");
    let mut environment = Vec::new();
    if confinement.profile == Some(ConfinementProfile::Default) {
        let folder = places.folder.as_deref().ok_or(ConfineError::NoFolder)?;
        environment = profile::prepare_folder(folder)?;
        profile::extend(&mut grants, command, confinement, places, folder)?;
    }
    for (flag, paths) in [("--read", &grants.read), ("--write", &grants.write)] {
        for path in paths {
            process.arg(flag).arg(path);
        }
    }
    match grants.network {
        Network::None => {}
        Network::Internet => {
            process.arg("--internet");
        }
        Network::All => {
            process.arg("--network");
        }
    }
    if grants.user_namespaces {
        process.arg("--user-namespaces");
    }
    if grants.requires_full {
        process.arg("--require-full");
    }
    process.arg("--").arg(&command.program);
    Ok(ConfinedCommand { process, environment })
}

/// Puts this process into the sandbox and executes the program `name`. Returns only if one of these steps fails, with
/// the error.
pub fn exec_confined(grants: &Grants, name: &OsStr, arguments: &[OsString]) -> ConfineError {
    let named = ServerCommand { program: name.to_string_lossy().into_owned(), ..ServerCommand::default() };
    let not_started = |error: &io::Error| ConfineError::NotStarted(explain(&named, error));
    let program = match Program::find(name) {
        Some(program) => program,
        None => return not_started(&io::ErrorKind::NotFound.into()),
    };
    if let Err(error) = restrict(grants, &program) {
        return error;
    }
    not_started(&std::process::Command::new(&program.path).arg0(name).args(arguments).exec())
}

fn restrict(grants: &Grants, program: &Program) -> Result<(), ConfineError> {
    kernel::check(grants.requires_full)?;
    let mut rules = rules(grants)?;
    rules.extend(default_paths::rules(program));
    let supervisor = nix::unistd::getppid();
    close_others()?;
    lead_session()?;
    leave_queues();
    let marked = lockhouse_base::confined_mark::mark_this_process();
    marked.map_err(|source| ConfineError::Step { step: "limit of message queues", source })?;
    give_up_privileges()?;
    enforce(rules)?;
    Ok(seccomp::install(grants.network, supervisor, grants.user_namespaces)?)
}

/// A Landlock rule: a path, and the access rights to it and everything below it.
type Rule = PathBeneath<PathFd>;

/// Returns the Landlock access rights for paths of the configured list `read`: reading and execution. Execution is
/// included because the list contains the server's programs and libraries.
fn reading() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

/// Returns the Landlock access rights for paths of the configured list `write`: reading and changing, but no execution,
/// no creation of device nodes and no ioctl(2) on devices.
fn writing() -> BitFlags<AccessFs> {
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    AccessFs::from_all(NEWEST) & !(devices | AccessFs::Execute)
}

/// Returns the Landlock rules for the configured paths. Returns an error if a path is not absolute or cannot be opened.
fn rules(grants: &Grants) -> Result<Vec<Rule>, ConfineError> {
    let lists = [("read", &grants.read, reading()), ("write", &grants.write, writing())];
    let rule = |list: &'static str, path: &Path, access| {
        let path = path.to_owned();
        if !path.is_absolute() {
            return Err(ConfineError::Relative { list, path });
        }
        grant(&path, access).map_err(|source| ConfineError::Path { list, path, source })
    };
    let rules = lists
        .into_iter()
        .flat_map(|(list, paths, access)| paths.iter().map(move |path| rule(list, path, access)));
    rules.collect()
}

/// Creates the Landlock rule that permits `access` to a path. If the path is a file, the rights that apply only to
/// directories are left out.
fn grant(path: &Path, access: BitFlags<AccessFs>) -> io::Result<Rule> {
    let is_directory = std::fs::metadata(path)?.is_dir();
    let opened = PathFd::new(path).map_err(io::Error::other)?;
    let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
    Ok(PathBeneath::new(opened, access))
}

/// Enforces what the kernel supports of the rules. Does nothing on a kernel without Landlock, after [`kernel::check`] has
/// decided that the server starts there.
fn enforce(rules: Vec<Rule>) -> Result<(), ConfineError> {
    let Some(supported) = kernel::least_abi() else { return Ok(()) };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(supported))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let status = ruleset.add_rules(rules.into_iter().map(Ok::<_, RulesetError>))?.restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(ConfineError::NotEnforced),
        _ => Ok(()),
    }
}

/// Marks all file descriptors except the standard streams close-on-exec. Landlock does not restrict files that are
/// already open, so the sandboxed program must not inherit them.
fn close_others() -> Result<(), ConfineError> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: sets a flag of file descriptors and takes no pointers.
    done("close_range", unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, flags) })
}

/// Starts a new session for the sandboxed server. A process can join any process group of its own session.
/// Without a session of its own, the server could join other groups of the supervisor's session and receive
/// their signals.
fn lead_session() -> Result<(), ConfineError> {
    let failed = |errno: nix::Error| ConfineError::Step { step: "setsid", source: errno.into() };
    match nix::unistd::setsid() {
        Ok(_) => Ok(()),
        // The process already leads a group. That is fine if its caller has made a session for it.
        Err(_) if nix::unistd::getsid(None).map_err(failed)? == nix::unistd::getpid() => Ok(()),
        Err(errno) => Err(failed(errno)),
    }
}

/// If this process runs as root, moves it to a new IPC namespace, so that it cannot reach the message queues and shared
/// memory of other processes. An error is ignored, since the seccomp filter refuses access to them in any case.
fn leave_queues() {
    if nix::unistd::geteuid().is_root() {
        // Root in a container may lack the right; then the filter alone protects.
        let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWIPC);
    }
}

/// Sets `no_new_privs`, clears the ambient capabilities, and makes root lose its capabilities at the next exec. With
/// root's capabilities, a sandboxed server could bypass the file restrictions: by kernel modules, namespaces or
/// physical memory.
fn give_up_privileges() -> Result<(), ConfineError> {
    // `SECBIT_NOROOT` and its lock: root becomes an ordinary user at the next exec, permanently.
    const NOROOT_FOR_GOOD: libc::c_ulong = 0b11;
    nix::sys::prctl::set_no_new_privs()
        .map_err(|errno| ConfineError::Step { step: "no_new_privs", source: errno.into() })?;
    let clear = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
    // SAFETY: changes a capability set of this process and takes no pointers.
    done("clear ambient capabilities", unsafe { libc::prctl(libc::PR_CAP_AMBIENT, clear, 0, 0, 0) }.into())?;
    if nix::unistd::geteuid().is_root() {
        // SAFETY: changes flags of this process and takes no pointers.
        let set = unsafe { libc::prctl(libc::PR_SET_SECUREBITS, NOROOT_FOR_GOOD, 0, 0, 0) };
        done("give up root's capabilities", set.into())?;
    }
    Ok(())
}

fn done(step: &'static str, result: libc::c_long) -> Result<(), ConfineError> {
    match result {
        0 => Ok(()),
        _ => Err(ConfineError::Step { step, source: io::Error::last_os_error() }),
    }
}
