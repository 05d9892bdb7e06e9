//! What a user does again and again while the requirements change, and how files of the user change meanwhile.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lockhouse_tests::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often the user acts before the requirements change, and between two runs after their application.
const ROUNDS: u64 = 10;
const PAUSE: Duration = Duration::from_millis(3);

/// What a user does again and again. Ends when it is dropped.
pub(super) struct Storm {
    is_over: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Storm {
    /// Begins to call `act` with the number of the round.
    pub(super) fn begin(act: impl Fn(u64) + Send + 'static) -> Self {
        let (is_over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, counts) = (is_over.clone(), rounds.clone());
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                act(counts.load(Ordering::Relaxed));
                counts.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        Self { is_over, rounds, thread: Some(thread) }
    }

    /// Waits until the user has acted some more times.
    pub(super) async fn continue_for_a_while(&self) {
        let until = self.rounds.load(Ordering::Relaxed) + ROUNDS;
        wait_until("the user acts", async || (self.rounds.load(Ordering::Relaxed) >= until).then_some(()))
            .await;
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Makes a process reload the configuration.
pub(super) fn hang_up(pid: u32) {
    // The process may have ended.
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGHUP);
}

/// Replaces a file or a folder by what `make` creates.
pub(super) fn replace(path: &Path, make: impl Fn(&Path)) {
    let next = path.with_extension("next");
    make(&next);
    // Only a folder replaces a folder.
    if next.is_dir() || path.is_dir() {
        let _ = std::fs::remove_file(path);
        let _ = std::fs::remove_dir(path);
    }
    std::fs::rename(&next, path).unwrap();
}

/// Writes a file.
pub(super) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

fn make_fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
}

/// Replaces a file in turn by a valid one, a broken one, a FIFO, a link that leads nowhere, an endless device, and a folder.
pub(super) fn swap(path: &Path, valid: &str, round: u64) {
    replace(path, |next| match round % 6 {
        1 => write(next, "[broken"),
        2 => make_fifo(next),
        3 => symlink("/nonexistent/file", next).unwrap(),
        4 => symlink("/dev/zero", next).unwrap(),
        5 => std::fs::create_dir(next).unwrap(),
        _ => write(next, valid),
    });
}
