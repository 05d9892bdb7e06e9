//! Interrupts of running code: SIGINT from the supervisor at the deadline, SIGXCPU from the kernel at the CPU limit.
#![allow(unsafe_code, reason = "Installing a signal handler is unsafe in itself")]

use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Why the code must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The supervisor has sent SIGINT, because the deadline is reached or the run was cancelled.
    Deadline,
    /// The run has reached its CPU limit (SIGXCPU).
    Cpu,
}

static PENDING: AtomicU8 = AtomicU8::new(0);

extern "C" fn record_signal(signal: i32) {
    PENDING.store(if signal == Signal::SIGXCPU as i32 { 2 } else { 1 }, Ordering::Relaxed);
}

/// Installs handlers that record SIGINT and SIGXCPU. They lack SA_RESTART, so that a signal ends a blocked
/// read.
///
/// # Errors
/// Any error of the operating system.
pub fn install() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(record_signal), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGXCPU] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Clears an interrupt of a finished run, so that it does not stop the session's next run.
pub fn clear_pending() {
    PENDING.store(0, Ordering::Relaxed);
}

/// Returns the interrupt that has arrived and was not cleared, or `None`.
#[must_use]
pub fn pending() -> Option<Interrupt> {
    match PENDING.load(Ordering::Relaxed) {
        0 => None,
        2 => Some(Interrupt::Cpu),
        _ => Some(Interrupt::Deadline),
    }
}
