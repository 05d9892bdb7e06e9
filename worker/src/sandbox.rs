//! The seal. [`prepare`] runs once in the zygote, [`enter`] in each worker, in the order that is written here.
//!
//! Each step assumes that the steps before it were done and that the code to come is native and hostile. A step that
//! fails ends the worker: there is no way to a [`Sandboxed`] but through all of them.

mod descriptors;
mod landlock;
mod layers;
mod namespaces;
mod privileges;
mod probe;
mod process;
mod rlimits;
mod seccomp;

use std::os::fd::OwnedFd;

use lockhouse_protocol::{Protection, SandboxProfile};

pub use layers::{Layer, Layers};
pub use probe::probe;
pub use process::die_with_parent;

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
    #[error("Landlock is not available ({0})")]
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
    layers: Layers,
    in_user_namespace: bool,
    /// Why the zygote is in the host's namespaces, if it is.
    namespaces_refused: Option<String>,
    /// What the zygote has mapped, bytes; a worker's memory limit counts from here.
    mapped_bytes: u64,
}

/// The zygote's part, after everything is loaded: enter namespaces, drop privileges.
///
/// # Errors
/// [`SandboxError`] when that is left half done.
pub fn prepare(profile: &SandboxProfile, layers: Layers) -> Result<Prepared, SandboxError> {
    let mapped_bytes = rlimits::mapped_bytes()?;
    let (in_user_namespace, namespaces_refused) = match layers.has(Layer::Namespaces) {
        true => namespaces::enter().map(|entered| (entered.user, entered.refused))?,
        false => (false, Some("left out".into())),
    };
    if layers.has(Layer::Privileges) {
        privileges::drop_all(profile.unprivileged_id)?;
    }
    // Workers have the zygote's user. Not earlier: it could not write its own id maps.
    if layers.has(Layer::Hardening) {
        process::not_dumpable()?;
    }
    Ok(Prepared { layers, in_user_namespace, namespaces_refused, mapped_bytes })
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
    enter_observed(prepared, profile, channel, &mut |_| ()).map_err(|(_, error, channel)| (error, channel))
}

/// [`enter`], with a look after each layer. What fails is told as the protection that is then missing.
fn enter_observed(
    prepared: &Prepared,
    profile: &SandboxProfile,
    channel: OwnedFd,
    after: &mut dyn FnMut(Layer),
) -> Result<(Sandboxed, OwnedFd), (Protection, SandboxError, Option<OwnedFd>)> {
    let channel = descriptors::keep_only(channel, prepared.layers)
        .map_err(|(error, channel)| (Protection::Descriptors, error, channel))?;
    after(Layer::Descriptors);
    let mut put_on = |layer: Layer, protection, step: &dyn Fn() -> Result<(), SandboxError>| {
        if prepared.layers.has(layer) {
            step().map_err(|error| (protection, error))?;
        }
        after(layer);
        Ok(())
    };
    let limits = || rlimits::set(profile, prepared.mapped_bytes, prepared.in_user_namespace);
    let sealed = process::no_new_privileges()
        .map_err(|error| (Protection::NoNewPrivileges, error))
        .and_then(|()| put_on(Layer::Limits, Protection::ResourceLimits, &limits))
        .and_then(|()| put_on(Layer::Hardening, Protection::NotDumpable, &process::not_dumpable))
        .and_then(|()| put_on(Layer::Mdwe, Protection::WriteXorExecute, &process::deny_write_execute))
        .and_then(|()| put_on(Layer::Landlock, Protection::LandlockFiles, &landlock::restrict))
        .and_then(|()| put_on(Layer::Seccomp, Protection::SystemCalls, &seccomp::install));
    match sealed {
        Ok(()) => Ok((Sandboxed(()), channel)),
        Err((protection, error)) => Err((protection, error, Some(channel))),
    }
}
