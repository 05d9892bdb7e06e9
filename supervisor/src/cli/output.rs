//! Prints the output of commands to standard output and standard error.
//!
//! The macros of the standard library panic when the reader closes the pipe, as in `lockhouse tools list | head -1`.
//! The macros of this module replace them in every command and ignore a closed pipe. SIGPIPE stays ignored: with its
//! default action it would also kill a command that writes to an upstream server that has exited.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a write to standard output failed for a reason other than a closed pipe, such as a full disk.
static WRITE_FAILED: AtomicBool = AtomicBool::new(false);
/// Whether the reader of standard output has closed the pipe.
static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

macro_rules! print {
    ($($words:tt)*) => { $crate::cli::output::to_stdout(format_args!($($words)*)) };
}

macro_rules! println {
    () => { $crate::cli::output::to_stdout(format_args!("\n")) };
    ($($words:tt)*) => { $crate::cli::output::to_stdout(format_args!("{}\n", format_args!($($words)*))) };
}

macro_rules! eprint {
    ($($words:tt)*) => { $crate::cli::output::to_stderr(format_args!($($words)*)) };
}

macro_rules! eprintln {
    ($($words:tt)*) => { $crate::cli::output::to_stderr(format_args!("{}\n", format_args!($($words)*))) };
}

pub(crate) fn to_stdout(words: Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_fmt(words).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => STDOUT_CLOSED.store(true, Ordering::Relaxed),
        Err(error) if !WRITE_FAILED.swap(true, Ordering::Relaxed) => {
            to_stderr(format_args!("lockhouse: cannot write to standard output: {error}\n"));
        }
        _ => {}
    }
}

/// Writes text to standard error. A failed write is ignored, since it cannot be reported anywhere.
pub(crate) fn to_stderr(words: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(words);
}

/// Whether the reader of standard output has closed the pipe. If so, commands that would run until Ctrl-C end.
pub(crate) fn is_closed() -> bool {
    STDOUT_CLOSED.load(Ordering::Relaxed)
}

/// Whether a write to standard output failed for a reason other than a closed pipe. The command's exit status then
/// reports an error.
pub(crate) fn has_failed() -> bool {
    WRITE_FAILED.load(Ordering::Relaxed)
}
