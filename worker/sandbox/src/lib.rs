//! The layers of the sandbox: for workers, for upstream servers with the key `sandbox`, and for every process that
//! gives up rights.
//!
//! # Parts
//!
//! - [`prepare`] runs once in the zygote, [`enter`] runs in each worker. Both apply their layers in fixed order: the
//!   zygote sets up namespaces and privileges; a worker then applies descriptors, limits, hardening, mdwe, Landlock and
//!   seccomp.
//! - [`Layers`] names the layers. One file has each layer: `namespaces.rs`, `privileges.rs`, `descriptors.rs`,
//!   `rlimits.rs`, `landlock.rs`, `seccomp.rs`.
//! - [`probe`](probe()) tests in a worker without code that each layer blocks what it must. A protection holds, is
//!   absent on this host, or is broken.
//! - [`ServiceSandbox`] applies the same layers to a process without interpreter: the front for HTTP, and the signer.
//! - `worker/seccomp/*.json` are the filters as data, with a reason on every rule. The build script compiles them for
//!   each architecture.
//!
//! # Invariants
//!
//! - Nothing here depends on an asynchronous runtime, on an interpreter or on the supervisor.
//! - Nothing but [`enter`] and [`ServiceSandbox::seal`] creates a [`Sandboxed`].
//! - No step continues after a failure. The process ends.
//! - No layer relies on another one: each assumes that the code after it is native and hostile.
//! - No system call is allowed without a rule with a reason.
//! - No zygote is left half-way: a child process tries the complete sequence of namespaces first, because some hosts
//!   permit `unshare` and reject the steps after it.
//!
//! # Decisions
//!
//! - The filter is two classic BPF programs, of which the stricter one decides. The zygote installs what workers and
//!   the zygote need; each worker adds one that refuses what only the zygote needs, such as `fork`. One program of 435
//!   instructions, compiled and tested by the kernel in each worker, took a tenth of the CPU time of a TypeScript run;
//!   the second program has 100.
//! - A number of a call is found by a binary search over ranges. Checks of arguments are compiled at build time, so
//!   that no compiler of filters is linked into the product.
//! - `clone3` is answered with ENOSYS, because its flags are behind a pointer that no filter can read. libc falls back
//!   to `clone`.
//! - Started as root, a zygote enters namespaces directly and becomes user 61500, which owns nothing. Started as
//!   another user, it needs a user namespace. Where the host refuses that, Landlock and seccomp work without
//!   namespaces, and every answer says `reduced`.

mod descriptors;
mod landlock;
mod layers;
mod namespaces;
mod privileges;
mod probe;
mod process;
mod rlimits;
mod seccomp;
mod service;
mod threads;

use std::os::fd::OwnedFd;

use lockhouse_protocol::{Protection, SandboxProfile};

pub use landlock::version as landlock_version;
pub use layers::{Layer, Layers};
pub use probe::probe;
pub use process::die_with_parent;
pub use seccomp::{decode as decode_filter, install as install_filter};
pub use service::{MappedMemory, ServiceKind, ServiceLimits, ServiceSandbox};

/// Why this host or this worker cannot be sandboxed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A system call of the sandbox setup failed.
    #[error("{step}: {source}")]
    Step {
        /// The step of the sandbox setup that was attempted.
        step: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The kernel has no Landlock, or Landlock is disabled.
    #[error("Landlock is not available ({0})")]
    Landlock(String),
    /// A service process has a second thread too early: layers that apply to one thread would leave it out.
    #[error("the process has a second thread before its sandbox, which would not apply to it")]
    Threads,
    /// The configured unprivileged user does not exist in this user namespace, as in some containers.
    #[error(
        "cannot switch to user {id}, under which workers run when Lockhouse runs as root: {source}; start Lockhouse as an ordinary \
         user, or set unprivileged_id under [pool] to one that exists here"
    )]
    Unprivileged {
        /// The configured user id.
        id: u32,
        /// The operating system's error.
        source: std::io::Error,
    },
}

impl SandboxError {
    fn step(step: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Step { step, source }
    }

    fn errno(step: &'static str) -> impl FnOnce(nix::Error) -> Self {
        move |errno| Self::Step { step, source: errno.into() }
    }
}

/// Proof that this process is sandboxed. Engines require it, and only [`enter`] and [`ServiceSandbox::seal`] create it.
#[derive(Debug)]
pub struct Sandboxed(());

/// State that [`prepare`] creates in the zygote for its workers.
#[derive(Debug)]
pub struct PreparedSandbox {
    layers: Layers,
    in_user_namespace: bool,
    /// The reason why the zygote has no namespaces of its own; `None` if it has them.
    namespaces_refused: Option<String>,
    /// Address space mapped by the zygote, in bytes. The memory limit of workers is added to it.
    mapped_bytes: u64,
    filter: seccomp::Filter,
}

