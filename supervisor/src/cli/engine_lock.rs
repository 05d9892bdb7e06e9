//! The lock that makes an engine the only one of its setup. Its file describes the engine.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use lockhouse_engine::control_socket::socket_path::create_directory;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::engine_description::{DescribedEngine, EngineDescription};
use super::engine_socket::{self, lock_path, locked_setups, socket_path};

/// The lock on a setup. While a process holds it, no other process serves the setup.
#[derive(Debug)]
pub(super) struct SetupLock {
    /// Locked until the value is dropped, or the process ends in any way.
    file: Flock<File>,
    directory: PathBuf,
    setup: String,
}

impl SetupLock {
    /// Locks the description of this process, whose engine is found in another way than by its setup. Returns `None` if
    /// there is no directory for it, or if it cannot be written: then nobody learns about the engine from it.
    pub(super) fn describe_this_process(engine: DescribedEngine) -> Option<Self> {
        let directory = engine_socket::directory()?;
        remove_stale(&directory);
        let lock = Self::acquire(&directory, &format!("process-{}", std::process::id())).ok()??;
        lock.describe(engine).ok()?;
        Some(lock)
    }

    /// Locks a setup. Returns `None` if another process holds the lock.
    pub(super) fn acquire(directory: &Path, setup: &str) -> io::Result<Option<Self>> {
        create_directory(directory)?;
        let path = lock_path(directory, setup);
        loop {
            let mut options = OpenOptions::new();
            options.create(true).write(true).truncate(false).mode(0o600);
            let file = files::open_regular_file(&mut options, &path)?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, error)) => return Err(error.into()),
            };
            // The previous holder may have removed the file after it was opened here.
            let is_current = std::fs::metadata(&path)
                .and_then(|at_path| Ok((at_path.ino(), file.metadata()?.ino())))
                .is_ok_and(|(at_path, locked)| at_path == locked);
            if is_current {
                let (directory, setup) = (directory.to_owned(), setup.to_owned());
                return Ok(Some(Self { file, directory, setup }));
            }
        }
    }

    /// Writes into the file what `lockhouse status` and other engines read about this process.
    pub(super) fn describe(&self, engine: DescribedEngine) -> io::Result<()> {
        let text = serde_json::to_vec(&EngineDescription::of_this_process(engine))?;
        self.file.set_len(0)?;
        (*self.file).write_all_at(&text, 0)
    }

    /// Returns the directory of the file.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn setup(&self) -> &str {
        &self.setup
    }

    /// Returns the path of the socket of the setup.
    pub(super) fn socket(&self) -> PathBuf {
        socket_path(&self.directory, &self.setup)
    }
}

impl Drop for SetupLock {
    fn drop(&mut self) {
        // The lock is still held here, so the socket is the one of this process, or of one that was killed.
        let _ = std::fs::remove_file(self.socket());
        let _ = std::fs::remove_file(lock_path(&self.directory, &self.setup));
    }
}

/// Removes the sockets and locks of engines that were killed.
pub(super) fn remove_stale(directory: &Path) {
    for setup in locked_setups(directory) {
        // Dropping a lock removes the files.
        let _ = SetupLock::acquire(directory, &setup);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_serves_a_setup_and_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let acquire = |setup| SetupLock::acquire(directory.path(), setup).expect("no error");
        let first = acquire("a").expect("the lock");
        assert!(acquire("a").is_none() && acquire("b").is_some());
        std::fs::write(first.socket(), "").expect("a file");
        drop(first);
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
        assert!(acquire("a").is_some());
    }

    #[test]
    fn only_what_a_killed_engine_left_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let running = SetupLock::acquire(directory.path(), "running").expect("no error").expect("the lock");
        for path in
            [socket_path(directory.path(), "killed"), lock_path(directory.path(), "killed"), running.socket()]
        {
            std::fs::write(path, "").expect("a file");
        }
        std::fs::write(directory.path().join("control-1.sock"), "").expect("a file");
        remove_stale(directory.path());
        let mut left: Vec<_> = std::fs::read_dir(directory.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        left.sort();
        assert_eq!(left, ["control-1.sock", "engine-running.lock", "engine-running.sock"]);
    }
}
