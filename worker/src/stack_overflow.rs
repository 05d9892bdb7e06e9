//! Detects stack overflows in compiled code: the worker then exits with a distinct status.
//!
//! Language engines limit the depth of their own recursion; this handles the C code below them. It only improves
//! error messages and is no part of the sandbox: hostile code can replace the handler or exit with the same status.
#![allow(unsafe_code, reason = "A signal handler on a stack of its own")]

use std::sync::atomic::{AtomicPtr, Ordering};

use lockhouse_protocol::STACK_OVERFLOW_STATUS;
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Size in bytes of the stack on which the SIGSEGV handler runs. The kernel's signal frame takes a few KiB of it.
const HANDLER_STACK_BYTES: usize = 64 * 1024;
/// A memory fault within this many bytes of the stack pointer counts as a stack overflow. The distance is large because
/// stack frames of compiled code can be large.
const NEAR_BYTES: usize = 256 * 1024;

static HANDLER_STACK: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Allocates in the zygote the stack on which the SIGSEGV handler runs. Each forked worker uses its own copy.
pub(crate) fn prepare() -> nix::Result<()> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK);
    // SAFETY: a new mapping, used for nothing but the handler's stack, and never given back.
    let stack = unsafe { libc::mmap(std::ptr::null_mut(), HANDLER_STACK_BYTES, protection, flags, -1, 0) };
    if stack == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    HANDLER_STACK.store(stack, Ordering::Relaxed);
    Ok(())
}

/// Installs the SIGSEGV handler that detects stack overflows, in a worker.
pub(crate) fn install() -> nix::Result<()> {
    let stack = libc::stack_t {
        ss_sp: HANDLER_STACK.load(Ordering::Relaxed),
        ss_flags: 0,
        ss_size: HANDLER_STACK_BYTES,
    };
    // SAFETY: the stack was made by `prepare` and lives as long as the process.
    Errno::result(unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) })?;
    let flags = SaFlags::SA_ONSTACK | SaFlags::SA_SIGINFO;
    let action = SigAction::new(SigHandler::SigAction(on_fault), flags, SigSet::empty());
    // SAFETY: the handler makes system calls and touches nothing else.
    unsafe { sigaction(Signal::SIGSEGV, &action) }.map(drop)
}

extern "C" fn on_fault(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both, valid for as long as the handler runs.
    let (fault, stack_pointer) = unsafe { ((*info).si_addr() as usize, stack_pointer(context.cast())) };
    // SAFETY: exit and signal are async-signal-safe. Back from here, the same instruction faults again and ends the process.
    unsafe {
        if fault.abs_diff(stack_pointer) <= NEAR_BYTES {
            libc::_exit(STACK_OVERFLOW_STATUS);
        }
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
    }
}

/// Returns the stack pointer of the code that a signal interrupted.
///
/// # Safety
/// The context must be what the kernel passed to a signal handler.
unsafe fn stack_pointer(context: *const libc::ucontext_t) -> usize {
    // SAFETY: as the caller promises.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let pointer = machine.gregs[libc::REG_RSP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    let pointer = machine.sp as usize;
    pointer
}
