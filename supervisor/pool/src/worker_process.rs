//! A handle to a worker process, with which the supervisor sends signals, reads CPU time and memory, and lowers the
//! scheduling priority.
#![allow(unsafe_code, reason = "pidfd_send_signal and sched_setscheduler have no wrapper in nix")]

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::proc_status;

/// Initial size of the buffer for a file of `/proc/PID`, in bytes. The files that are read have at most 2 KiB on most hosts.
const PROC_FILE_BYTES: usize = 8 * 1024;

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

    pub(super) fn pid(&self) -> i32 {
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

    /// Reads the worker's `/proc/PID/status`.
    pub(super) fn status(&self) -> io::Result<String> {
        match &self.status {
            Ok(file) => read_proc_file(file),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }

    /// Reads the worker's `/proc/PID/limits`.
    pub(super) fn limits(&self) -> io::Result<String> {
        read_proc_file(&File::open(format!("/proc/{}/limits", self.pid))?)
    }

    /// Returns the soft and the hard value of a resource limit of the worker process.
    ///
    /// # Errors
    /// Any error of prlimit(2). EPERM if the supervisor is root without CAP_SYS_RESOURCE, and workers have another
    /// user.
    pub(super) fn resource_limit(&self, resource: rlimit::Resource) -> io::Result<(u64, u64)> {
        let (mut soft, mut hard) = (0, 0);
        rlimit::prlimit(self.pid.as_raw(), resource, None, Some((&mut soft, &mut hard)))?;
        Ok((soft, hard))
    }

    /// Returns the CPU time that the worker process has used so far; `None` if it cannot be read.
    pub fn cpu_time(&self) -> Option<Duration> {
        let clock = nix::time::clock_getcpuclockid(self.pid).ok()?;
        nix::time::clock_gettime(clock).ok().map(Duration::from)
    }

    /// Returns the peak resident memory of the worker process in bytes; `None` if it cannot be read.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        proc_status::peak_memory_bytes(&self.status().ok()?)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // A worker must not outlive its handle.
        self.signal(Signal::SIGKILL);
    }
}

/// Reads a file of `/proc/PID` from its beginning, in one read if the text fits into the initial buffer.
fn read_proc_file(file: &File) -> io::Result<String> {
    let (mut text, mut length) = (vec![0; PROC_FILE_BYTES], 0);
    loop {
        length += file.read_at(&mut text[length..], length as u64)?;
        if length < text.len() {
            break;
        }
        text.resize(2 * length, 0);
    }
    text.truncate(length);
    String::from_utf8(text).map_err(io::Error::other)
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
