//! Verifies from the supervisor that a worker process is in its sandbox, by what the kernel reports in
//! `/proc`. The check does not rely on the worker's own report.
//!
//! Each worker is verified by `/proc/PID/status`. The resource limits that are the same for all workers are verified once,
//! in their zygote: workers inherit them, and no process without Linux capabilities can raise them.

use std::fmt::{Display, Formatter};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_protocol::SECCOMP_FILTERS;

use super::proc_status::{fields, peak_memory_bytes};
use super::worker_process::WorkerProcess;

/// Why the sandbox of a worker could not be verified. Such a worker gets no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// A field of `/proc/PID/status` has a value that a sandboxed process cannot have.
    #[error("the {process} is not sealed: {field} is {found}, it must be {needed}")]
    Field { process: &'static str, field: &'static str, found: String, needed: String },
    /// A resource limit is not 0. Workers would inherit that of their zygote.
    #[error("the {process} is not confined: {limit} is {found}, it must be 0 0")]
    Limit { process: &'static str, limit: &'static str, found: String },
    /// A file in `/proc/PID` cannot be read or belongs to another process.
    #[error("the seal of the worker cannot be verified: /proc/PID/{0}")]
    Unreadable(String),
}

/// An empty capability set, as written in `/proc/PID/status`.
const NO_CAPABILITIES: &str = "0000000000000000";
/// Resource limits of a zygote that must be 0 (soft and hard), as they are named in `/proc/PID/limits`.
const LIMITS: [&str; 4] = ["Max core file size", "Max file size", "Max locked memory", "Max msgqueue size"];

/// Fields of `/proc/PID/status` with the value that each of them must have in every sandboxed process. The fields
/// `Seccomp_filters` and `Threads` are not listed: the first depends on the filters of the supervisor itself.
const STATUS: [(&str, &str); 6] = [
    ("Seccomp", "2"),
    ("NoNewPrivs", "1"),
    ("CapInh", NO_CAPABILITIES),
    ("CapPrm", NO_CAPABILITIES),
    ("CapEff", NO_CAPABILITIES),
    ("CapAmb", NO_CAPABILITIES),
];

/// What a sandboxed process must be, besides [`STATUS`].
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// The name of the process in errors.
    process: &'static str,
    /// Its own seccomp filters, without those of the supervisor.
    filters: u32,
    threads: usize,
    user: ExpectedUser,
}

#[derive(Clone, Copy, Debug)]
enum ExpectedUser {
    Ordinary,
    Is(u32),
    /// Neither root nor this user.
    Other(u32),
}

/// The process that has started a service process. Its system-call filters are those of the service process too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceParent {
    /// This process, as this user. `None` if it may be any but root.
    ThisProcess { user: Option<u32> },
    /// The process with this id, in an account that is not the one of this process.
    OtherAccount { pid: u32 },
}

const WORKER: Expected =
    Expected { process: "worker", filters: SECCOMP_FILTERS, threads: 1, user: ExpectedUser::Ordinary };

/// The field of `/proc/PID/status` with the number of seccomp filters of the process.
const FILTERS: &str = "Seccomp_filters";
/// The field of `/proc/PID/status` with the number of threads of the process.
const THREADS: &str = "Threads";
/// Stands in errors for the value of a field that the kernel does not report.
const MISSING: &str = "missing";

/// The number of seccomp filters that apply to the supervisor itself, for instance those of a container. Workers inherit
/// them. Empty until the first worker is verified.
static INHERITED_FILTERS: OnceLock<u32> = OnceLock::new();

/// Whether it was verified that `/proc` shows the PID namespace of this process. Once verified, it is not checked
/// again, since a mounted `/proc` never changes its namespace.
static PROC_IS_OWN: AtomicBool = AtomicBool::new(false);

