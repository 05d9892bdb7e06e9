//! Commands about the service of this host, which has an account of its own.
//!
//! `lockhouse-service` starts `lockhouse --account USER` as root. The command then runs as that account, because it starts
//! the servers of the service and uses its files. A second process stays root, and writes only the configuration and the
//! policy for it. As root, `lockhouse status` and other commands without `--config` are carried out by `lockhouse-service`.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use lockhouse_base::delegated_files::{Delegation, delegate};
use lockhouse_config::Files;
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, User, fork, geteuid, initgroups, setresgid, setresuid, setsid};

use super::{Command, USAGE, cluster, print_error};

/// The name of the program for commands about the service. It is beside this program.
const SERVICE_PROGRAM: &str = "lockhouse-service";
const CONTROLLING_TERMINAL: &str = "/dev/tty";
/// What is added to the number of a signal for the exit status, as in a shell.
const SIGNALLED: u8 = 128;

/// Carries out a command about the service with `lockhouse-service`, if root has named no file and the configuration in
/// use is that of the service. Returns only if this is not so, or if the program cannot be executed.
pub(super) fn delegate_to_service(command: &Command, files: &Files) -> Option<ExitCode> {
    let program = std::env::current_exe().ok()?.with_file_name(SERVICE_PROGRAM);
    let is_delegated =
        geteuid().is_root() && is_about_service(command) && files.is_of_service() && program.is_file();
    is_delegated.then(|| {
        let error = std::process::Command::new(&program).args(std::env::args_os().skip(1)).exec();
        eprintln!("lockhouse: cannot start {}: {error}", program.display());
        ExitCode::from(USAGE)
    })
}

/// Whether a command reads or changes what the running service has.
fn is_about_service(command: &Command) -> bool {
    // Keys are for root alone.
    if matches!(command, Command::Approvals(arguments) if arguments.is_about_keys()) {
        return false;
    }
    matches!(
        command,
        Command::Approvals(_)
            | Command::Audit(_)
            | Command::Cluster(
                cluster::Command::Status { .. } | cluster::Command::Drain { .. } | cluster::Command::Leave
            )
            | Command::Config(_)
            | Command::Doctor(_)
            | Command::Page(_)
            | Command::Policy(_)
            | Command::Python(_)
            | Command::Reload(_)
            | Command::Runs(_)
            | Command::Server(_)
            | Command::Sessions(_)
            | Command::Skills(_)
            | Command::Status(_)
            | Command::Token(_)
            | Command::Tools(_)
    )
}

/// Makes this process one of the account `account`, for which another process writes the configuration and the policy.
/// Returns an exit status in that other process, when the command has ended, and if this fails.
pub(super) fn enter(account: &str, command: &Command, files: &Files) -> Option<ExitCode> {
    if matches!(command, Command::Setup(_) | Command::Init(_)) {
        let reason = "setup and init change files of a person's AI clients, and a service has none: configure it with `import`, `server add` and `policy`";
        return Some(print_error(&io::Error::other(reason), USAGE));
    }
    match try_enter(account, files) {
        Ok(status) => status,
        Err(error) => Some(print_error(&error, USAGE)),
    }
}

/// The terminal of root, which the command reads answers from. It is opened before root is given up, and it is not the
/// terminal of the command's session, so that no process that the command starts can use it.
static TERMINAL: OnceLock<File> = OnceLock::new();
/// The process that runs the command, for the handler of signals. 0 before it is started.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// Returns the terminal of root in a process that runs a command as another account.
pub(super) fn terminal() -> Option<io::Result<File>> {
    TERMINAL.get().map(File::try_clone)
}

fn try_enter(account: &str, files: &Files) -> io::Result<Option<ExitCode>> {
    let missing = || io::Error::other(format!("there is no account {account}"));
    if !geteuid().is_root() {
        return Err(io::Error::other("only root can run a command as another account"));
    }
    let user = User::from_name(account)?.ok_or_else(missing)?;
    let delegation = delegation(&files.absolute()?, &user)?;
    // Servers of the account must not get what the caller of root's command has open.
    close_others_at_exec()?;
    let (own, other) = UnixStream::pair()?;
    match fork_process()? {
        ForkResult::Parent { child } => {
            drop(other);
            serve(&delegation, own, child).map(Some)
        }
        ForkResult::Child => {
            drop(own);
            become_account(&user)?;
            delegate(delegation.directory, other);
            Ok(None)
        }
    }
}