/// Applies those layers of the sandbox that the zygote applies for its workers and that are in `layers`: enters
/// namespaces, drops privileges, and makes the process not dumpable. The zygote calls this function after it has loaded
/// everything that it needs.
///
/// # Errors
/// [`SandboxError`] if a step fails. The zygote must then end.
pub fn prepare(profile: &SandboxProfile, layers: Layers) -> Result<PreparedSandbox, SandboxError> {
    let mapped_bytes = rlimits::mapped_bytes()?;
    let (in_user_namespace, namespaces_refused) = match layers.has(Layer::Namespaces) {
        true => namespaces::enter().map(|entered| (entered.user, entered.refused))?,
        false => (false, Some("left out".into())),
    };
    if layers.has(Layer::Privileges) {
        privileges::drop_all(profile.unprivileged_id)?;
    }
    // Workers have the zygote's user. Not earlier, since a process that is not dumpable cannot write its own id maps.
    if layers.has(Layer::Hardening) {
        process::not_dumpable()?;
    }
    let filter = seccomp::Filter::decode();
    Ok(PreparedSandbox { layers, in_user_namespace, namespaces_refused, mapped_bytes, filter })
}

/// Confines the zygote to the system calls that it needs to fork workers, and sets the resource limits that are the same
/// for all workers. Workers inherit both. The zygote calls this function last before it forks its first worker, and after
/// the self-test of the sandbox, which needs more system calls.
///
/// # Errors
/// [`SandboxError`] if the kernel rejects the filter or a limit. Without the filter, each worker installs the whole
/// filter. Without the limits, the supervisor rejects the zygote.
pub fn confine_zygote(prepared: &mut PreparedSandbox) -> Result<(), SandboxError> {
    if prepared.layers.has(Layer::Limits) {
        rlimits::set_in_zygote()?;
    }
    if prepared.layers.has(Layer::Seccomp) {
        privileges::no_new_privileges()?;
        prepared.filter.install_in_zygote()?;
    }
    Ok(())
}

/// Applies the worker's part of the sandbox, between the fork and the first byte of code. The channel (the worker's
/// socket to the supervisor) becomes descriptor 3, even if a later step fails. Returns it with the proof that the
/// process is sandboxed.
///
/// # Errors
/// The step that failed, and the channel if it can still be used. The worker must report the error and end.
pub fn enter(
    prepared: &PreparedSandbox,
    profile: &SandboxProfile,
    channel: OwnedFd,
) -> Result<(Sandboxed, OwnedFd), (SandboxError, Option<OwnedFd>)> {
    enter_observed(prepared, profile, channel, &mut |_| ()).map_err(|(_, error, channel)| (error, channel))
}

/// Like [`enter`], but calls `after` for each layer, as soon as the layer has been applied, so that the self-test can
/// try that layer. An error names the protection whose layer failed.
fn enter_observed(
    prepared: &PreparedSandbox,
    profile: &SandboxProfile,
    channel: OwnedFd,
    after: &mut dyn FnMut(Layer),
) -> Result<(Sandboxed, OwnedFd), (Protection, SandboxError, Option<OwnedFd>)> {
    let channel = descriptors::keep_only(channel, prepared.layers)
        .map_err(|(error, channel)| (Protection::Descriptors, error, channel))?;
    after(Layer::Descriptors);
    let mut apply = |layer: Layer, protection, step: &dyn Fn() -> Result<(), SandboxError>| {
        if prepared.layers.has(layer) {
            step().map_err(|error| (protection, error))?;
        }
        after(layer);
        Ok(())
    };
    let limits = || rlimits::set(profile, prepared.mapped_bytes, prepared.in_user_namespace);
    let sealed = privileges::no_new_privileges()
        .map_err(|error| (Protection::NoNewPrivileges, error))
        .and_then(|()| apply(Layer::Limits, Protection::ResourceLimits, &limits))
        .and_then(|()| apply(Layer::Hardening, Protection::NotDumpable, &process::not_dumpable))
        .and_then(|()| apply(Layer::Mdwe, Protection::WriteXorExecute, &process::deny_write_execute))
        .and_then(|()| apply(Layer::Landlock, Protection::LandlockFiles, &landlock::restrict))
        .and_then(|()| apply(Layer::Seccomp, Protection::SystemCalls, &|| prepared.filter.install()));
    match sealed {
        Ok(()) => Ok((Sandboxed(()), channel)),
        Err((protection, error)) => Err((protection, error, Some(channel))),
    }
}
