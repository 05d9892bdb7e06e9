//! The soft interrupt: SIGINT from the supervisor at the deadline, SIGXCPU from the kernel at the CPU limit.
#![allow(unsafe_code, reason = "Installing a signal handler is unsafe in itself")]

use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Why the code must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The supervisor asks.
    Deadline,
    /// The CPU time is used up.
    Cpu,
}

static PENDING: AtomicU8 = AtomicU8::new(0);

extern "C" fn note(signal: i32) {
    PENDING.store(if signal == Signal::SIGXCPU as i32 { 2 } else { 1 }, Ordering::Relaxed);
}

/// Starts to note both signals. Without SA_RESTART, so that a blocked read returns.
///
/// # Errors
/// The system's answer.
pub fn install() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGXCPU] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Forgets what was meant for a run that is over: a session goes on after it.
pub fn forget() {
    PENDING.store(0, Ordering::Relaxed);
}

/// Whether the code must stop, and why.
#[must_use]
pub fn pending() -> Option<Interrupt> {
    match PENDING.load(Ordering::Relaxed) {
        0 => None,
        2 => Some(Interrupt::Cpu),
        _ => Some(Interrupt::Deadline),
    }
}
