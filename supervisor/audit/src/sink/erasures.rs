//! Erases names of clients for the threads that serve engines, which may not replace a file of the log.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::client_names;

/// Maximum time that an engine waits until names are erased. It waits 2 s for an answer.
const ERASURE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Names that the records of an account have.
struct Erasure {
    uid: u32,
    names: Vec<String>,
    done: SyncSender<io::Result<()>>,
}

/// The queue to the thread that erases names.
#[derive(Debug)]
pub(super) struct Erasures {
    sender: Sender<Erasure>,
    receiver: Mutex<Receiver<Erasure>>,
}

impl Default for Erasures {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver: receiver.into() }
    }
}

impl Erasures {
    /// Waits until another thread has erased the names.
    pub(super) fn erase(&self, uid: u32, names: Vec<String>) -> io::Result<()> {
        let (done, erased) = sync_channel(1);
        self.sender.send(Erasure { uid, names, done }).map_err(io::Error::other)?;
        erased.recv_timeout(ERASURE_TIMEOUT).map_err(io::Error::other)?
    }

    /// Erases the names that connections request, for the time `during`.
    pub(super) fn serve(&self, log: &Path, during: Duration) {
        let end = Instant::now() + during;
        let receiver = self.receiver.lock();
        while let Ok(erasure) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            let Erasure { uid, names, done } = erasure;
            let erased = client_names::erase(log, uid, &names);
            // The connection may have waited long enough.
            let _ = done.send(erased);
        }
    }
}
