//! Gives each worker process its own control group, if part of the cgroup v2 hierarchy is delegated to the
//! supervisor (systemd's `Delegate=`).
//!
//! Control groups limit what resource limits cannot: the number of tasks of each single worker, and the memory that
//! the kernel allocates for the worker. Below the group `G` in which the supervisor was started, the layout is:
//!
//! ```text
//! G/supervisor    the supervisor and its zygotes (template processes from which workers are forked)
//! G/worker-PID    memory.max, memory.swap.max 0, memory.oom.group 1, pids.max
//! ```
//!
//! The supervisor moves itself out of `G`, since a group that enables controllers for its children may hold
//! no process.

use std::io::{Error, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::poll::{PollFd, PollFlags, poll};

use super::ControlGroupResult;

/// The mount point of the cgroup v2 hierarchy.
const ROOT: &str = "/sys/fs/cgroup";
/// The cgroup controllers that must be delegated.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The text that enables the memory and pids controllers for child groups, when written to
/// `cgroup.subtree_control`.
const ENABLE: &str = "+memory +pids";
/// The name of the control group of the supervisor itself.
const OWN: &str = "supervisor";
/// Maximum number of tasks (threads and processes) in the control group of one worker.
/// Bound: workers and programs.
const TASKS_MAX: u32 = 256;
/// Number of bytes by which the memory limit of a worker's control group exceeds the worker's own memory limit. A
/// control group also counts the memory that the kernel allocates for the worker; resource limits do not.
/// Bound: workers and programs.
const KERNEL_MEMORY_BYTES: u64 = 32 * 1024 * 1024;

/// Why workers cannot have control groups, or why the control group of one worker could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ControlGroupError {
    #[error("no cgroup v2 hierarchy")]
    NoHierarchy,
    #[error("this process is in the root group, which cannot be delegated")]
    RootGroup,
    #[error("the {0} controller is not delegated")]
    NoController(&'static str),
    #[error("the group of this process is systemd's own, without Delegate=")]
    OfSystemd,
    #[error("{} is not delegated: {source}", directory.display())]
    NotDelegated { directory: PathBuf, source: Error },
    /// The kernel refused to enable the memory and pids controllers for child groups. Most likely other processes
    /// share the supervisor's control group. The field is the error of the refused write.
    #[error("other processes share this process's group ({0})")]
    Shared(Box<Self>),
    #[error("{name}: {source}")]
    File { name: &'static str, source: Error },
    #[error(transparent)]
    System(#[from] Error),
}

/// The delegated part of the cgroup hierarchy, in which each worker gets its control group.
#[derive(Clone, Debug)]
pub struct ControlGroups {
    directory: PathBuf,
}

/// The control group of one worker. Dropping this value removes the group. The worker must have been killed before.
#[derive(Debug)]
pub(super) struct WorkerGroup {
    directory: PathBuf,
}

impl ControlGroups {
    /// Prepares the control group in which the supervisor was started: moves the supervisor into the child group
    /// `supervisor`, and enables the memory and pids controllers for the groups of workers.
    ///
    /// # Errors
    /// Fails if control groups cannot be used, with the reason.
    pub fn acquire() -> ControlGroupResult {
        Ok(Self::acquire_own()?)
    }

    fn acquire_own() -> Result<Self, ControlGroupError> {
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let path =
            own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(ControlGroupError::NoHierarchy)?;
        let may_take = |group: &Path| !nix::unistd::geteuid().is_root() || is_delegated(group);
        Self::acquire_in(Path::new(ROOT), path, may_take)
    }

    fn acquire_in(root: &Path, path: &str, may_take: fn(&Path) -> bool) -> Result<Self, ControlGroupError> {
        // The parent process may be a supervisor that has moved itself already, or this process may replace an earlier
        // supervisor.
        let path = match path.rsplit_once('/').unwrap_or(("", path)) {
            (above, OWN) => above,
            _ => path,
        };
        if path.is_empty() {
            return Err(ControlGroupError::RootGroup);
        }
        let directory = root.join(path);
        let offered = read(&directory, "cgroup.controllers")?;
        let missing = CONTROLLERS.iter().find(|needed| !offered.split(' ').any(|given| given == **needed));
        if let Some(missing) = missing {
            return Err(ControlGroupError::NoController(missing));
        }
        if !may_take(&directory) {
            return Err(ControlGroupError::OfSystemd);
        }
        let own = directory.join(OWN);
        create(&own)
            .map_err(|source| ControlGroupError::NotDelegated { directory: directory.clone(), source })?;
        write(&own, "cgroup.procs", "0")?;
        match write(&directory, "cgroup.subtree_control", ENABLE) {
            Ok(()) => {
                remove_leftovers(&directory);
                Ok(Self { directory })
            }
            Err(error) => {
                let _ = write(&directory, "cgroup.procs", "0");
                let _ = std::fs::remove_dir(&own);
                Err(ControlGroupError::Shared(Box::new(error)))
            }
        }
    }

    /// Creates a control group with the limits of a worker, and moves the worker process `pid` into it.
    /// `memory_bytes` is the worker's own memory limit. The worker must not have run any code yet.
    pub(super) fn admit(&self, pid: i32, memory_bytes: u64) -> Result<WorkerGroup, ControlGroupError> {
        let group = WorkerGroup { directory: self.directory.join(format!("worker-{pid}")) };
        let directory = &group.directory;
        // A leftover group with the same process number would contain the event counts of another worker.
        let _ = std::fs::remove_dir(directory);
        create(directory)?;
        write(directory, "memory.max", &(memory_bytes + KERNEL_MEMORY_BYTES).to_string())?;
        // A kernel without swap accounting has no such file and no swap to limit.
        match write(directory, "memory.swap.max", "0") {
            Err(_) if !directory.join("memory.swap.max").exists() => {}
            written => written?,
        }
        write(directory, "memory.oom.group", "1")?;
        write(directory, "pids.max", &TASKS_MAX.to_string())?;
        write(directory, "cgroup.procs", &pid.to_string())?;
        Ok(group)
    }
}

impl WorkerGroup {
    /// Whether the kernel killed the worker because its control group exceeded its memory limit.
    pub(super) fn was_out_of_memory(&self) -> bool {
        let events = read(&self.directory, "memory.events").unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }
}

impl Drop for WorkerGroup {
    /// Removes the control group as soon as the killed worker process has left it, in a background task if necessary.
    fn drop(&mut self) {
        let leaving = ClosingGroup(std::mem::take(&mut self.directory));
        if leaving.is_removed() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            for _ in 0..REMOVALS_MAX {
                tokio::time::sleep(REMOVAL_PAUSE).await;
                if leaving.is_removed() {
                    return;
                }
            }
            tracing::warn!("a worker's control group is still in use: {}", leaving.0.display());
            std::mem::forget(leaving);
        });
    }
}

/// A control group whose worker was killed. If it is dropped at shutdown, when no background task can try again,
/// the drop blocks for up to [`LAST_WAIT`] milliseconds until the group can be removed.
struct ClosingGroup(PathBuf);

impl ClosingGroup {
    /// Tries to remove the group. Returns `false` only if the group still has processes.
    fn is_removed(&self) -> bool {
        !matches!(std::fs::remove_dir(&self.0), Err(error) if error.kind() == ErrorKind::ResourceBusy)
    }

    /// Blocks until the kernel reports that the group has no processes, by a change of the file `cgroup.events`,
    /// or until [`LAST_WAIT`] milliseconds are over.
    fn wait(&self) -> Result<(), Error> {
        let events = std::fs::File::open(self.0.join("cgroup.events"))?;
        events.read_at(&mut [0; 64], 0)?;
        if !self.is_removed() {
            poll(&mut [PollFd::new(events.as_fd(), PollFlags::POLLPRI)], LAST_WAIT)?;
        }
        Ok(())
    }
}

impl Drop for ClosingGroup {
    fn drop(&mut self) {
        // The next supervisor removes groups that are left.
        if !self.is_removed() && self.wait().is_ok() {
            self.is_removed();
        }
    }
}

/// Pause between attempts to remove the control group of a killed worker.
const REMOVAL_PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
/// Maximum number of attempts to remove the control group of a killed worker.
const REMOVALS_MAX: u32 = 250;
/// Maximum time, in milliseconds, that the supervisor waits at shutdown until the control group of a killed worker
/// can be removed.
const LAST_WAIT: u16 = 500;

/// Whether systemd delegated a control group, which systemd marks with an extended attribute. Called only for
/// root: root can write to every group, so write access does not prove the delegation.
#[allow(unsafe_code, reason = "getxattr has no wrapper in nix")]
fn is_delegated(directory: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(directory.as_os_str().as_bytes()) else { return false };
    [c"user.delegate", c"trusted.delegate"].iter().any(|name| {
        let mut value = [0_u8; 1];
        // SAFETY: both names are live C strings, and the buffer has the given length.
        let length = unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), 1) };
        length == 1 && value == *b"1"
    })
}

