//! Confines a service process: a process of the product without interpreter, which reads what strangers send and needs
//! nothing but the descriptors that it inherited. Such processes are the front for HTTP and the signer of TLS.
//!
//! [`ServiceSandbox::prepare`] runs first of all, while the process has one thread. [`ServiceSandbox::seal`] runs after the
//! process has loaded everything that it needs, before it reads the first byte of a stranger.
#![allow(unsafe_code, reason = "Descriptors are closed by number")]

use std::io::Error;
use std::os::fd::RawFd;

use rlimit::Resource;

use super::rlimits::{NONE, mapped_bytes, set_limit};
use super::seccomp::{decode, install};
use super::{Layer, Layers, SandboxError, Sandboxed, landlock, namespaces, privileges, process, threads};

/// The seccomp filter of a service process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Accepts connections at inherited sockets and speaks HTTP on them: `worker/seccomp/front.json`.
    Front,
    /// Signs what it is sent over an inherited socket: `worker/seccomp/signer.json`.
    Signer,
}

/// What a service process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Memory that the process may use in addition to what it uses when it is sealed, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of open descriptors.
    pub descriptors: u64,
}

/// A service process in its namespaces, without privileges, and with its inherited descriptors only.
#[derive(Debug)]
pub struct ServiceSandbox {
    layers: Layers,
    program: Vec<libc::sock_filter>,
}

macro_rules! program {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", env!("LOCKHOUSE_ARCHITECTURE"), ".", $name, ".bpf"))
    };
}

impl ServiceSandbox {
    /// Closes all descriptors except the standard streams and `kept`, enters namespaces with an empty root directory and
    /// without a network if the host permits them, switches to the user `account` if given, drops all privileges, and makes
    /// the process not dumpable. The process must have one thread.
    ///
    /// # Errors
    /// [`SandboxError`] if a step fails. The process must then end.
    pub fn prepare(
        kind: ServiceKind,
        layers: Layers,
        account: Option<u32>,
        kept: &[RawFd],
    ) -> Result<Self, SandboxError> {
        threads::only_one()?;
        if layers.has(Layer::Descriptors) {
            close_others(kept).map_err(SandboxError::step("close_range"))?;
        }
        if layers.has(Layer::Namespaces) {
            namespaces::enter()?;
        }
        if layers.has(Layer::Privileges) {
            privileges::drop_all(account)?;
        }
        // Not earlier, since a process that is not dumpable cannot write its own id maps.
        if layers.has(Layer::Hardening) {
            process::not_dumpable()?;
        }
        let program = decode(match kind {
            ServiceKind::Front => program!("front"),
            ServiceKind::Signer => program!("signer"),
        });
        Ok(Self { layers, program })
    }

    /// Restricts this thread, and the threads that it starts from now on, with Landlock. The other threads must be started
    /// between this and [`Self::seal`], and must run before the latter: the start of a thread needs system calls that the
    /// filter does not allow.
    ///
    /// # Errors
    /// [`SandboxError`] if the kernel has no Landlock, or the process has a second thread. The process must then end.
    pub fn restrict_files(&self) -> Result<(), SandboxError> {
        threads::only_one()?;
        privileges::no_new_privileges()?;
        if self.layers.has(Layer::Landlock) {
            landlock::restrict()?;
        }
        Ok(())
    }

    /// Applies the remaining layers to the whole process: resource limits, memory-deny-write-execute and the seccomp filter.
    ///
    /// # Errors
    /// [`SandboxError`] if a step fails. The process must then end.
    pub fn seal(self, limits: &ServiceLimits, mapped: MappedMemory) -> Result<Sandboxed, SandboxError> {
        if self.layers.has(Layer::Limits) {
            set_limits(limits, mapped)?;
        }
        if self.layers.has(Layer::Mdwe) {
            process::deny_write_execute()?;
        }
        if self.layers.has(Layer::Seccomp) {
            install(&self.program)?;
        }
        Ok(Sandboxed(()))
    }
}

/// The size of the address space of a process that has loaded everything. It is read before the process loses `/proc`.
#[derive(Clone, Copy, Debug)]
pub struct MappedMemory(u64);

impl MappedMemory {
    /// Returns the size of the address space of this process.
    ///
    /// # Errors
    /// `/proc/self/statm` cannot be read.
    pub fn of_this_process() -> Result<Self, SandboxError> {
        mapped_bytes().map(Self)
    }
}

fn set_limits(limits: &ServiceLimits, mapped: MappedMemory) -> Result<(), SandboxError> {
    let memory = mapped.0.saturating_add(limits.memory_bytes);
    // Every thread runs already.
    NONE.iter().chain([&Resource::NPROC]).try_for_each(|resource| set_limit(*resource, 0, 0))?;
    set_limit(Resource::NOFILE, limits.descriptors, limits.descriptors)?;
    set_limit(Resource::DATA, memory, memory)?;
    set_limit(Resource::AS, memory, memory)
}

/// Closes all descriptors from 3 on that are not in `kept`.
fn close_others(kept: &[RawFd]) -> Result<(), Error> {
    let mut kept: Vec<u32> = kept.iter().filter_map(|number| u32::try_from(*number).ok()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for number in kept.into_iter().chain([u32::MAX]) {
        if first < number {
            close_range(first, number - 1)?;
        }
        first = first.max(number.saturating_add(1));
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> Result<(), Error> {
    // SAFETY: closes descriptors by number; nothing in this process has begun to use one of them.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}
