//! Looking at a worker's process, and ending it, from outside.
#![allow(unsafe_code, reason = "pidfd_send_signal and sched_setscheduler have no wrapper in nix")]

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// A thread begins with the scheduling of the one that made it, so that those made between two looks are few, and then none.
const LOOKS_FOR_THREADS: usize = 8;

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug)]
pub struct WorkerProcess {
    pid: Pid,
    pidfd: OwnedFd,
}

impl WorkerProcess {
    pub(super) fn new(pid: i32, pidfd: OwnedFd) -> Self {
        Self { pid: Pid::from_raw(pid), pidfd }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Sends a signal. That the process is gone already is no failure.
    pub fn signal(&self, signal: Signal) {
        let no_details = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is owned and open, and a null siginfo means the default.
        unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal as i32, no_details, 0)
        };
    }

    /// From now on everybody else's work comes first, that of other workers included, and nothing takes that back. A CPU that
    /// does only such work counts as free for all other. Nothing happens where the system does not let us.
    pub fn yield_to_others(&self) {
        let (pid, Ok(pidfd)) = (self.pid, self.pidfd.try_clone()) else { return };
        // It may have thousands of threads, and nobody is to wait for a look at each.
        tokio::task::spawn_blocking(move || idle(pid, &pidfd));
    }

    /// Whether the process has not ended. What was read of its number before this says true was about it.
    pub fn is_alive(&self) -> bool {
        is_alive(&self.pidfd)
    }

    /// Its number in `/proc`, as the kernel gives it for the descriptor: another one in a `/proc` of other processes.
    pub(super) fn number_in_proc(&self) -> Option<i32> {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.pidfd.as_raw_fd())).ok()?;
        info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
    }

    /// A file of its `/proc` directory.
    pub(super) fn proc_file(&self, name: &str) -> std::io::Result<String> {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.pid))
    }

    /// CPU time so far.
    pub fn cpu_time(&self) -> Option<Duration> {
        let clock = nix::time::clock_getcpuclockid(self.pid).ok()?;
        nix::time::clock_gettime(clock).ok().map(Duration::from)
    }

    /// The largest amount of memory that it held at one time, bytes.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        let status = self.proc_file("status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // Whatever happened: a worker that nobody holds must not live.
        self.signal(Signal::SIGKILL);
    }
}

fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut ended, PollTimeout::ZERO) == Ok(0)
}

/// Has all threads of a process run only where no other wants to.
fn idle(pid: Pid, pidfd: &OwnedFd) {
    let (mut idle, plain) = (BTreeSet::new(), libc::sched_param { sched_priority: 0 });
    for _ in 0..LOOKS_FOR_THREADS {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
        let numbers = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
        let new: Vec<i32> = numbers.filter(|thread| idle.insert(*thread)).collect();
        if new.is_empty() || !is_alive(pidfd) {
            return;
        }
        for thread in new {
            // SAFETY: the parameters are read in the call alone. A thread that is gone is no failure.
            unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &raw const plain) };
        }
    }
}
