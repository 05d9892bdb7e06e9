//! The socket file at which a shared engine can be found.

use std::io;
use std::path::Path;
use std::sync::Arc;

use interprocess::local_socket::{GenericFilePath, ListenerOptions, ToFsName};
use lockhouse_base::files::remove_if_present;
use lockhouse_engine::front_socket::FrontSocket;
use tokio::task::JoinHandle;

use crate::cli::engine_lock::SetupLock;

/// A socket that accepts clients. Dropping this value removes the socket, and then the lock.
#[derive(Debug)]
pub(super) struct Endpoint {
    accepting: JoinHandle<std::convert::Infallible>,
    lock: SetupLock,
}

impl Endpoint {
    /// Opens the socket of the locked setup, and accepts clients from now on.
    pub(super) fn open(lock: SetupLock, clients: Arc<FrontSocket>) -> io::Result<Self> {
        let path = lock.socket();
        remove_if_present(&path)?;
        // The lock removes the file.
        let name = path.to_fs_name::<GenericFilePath>()?;
        let listener = ListenerOptions::new().name(name).reclaim_name(false).create_tokio()?;
        let accepting = tokio::spawn(async move { clients.accept(&listener).await });
        Ok(Self { accepting, lock })
    }

    /// Returns the directory of the socket.
    pub(super) fn directory(&self) -> &Path {
        self.lock.directory()
    }

    pub(super) fn setup(&self) -> &str {
        self.lock.setup()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
