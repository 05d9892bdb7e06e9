//! A handle to a worker process, with which the supervisor sends signals, reads CPU time and memory, and lowers the
//! scheduling priority.
#![allow(unsafe_code, reason = "pidfd_send_signal and sched_setscheduler have no wrapper in nix")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::time::ClockId;
use nix::unistd::Pid;

use super::proc_status;

/// Initial size of the buffer for `/proc/PID/status`, in bytes. The file has at most 2 KiB on most hosts.
const PROC_FILE_BYTES: usize = 8 * 1024;

/// The kind of a process's CPU clock that counts the time of all its threads (`CPUCLOCK_SCHED` of the kernel).
const CPUCLOCK_SCHED: i32 = 2;

thread_local! {
    /// The buffer for `/proc/PID/status`, which is read twice for each worker.
    static PROC_FILE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Maximum number of times that [`set_idle_scheduling`] lists the threads of a process. Threads that start during one
/// pass are found by the next pass. New threads inherit the scheduling policy of their creator, so each pass finds
/// fewer threads to change.
const THREAD_PASSES_MAX: usize = 8;

/// A worker process, identified by a pidfd, so that signals never reach a later process with the same number. Dropping
/// the handle kills the process.
#[derive(Debug)]
pub struct WorkerProcess {
    pid: Pid,
    pidfd: OwnedFd,
    /// The open file `/proc/PID/status`, which is read several times. The file stays open because opening it takes as
    /// long as reading it.
    status: io::Result<File>,
}

impl WorkerProcess {
    pub(super) fn new(pid: i32, pidfd: OwnedFd) -> Self {
        Self { pid: Pid::from_raw(pid), pidfd, status: File::open(format!("/proc/{pid}/status")) }
    }

    /// Returns the worker's process id in the PID namespace of this process.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Sends a signal to the worker process. Has no effect if the process has ended.
    pub fn signal(&self, signal: Signal) {
        let no_details = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is owned and open, and a null siginfo selects the default.
        unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal as i32, no_details, 0)
        };
    }

    /// Schedules the worker process as idle work (`SCHED_IDLE`) until it ends, so that all other work, including other
    /// workers, comes first. The kernel treats a CPU that runs only such work as idle. Has no effect if the kernel
    /// refuses the change.
    pub fn lower_priority(&self) {
        let (pid, Ok(pidfd)) = (self.pid, self.pidfd.try_clone()) else { return };
        // A process may have thousands of threads, so this runs on a blocking thread.
        tokio::task::spawn_blocking(move || set_idle_scheduling(pid, &pidfd));
    }

    /// Whether the worker process is alive. If so, data that was read before from `/proc/PID` is data of this process.
    pub fn is_alive(&self) -> bool {
        is_alive(&self.pidfd)
    }

    /// Returns the worker's process id in the PID namespace of the mounted `/proc`, from the pidfd's fdinfo. The result
    /// differs from [`Self::pid`] if `/proc` belongs to another namespace. `None` if it cannot be read.
    pub(super) fn pid_in_proc(&self) -> Option<i32> {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.pidfd.as_raw_fd())).ok()?;
        info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
    }

    /// Reads the worker's `/proc/PID/status`, and calls `read` with its text.
    pub(super) fn with_status<T>(&self, read: impl FnOnce(&str) -> T) -> io::Result<T> {
        let file = self.status.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        PROC_FILE.with_borrow_mut(|buffer| {
            let length = read_proc_file(file, buffer)?;
            std::str::from_utf8(&buffer[..length]).map(read).map_err(io::Error::other)
        })
    }

    /// Returns the CPU time that the worker process has used so far; `None` if it cannot be read.
    pub fn cpu_time(&self) -> Option<Duration> {
        cpu_time(self.pid.as_raw())
    }

    /// Returns the peak resident memory of the worker process in bytes; `None` if it cannot be read.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        self.with_status(proc_status::peak_memory_bytes).ok()?
    }
}

/// The resources that a process uses. A field is `None` if it cannot be read, for example after the process has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    pub cpu: Option<Duration>,
    /// Resident memory.
    pub memory_bytes: Option<u64>,
}

/// Returns the resources that the process with this id uses, for display. If the process has ended, another process may
/// have its id.
pub fn process_usage(pid: i32) -> ProcessUsage {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok();
    let pages = statm.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    let page_bytes = page_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    let memory_bytes = pages.zip(page_bytes).map(|(pages, bytes)| pages.saturating_mul(bytes));
    ProcessUsage { cpu: cpu_time(pid), memory_bytes }
}

/// Returns the CPU time of all threads of a process; `None` if it cannot be read.
fn cpu_time(pid: i32) -> Option<Duration> {
    // clock_getcpuclockid(3) computes the same number, with a system call in addition.
    let clock = ClockId::from_raw((!pid << 3) | CPUCLOCK_SCHED);
    nix::time::clock_gettime(clock).ok().map(Duration::from)
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // A worker must not outlive its handle.
        self.signal(Signal::SIGKILL);
    }
}

/// Reads a file of `/proc/PID` from its beginning, and returns its length. The kernel returns such a file in one read if it
/// fits into the buffer, which is otherwise enlarged.
fn read_proc_file(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    buffer.resize(buffer.len().max(PROC_FILE_BYTES), 0);
    let mut length = 0;
    loop {
        length += file.read_at(&mut buffer[length..], length as u64)?;
        if length < buffer.len() {
            return Ok(length);
        }
        buffer.resize(2 * length, 0);
    }
}

fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut ended, PollTimeout::ZERO) == Ok(0)
}

/// Sets the scheduling policy of all threads of a process to `SCHED_IDLE`.
fn set_idle_scheduling(pid: Pid, pidfd: &OwnedFd) {
    let (mut idle, plain) = (BTreeSet::new(), libc::sched_param { sched_priority: 0 });
    for _ in 0..THREAD_PASSES_MAX {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
        let numbers = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
        let new: Vec<i32> = numbers.filter(|thread| idle.insert(*thread)).collect();
        if new.is_empty() || !is_alive(pidfd) {
            return;
        }
        for thread in new {
            // SAFETY: the parameters are only read during the call. A thread that has ended is no failure.
            unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &raw const plain) };
        }
    }
}