/// Verifies by `/proc/PID/status` that a worker process is in its sandbox. Returns the peak resident memory of the process
/// in bytes; 0 if it cannot be read.
pub(super) fn verify(process: &WorkerProcess) -> Result<u64, SealError> {
    if !PROC_IS_OWN.load(Ordering::Relaxed) {
        check_proc_namespace(process)?;
    }
    let inherited_filters = inherited_filters()?;
    let checked = process.with_status(|status| {
        check_status(status, WORKER, inherited_filters)
            .map(|()| peak_memory_bytes(status).unwrap_or_default())
    });
    let peak_memory = checked.map_err(|error| unreadable("status", &error))??;
    match process.is_alive() {
        true => Ok(peak_memory),
        false => Err(SealError::Unreadable("status belongs to a process that has ended".into())),
    }
}

/// Verifies the resource limits of a zygote, a running child process, which all its workers inherit.
pub(super) fn verify_zygote_limits(pid: u32) -> Result<(), SealError> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"));
    check_limits("zygote", &limits.map_err(|error| unreadable("limits", &error))?)
}

/// Verifies by `/proc/PID` that all threads of a running service process are in its sandbox. `process` is its name in errors.
///
/// # Errors
/// What the sandbox lacks.
pub fn verify_service(
    process: &'static str,
    pid: u32,
    threads: usize,
    parent: ServiceParent,
) -> Result<(), SealError> {
    let (inherited_filters, user) = match parent {
        ServiceParent::ThisProcess { user } => {
            (inherited_filters()?, user.map_or(ExpectedUser::Ordinary, ExpectedUser::Is))
        }
        ServiceParent::OtherAccount { pid } => {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            let status = status.map_err(|error| unreadable("status", &error))?;
            (filter_count(&status), ExpectedUser::Other(nix::unistd::geteuid().as_raw()))
        }
    };
    let expected = Expected { process, filters: 1, threads, user };
    let directory = format!("/proc/{pid}");
    let tasks = std::fs::read_dir(format!("{directory}/task")).map_err(|error| unreadable("task", &error))?;
    for task in tasks {
        let task = task.map_err(|error| unreadable("task", &error))?.path();
        let status = std::fs::read_to_string(task.join("status"));
        let status = status.map_err(|error| unreadable("status", &error))?;
        check_status(&status, expected, inherited_filters)?;
    }
    let limits = std::fs::read_to_string(format!("{directory}/limits"));
    check_limits(process, &limits.map_err(|error| unreadable("limits", &error))?)
}

fn unreadable(file: &str, error: &std::io::Error) -> SealError {
    let advice = "a process must see its own workers in /proc: mount it without hidepid, and a service without ProtectProc";
    SealError::Unreadable(format!("{file} cannot be read: {error}; {advice}"))
}

fn check_proc_namespace(process: &WorkerProcess) -> Result<(), SealError> {
    let is_own = process.pid_in_proc() == Some(process.pid());
    if process.is_alive() && !is_own {
        let reason = "status is another process's: /proc is of another PID namespace";
        return Err(SealError::Unreadable(reason.into()));
    }
    PROC_IS_OWN.store(is_own, Ordering::Relaxed);
    Ok(())
}

fn inherited_filters() -> Result<u32, SealError> {
    if let Some(count) = INHERITED_FILTERS.get() {
        return Ok(*count);
    }
    let own = std::fs::read_to_string("/proc/self/status").map_err(|error| unreadable("status", &error))?;
    Ok(*INHERITED_FILTERS.get_or_init(|| filter_count(&own)))
}

fn filter_count(status: &str) -> u32 {
    let mut fields = fields(status, b"S");
    fields.find(|(name, _)| *name == FILTERS).and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

fn check_status(status: &str, expected: Expected, inherited_filters: u32) -> Result<(), SealError> {
    let Expected { process, filters, threads, user } = expected;
    let (filters, threads) = ((filters + inherited_filters).to_string(), threads.to_string());
    let needed = || STATUS.into_iter().chain([(FILTERS, filters.as_str()), (THREADS, threads.as_str())]);
    let (mut found, mut users) = ([None; STATUS.len() + 2], None);
    for (name, value) in fields(status, b"CNSTU") {
        match needed().position(|(field, _)| field == name) {
            Some(position) => found[position] = Some(value),
            None if name == "Uid" => users = Some(value),
            None => {}
        }
    }
    let field = |field, found: &str, needed: &str| SealError::Field {
        process,
        field,
        found: found.to_owned(),
        needed: needed.to_owned(),
    };
    for ((name, needed), found) in needed().zip(found) {
        let found = found.unwrap_or(MISSING);
        if found != needed {
            return Err(field(name, found, needed));
        }
    }
    let users = users.unwrap_or(MISSING);
    match users.split_whitespace().all(|found| found.parse().is_ok_and(|found| user.permits(found))) {
        true => Ok(()),
        false => Err(field("Uid", users, &user.to_string())),
    }
}

impl ExpectedUser {
    fn permits(self, found: u32) -> bool {
        match self {
            Self::Ordinary => found != 0,
            Self::Is(user) => found == user,
            Self::Other(user) => found != 0 && found != user,
        }
    }
}

impl Display for ExpectedUser {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ordinary => f.write_str("an ordinary user"),
            Self::Is(user) => write!(f, "{user}"),
            Self::Other(user) => write!(f, "an ordinary user other than {user}"),
        }
    }
}

