//! Lines that a person types on the terminal of this process.
//!
//! Nothing is read ahead: what was typed before a question was shown still lies with the terminal, and is flushed there.

use std::io::{Stdin, stdin};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::read;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Bytes of a line. What is longer arrives in pieces, none of which is an answer.
const LINE_BYTES_MAX: usize = 4 * 1024;

/// Standard input, which is a terminal.
#[derive(Debug)]
pub(in crate::cli) struct Keyboard {
    /// None where it cannot be waited for.
    terminal: Option<AsyncFd<Stdin>>,
    /// What was read of a line that has no end yet.
    line: Vec<u8>,
}

impl Keyboard {
    pub(in crate::cli) fn new() -> Self {
        let terminal = watch(stdin())
            .map_err(|error| tracing::error!("answers cannot be read from this terminal: {error}"));
        Self { terminal: terminal.ok(), line: Vec::new() }
    }

    /// The next line. None at the end of the input. It may be dropped while it waits, and nothing is lost.
    pub(super) async fn line(&mut self) -> Option<String> {
        let terminal = self.terminal.as_ref()?;
        loop {
            let mut ready = terminal.readable().await.ok()?;
            if !has_input(terminal.get_ref()) {
                ready.clear_ready();
                continue;
            }
            // Of a terminal that gives lines, one at most.
            let mut bytes = [0; LINE_BYTES_MAX];
            match read(terminal.get_ref(), &mut bytes) {
                Ok(count @ 1..) => self.line.extend_from_slice(&bytes[..count]),
                Err(Errno::EINTR | Errno::EAGAIN) => continue,
                Ok(0) | Err(_) => return None,
            }
            if self.line.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                return Some(String::from_utf8_lossy(&std::mem::take(&mut self.line)).trim().to_owned());
            }
        }
    }

    /// Forgets what was typed so far, whole lines or not.
    pub(super) fn forget(&mut self) {
        self.line.clear();
        if let Some(terminal) = &self.terminal
            && let Err(error) = tcflush(terminal.get_ref(), FlushArg::TCIFLUSH)
        {
            // What cannot be told from an answer is none.
            tracing::error!("what was typed before the question cannot be forgotten: {error}");
            self.terminal = None;
        }
    }
}

#[allow(unsafe_code)] // tokio wants a promise about the descriptor.
fn watch(terminal: Stdin) -> std::io::Result<AsyncFd<Stdin>> {
    // SAFETY: this handle always gives the same descriptor, and nothing here closes standard input.
    Ok(unsafe { AsyncFd::register_with_interest(terminal, Interest::READABLE) }?)
}

/// Whether a read comes back at once: with input, or with the end of it.
fn has_input(terminal: &Stdin) -> bool {
    let mut waited = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut waited, PollTimeout::ZERO), Ok(1..))
}
