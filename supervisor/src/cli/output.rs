//! What is printed. The macros of these names in the standard library panic when nobody reads any more, as in
//! `lockhouse tools list | head -1`. These take their place in every command: whoever has read enough may leave.
//! (SIGPIPE stays ignored, since it would also end a command whose upstream server left.)

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something could not be written for another reason, such as a full disk.
static FAILED: AtomicBool = AtomicBool::new(false);
/// Whether whoever read it has left.
static UNREAD: AtomicBool = AtomicBool::new(false);

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
        Err(error) if error.kind() == ErrorKind::BrokenPipe => UNREAD.store(true, Ordering::Relaxed),
        Err(error) if !FAILED.swap(true, Ordering::Relaxed) => {
            to_stderr(format_args!("lockhouse: cannot write to standard output: {error}\n"));
        }
        _ => {}
    }
}

/// Where this fails there is nobody left to tell.
pub(crate) fn to_stderr(words: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(words);
}

/// Whether nobody reads standard output any more: a command without an end of its own ends then.
pub(crate) fn unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// Whether standard output is incomplete although somebody wanted it.
pub(crate) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}