fn check_limits(process: &'static str, limits: &str) -> Result<(), SealError> {
    for limit in LIMITS {
        let both = limits.lines().find_map(|line| line.strip_prefix(limit));
        let both = both.map(|both| both.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
        let found = both.unwrap_or_else(|| MISSING.to_owned());
        if found != "0 0" {
            return Err(SealError::Limit { process, limit, found });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEALED: &str = "Name:\tpython3\nUid:\t61500\t61500\t61500\t61500\nThreads:\t1\nCapInh:\t0000000000000000\n\
        CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n\
        Seccomp_filters:\t2\n";
    const LIMITED: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
        Max file size             0                    0                    bytes     \n\
        Max core file size        0                    0                    bytes     \n\
        Max locked memory         0                    0                    bytes     \n\
        Max msgqueue size         0                    0                    bytes     \n";

    #[test]
    fn every_field_that_differs_is_refused() {
        assert_eq!(check_status(SEALED, WORKER, 0), Ok(()));
        for (line, other) in [
            ("Seccomp:\t2", "Seccomp:\t0"),
            ("Seccomp_filters:\t2", "Seccomp_filters:\t1"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
            ("CapInh:\t0000000000000000", "CapInh:\t0000000000000001"),
            ("CapEff:\t0000000000000000", "CapEff:\t0000000000000001"),
            ("CapPrm:\t0000000000000000", "CapPrm:\t0000000000000001"),
            ("CapAmb:\t0000000000000000", "CapAmb:\t0000000000000001"),
            ("Threads:\t1", "Threads:\t2"),
            ("Uid:\t61500", "Uid:\t0"),
            ("61500\nThreads", "0\nThreads"),
            ("Uid:\t61500\t61500\t61500\t61500\n", ""),
            ("Seccomp:\t2\n", ""),
        ] {
            assert!(SEALED.contains(line), "{line}");
            assert!(check_status(&SEALED.replacen(line, other, 1), WORKER, 0).is_err(), "{line} -> {other}");
        }
    }

    #[test]
    fn a_service_process_of_another_account_has_neither_this_user_nor_root() {
        let found = |user: &str, own: u32| {
            let expected = Expected { user: ExpectedUser::Other(own), ..WORKER };
            check_status(&SEALED.replace("61500", user), expected, 0)
        };
        assert_eq!(found("61500", 1000), Ok(()));
        assert!(found("61500", 61500).is_err() && found("0", 1000).is_err());
    }

    #[test]
    fn every_limit_that_differs_is_refused() {
        assert_eq!(check_limits("zygote", LIMITED), Ok(()));
        for limit in LIMITS {
            let line = LIMITED.lines().find(|line| line.starts_with(limit)).expect("the limit");
            for other in [line.replace(" 0 ", " 1 "), String::new()] {
                assert!(check_limits("zygote", &LIMITED.replace(line, &other)).is_err(), "{line} -> {other}");
            }
        }
    }

    #[test]
    fn filters_of_the_supervisor_itself_are_counted() {
        let inherited = filter_count("Name:\ta\nSeccomp_filters:\t2\n");
        assert_eq!(check_status(&SEALED.replace("filters:\t2", "filters:\t4"), WORKER, inherited), Ok(()));
        assert!(check_status(SEALED, WORKER, inherited).is_err());
    }
}