/// Returns the files that the process of root writes: those of `--config` and `--policy`, in one directory.
fn delegation(files: &Files, user: &User) -> io::Result<Delegation> {
    let named: Vec<&PathBuf> = files.config.iter().chain(&files.policy).collect();
    let directory = named.first().and_then(|path| path.parent());
    let directory = directory.ok_or_else(|| io::Error::other("--account needs --config and --policy"))?;
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let inside = named.iter().filter(|path| path.parent() == Some(directory));
    let names = inside.filter_map(|path| name(path)).collect();
    Ok(Delegation { directory: directory.to_owned(), names, readers: user.gid })
}

#[allow(unsafe_code, reason = "fork(2) of a process with one thread")]
fn fork_process() -> io::Result<ForkResult> {
    // SAFETY: this process has a single thread, so the child may use everything that it had.
    Ok(unsafe { fork() }?)
}

#[allow(unsafe_code, reason = "close_range has no safe wrapper in nix")]
fn close_others_at_exec() -> io::Result<()> {
    // SAFETY: sets a flag of file descriptors and takes no pointers.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves the session of root's terminal, since a process in it can type commands for root, and gives up root for good.
/// The kernel then lets no other process of the account trace this one, because it was not executed anew.
fn become_account(user: &User) -> io::Result<()> {
    let mut options = OpenOptions::new();
    if let Ok(terminal) =
        options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(CONTROLLING_TERMINAL)
    {
        // Set once: this process is entered once.
        let _ = TERMINAL.set(terminal);
    }
    setsid()?;
    let name = CString::new(user.name.as_str())?;
    initgroups(&name, user.gid)?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    prctl::set_no_new_privs()?;
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    Ok(())
}

/// Writes files for the child until it ends. Returns the child's exit status.
#[allow(unsafe_code, reason = "Signal handlers")]
fn serve(delegation: &Delegation, connection: UnixStream, child: Pid) -> io::Result<ExitCode> {
    COMMAND.store(child.as_raw(), Ordering::Relaxed);
    // The command is in another session, so the terminal's signals reach this process only.
    let forwarding = SigAction::new(SigHandler::Handler(forward), SaFlags::SA_RESTART, SigSet::empty());
    for forwarded in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler calls kill(2) alone, which a handler may.
        unsafe { sigaction(forwarded, &forwarding) }?;
    }
    let served = delegation.serve(connection);
    let status = match waitpid(child, None)? {
        WaitStatus::Exited(_, status) => ExitCode::from(u8::try_from(status).unwrap_or(USAGE)),
        WaitStatus::Signaled(_, signal, _) => ExitCode::from(SIGNALLED.saturating_add(signal as u8)),
        _ => ExitCode::from(USAGE),
    };
    served.map(|()| status)
}

extern "C" fn forward(signal: libc::c_int) {
    let command = COMMAND.load(Ordering::Relaxed);
    if let Ok(signal) = Signal::try_from(signal) {
        // The command may have ended.
        let _ = kill(Pid::from_raw(command), signal);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn commands_of_the_service_are_those_about_what_it_has() {
        for (line, expected) in [
            ("status", true),
            ("token create ada", true),
            ("policy allow a.b", true),
            ("server login a", true),
            ("python add six", true),
            ("serve", false),
            ("run -c 1", false),
            ("setup", false),
            ("confine -- /bin/true", false),
        ] {
            let words = std::iter::once("lockhouse").chain(line.split(' '));
            let arguments = Arguments::try_parse_from(words).expect(line);
            assert_eq!(is_about_service(&arguments.command), expected, "{line}");
        }
    }

    #[test]
    fn files_on_the_command_line_are_not_those_of_the_service() {
        let named = Files { config: Some("/etc/lockhouse/config.toml".into()), ..Files::default() };
        assert!(!named.is_of_service());
    }

    #[test]
    fn root_writes_the_named_files_of_one_directory() {
        let files = Files {
            config: Some("/etc/lockhouse/config.toml".into()),
            policy: Some("/srv/policy.toml".into()),
            ..Files::default()
        };
        let user = User::from_uid(geteuid()).expect("accounts").expect("an account");
        let delegation = delegation(&files, &user).expect("files");
        assert_eq!(delegation.names, ["config.toml"]);
        assert!(super::delegation(&Files::default(), &user).is_err());
    }
}
