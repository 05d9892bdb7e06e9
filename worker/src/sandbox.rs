//! The seal. [`prepare`] runs once in the zygote, [`enter`] in each worker, in the order that is written here.
//!
//! Each step assumes that the steps before it were done and that the code to come is native and hostile. A step that
//! fails ends the worker: there is no way to a [`Sandboxed`] but through all of them.

mod capabilities;
mod descriptors;
mod landlock;
mod namespaces;
mod process;
mod rlimits;
mod seccomp;

use std::os::fd::OwnedFd;

use lockhouse_protocol::SandboxProfile;

pub use process::die_with_parent;
pub use seccomp::Filters;

/// Why this host or this worker cannot be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A system call of a step failed.
    #[error("{step}: {source}")]
    Step {
        /// What was attempted.
        step: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The kernel has no Landlock, or it is disabled.
    #[error(
        "Landlock is not available: it needs Linux 5.13 or later with `landlock` in the `lsm=` boot parameter ({0})"
    )]
    Landlock(String),
    /// Root of a container that knows only some users.
    #[error(
        "cannot become user {id}, whom workers get when Lockhouse runs as root: {source}; start Lockhouse as an ordinary \
         user, or set unprivileged_id under [pool] to one that exists here"
    )]
    Unprivileged {
        /// The configured user.
        id: u32,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The filters do not compile.
    #[error("the seccomp filters: {0}")]
    Filters(String),
    /// The parent died between fork and seal.
    #[error("the zygote is gone")]
    Orphaned,
}

impl SandboxError {
    fn step(step: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Step { step, source }
    }

    fn errno(step: &'static str) -> impl FnOnce(nix::Error) -> Self {
        move |errno| Self::Step { step, source: errno.into() }
    }
}

/// Proof that this process is sealed. Engines demand it; only [`enter`] makes one.
#[derive(Debug)]
pub struct Sandboxed(());

/// What [`prepare`] made for the workers to come.
#[derive(Debug)]
pub struct Prepared {
    filters: Filters,
    in_user_namespace: bool,
    /// What the zygote has mapped, bytes; a worker's memory limit counts from here.
    mapped_bytes: u64,
    /// Protections that this host does not give.
    pub reduced: Vec<String>,
}

impl Prepared {
    /// Filters that each worker installs.
    #[must_use]
    pub fn filter_count(&self) -> u32 {
        self.filters.count()
    }
}

/// The zygote's part, after everything is loaded: compile the filters, enter namespaces, drop privileges.
///
/// # Errors
/// [`SandboxError`] when a required protection is missing.
pub fn prepare(profile: &SandboxProfile) -> Result<Prepared, SandboxError> {
    let filters = Filters::compile()?;
    let mapped_bytes = rlimits::mapped_bytes()?;
    let mut reduced = landlock::probe()?;
    reduced.extend(process::probe());
    let namespaces = namespaces::enter(profile.unprivileged_id)?;
    reduced.extend(namespaces.reduced);
    capabilities::drop_all()?;
    Ok(Prepared { filters, in_user_namespace: namespaces.user, mapped_bytes, reduced })
}

/// The worker's part, between the fork and the first byte of code. The channel becomes descriptor 3, also when
/// a later step fails.
///
/// # Errors
/// The step that failed. The worker must then say so and end.
pub fn enter(
    prepared: &Prepared,
    profile: &SandboxProfile,
    channel: OwnedFd,
) -> Result<(Sandboxed, OwnedFd), (SandboxError, Option<OwnedFd>)> {
    let channel = descriptors::keep_only(channel).map_err(|error| (error, None))?;
    let sealed = rlimits::set(profile, prepared.mapped_bytes, prepared.in_user_namespace)
        .and_then(|()| process::harden())
        .and_then(|()| landlock::restrict())
        .and_then(|()| prepared.filters.install());
    match sealed {
        Ok(()) => Ok((Sandboxed(()), channel)),
        Err(error) => Err((error, Some(channel))),
    }
}