/// Removes the `worker-PID` groups that earlier supervisors left behind. Keeps groups that contain a process,
/// and groups whose PID exists, since another supervisor may be about to move that process into its group.
fn remove_leftovers(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("worker-"));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Creates a control group. If a group of this name exists, it is reused: an earlier process with the same
/// PID has left it behind.
fn create(directory: &Path) -> Result<(), Error> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Reads the file `name` of a control group.
fn read(directory: &Path, name: &'static str) -> Result<String, ControlGroupError> {
    let text = std::fs::read_to_string(directory.join(name));
    Ok(text.map_err(|source| ControlGroupError::File { name, source })?.trim().to_owned())
}

/// Writes text to the file `name` of a control group.
fn write(directory: &Path, name: &'static str, text: &str) -> Result<(), ControlGroupError> {
    std::fs::write(directory.join(name), text).map_err(|source| ControlGroupError::File { name, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_control_group_is_reported_with_its_reason() {
        let root = tempfile::tempdir().expect("a directory");
        let refusal = |path: &str| {
            ControlGroups::acquire_in(root.path(), path, |_| true).expect_err("not ours").to_string()
        };
        assert_eq!(refusal(""), "this process is in the root group, which cannot be delegated");
        assert!(refusal("gone").starts_with("cgroup.controllers: "), "{}", refusal("gone"));
        let group = root.path().join("some.scope");
        std::fs::create_dir(&group).expect("a directory");
        std::fs::write(group.join("cgroup.controllers"), "cpu pids\n").expect("a file");
        assert_eq!(refusal("some.scope"), "the memory controller is not delegated");
        assert_eq!(refusal("some.scope/supervisor"), "the memory controller is not delegated");
        // A group with a similar name belongs to another process.
        assert!(refusal("some.scope/my-supervisor").starts_with("cgroup.controllers: "));
    }

    #[test]
    fn a_worker_gets_its_bounds_before_it_is_moved() {
        let root = tempfile::tempdir().expect("a directory");
        let group = root.path().join("some.scope");
        std::fs::create_dir_all(&group).expect("a directory");
        std::fs::write(group.join("cgroup.controllers"), "cpu memory pids\n").expect("a file");
        // No process has the first number; every kernel has process 1.
        for left in ["worker-99999999", "worker-1"] {
            std::fs::create_dir(group.join(left)).expect("a directory");
        }
        let groups = ControlGroups::acquire_in(root.path(), "some.scope/supervisor", |_| true).expect("ours");
        assert_eq!(read(&group, "cgroup.subtree_control").expect("a file"), ENABLE);
        assert_eq!(["worker-99999999", "worker-1"].map(|left| group.join(left).exists()), [false, true]);
        let worker = groups.admit(7, 1 << 20).expect("a group");
        for (file, content) in [
            ("memory.max", ((1 << 20) + KERNEL_MEMORY_BYTES).to_string()),
            ("memory.oom.group", "1".into()),
            ("pids.max", TASKS_MAX.to_string()),
            ("cgroup.procs", "7".into()),
        ] {
            assert_eq!(read(&worker.directory, file).expect("a file"), content, "{file}");
        }
        std::fs::write(worker.directory.join("memory.events"), "oom 1\noom_kill 1\n").expect("a file");
        assert!(worker.was_out_of_memory());
        std::fs::write(worker.directory.join("memory.events"), "oom 1\noom_kill 0\n").expect("a file");
        assert!(!worker.was_out_of_memory());
        std::mem::forget(worker);
    }
}
