//! The process of the audit sink: accepts the connections of engines, and maintains the log.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_base::files;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use parking_lot::Mutex;

use super::confinement::confine;
use super::connection::SinkConnection;
use super::erasures::Erasures;
use super::forwarding::SinkForwarding;
use super::quota::Quotas;
use crate::Audit;
use crate::chain_writer::{Intervals, Peer, Writer};
use crate::moment::Moment;
use crate::program_store::{self, ProgramStore};
use crate::retention;
use crate::segment_index::Index;

/// Interval at which the log is synced to the disk and signatures that are due are written.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted, for example because there are too many open files.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Settings of the audit sink.
#[derive(Clone, Debug)]
pub struct SinkSettings {
    /// Directory of the log.
    pub log: PathBuf,
    /// Directory of the key of the log, which is not above the directory of the log.
    pub keys: PathBuf,
    pub keep_days: u32,
    /// What one account can write in a day, in bytes.
    pub quota_bytes_per_day: u64,
}

/// Why the audit sink cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    #[error("{path} cannot be used: {source}")]
    Directory { path: PathBuf, source: io::Error },
    #[error("{path} cannot be opened for connections: {source}")]
    Listen { path: PathBuf, source: io::Error },
    #[error(
        "the right to remove records cannot be given up: {0}; the audit sink needs Landlock of version 3 (Linux 6.2)"
    )]
    Confinement(io::Error),
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
}

/// The process of the audit sink.
#[derive(Debug)]
pub struct Sink {
    settings: SinkSettings,
    programs: Arc<ProgramStore>,
    quotas: Arc<Mutex<Quotas>>,
    beginning: Arc<Mutex<()>>,
    forwarding: Arc<SinkForwarding>,
    erasures: Arc<Erasures>,
    connections: Mutex<HashMap<u64, Arc<SinkConnection>>>,
    /// Whether a segment began since the last removal of expired ones.
    has_new_segment: AtomicBool,
    next_connection: AtomicU64,
}

impl Sink {
    /// Opens the log of the sink, and creates missing directories. `forwarded` is the same log as the process of the sink
    /// itself writes it, with its destinations; `None` if it is not forwarded.
    ///
    /// # Errors
    /// [`SinkError::Directory`] if the log cannot be written.
    pub fn open(settings: SinkSettings, forwarded: Option<Arc<Audit>>) -> Result<Arc<Self>, SinkError> {
        let programs = program_store::programs_directory(&settings.log);
        for path in [&settings.log, &settings.keys, &programs] {
            let created = files::create_private_directory(path);
            created.map_err(|source| SinkError::Directory { path: path.clone(), source })?;
        }
        let to_error = |source| SinkError::Directory { path: settings.log.clone(), source };
        Index::open(&settings.log, &settings.keys).map_err(to_error)?;
        Ok(Arc::new(Self {
            programs: Arc::new(ProgramStore::new(settings.log.clone())),
            quotas: Arc::new(Mutex::new(Quotas::new(settings.quota_bytes_per_day))),
            beginning: Arc::default(),
            forwarding: Arc::new(SinkForwarding::new(forwarded)),
            erasures: Arc::default(),
            connections: Mutex::default(),
            has_new_segment: AtomicBool::new(false),
            next_connection: AtomicU64::new(0),
            settings,
        }))
    }

    /// Creates the socket, which any local account may connect to: the kernel tells the sink which one it is.
    ///
    /// # Errors
    /// [`SinkError::Listen`] if another file or a running sink is at the path.
    pub fn listen(path: &Path) -> Result<UnixListener, SinkError> {
        let listen = || -> io::Result<UnixListener> {
            match std::fs::symlink_metadata(path) {
                // A sink that was killed leaves its socket.
                Ok(found) if found.file_type().is_socket() && UnixStream::connect(path).is_err() => {
                    std::fs::remove_file(path)?;
                }
                _ => {}
            }
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
            Ok(listener)
        };
        listen().map_err(|source| SinkError::Listen { path: path.to_owned(), source })
    }

    /// Starts the thread that maintains the log and removes what has expired. It must be called before [`Self::serve`], which
    /// gives up the right to remove files for its own thread and those that serve connections.
    ///
    /// # Errors
    /// [`SinkError::Thread`].
    pub fn start_maintenance(self: &Arc<Self>) -> Result<(), SinkError> {
        let sink = self.clone();
        let maintain = move || loop {
            sink.erasures.serve(&sink.settings.log, MAINTENANCE_INTERVAL);
            sink.maintain();
        };
        let started = std::thread::Builder::new().name("audit-expiry".into()).spawn(maintain);
        started.map(drop).map_err(SinkError::Thread)
    }

    /// Serves connections until the process ends.
    ///
    /// # Errors
    /// [`SinkError::Confinement`] if the kernel cannot confine this thread.
    pub fn serve(self: &Arc<Self>, listener: &UnixListener) -> Result<(), SinkError> {
        // The files of the kernel that this reads are out of reach later.
        let _ = Moment::now();
        let SinkSettings { log, keys, .. } = &self.settings;
        confine(log, &program_store::programs_directory(log), keys).map_err(SinkError::Confinement)?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => self.start_connection(stream),
                Err(error) => {
                    tracing::error!("the audit sink cannot accept a connection: {error}");
                    std::thread::sleep(ACCEPT_AGAIN_AFTER);
                }
            }
        }
    }

    fn start_connection(self: &Arc<Self>, stream: UnixStream) {
        let credentials = match getsockopt(&stream, PeerCredentials) {
            Ok(credentials) => credentials,
            Err(error) => return tracing::error!("the kernel does not say who connected: {error}"),
        };
        let peer = Peer { uid: credentials.uid(), pid: credentials.pid() };
        if let Err(error) = self.quotas.lock().connect(peer.uid, Instant::now()) {
            return tracing::warn!("the audit sink closes a connection: {error}");
        }
        let sink = self.clone();
        let serve = move || sink.run_connection(peer, &stream);
        if let Err(error) = std::thread::Builder::new().name("audit-sink".into()).spawn(serve) {
            self.quotas.lock().disconnect(peer.uid);
            tracing::error!("the audit sink cannot start a thread: {error}");
        }
    }

    fn run_connection(&self, peer: Peer, stream: &UnixStream) {
        let SinkSettings { log, keys, .. } = &self.settings;
        let writer = Writer::new(log.clone(), keys.clone(), Intervals::default()).of_peer(peer);
        let connection = Arc::new(SinkConnection {
            peer,
            writer: Mutex::new(writer),
            programs: self.programs.clone(),
            quotas: self.quotas.clone(),
            beginning: self.beginning.clone(),
            forwarding: self.forwarding.clone(),
            erasures: self.erasures.clone(),
            within: Mutex::new(None),
            is_sandboxed: refuses_peer(u32::try_from(peer.pid).ok()),
        });
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
        self.connections.lock().insert(number, connection.clone());
        if let Err(error) = connection.serve(stream) {
            tracing::warn!("the audit sink closes the connection of the account {}: {error}", peer.uid);
        }
        let mut writer = connection.writer.lock();
        self.has_new_segment.fetch_or(writer.take_new_segment(), Ordering::Relaxed);
        writer.close(Moment::now(), "exit");
        drop(writer);
        self.connections.lock().remove(&number);
        self.quotas.lock().disconnect(peer.uid);
    }

    fn maintain(&self) {
        let connections: Vec<Arc<SinkConnection>> = self.connections.lock().values().cloned().collect();
        let mut has_new_segment = self.has_new_segment.swap(false, Ordering::Relaxed);
        for connection in connections {
            let work = connection.writer.lock().maintain(Moment::now());
            has_new_segment |= work.has_new_segment;
            if let Some(Err(error)) = work.to_sync.map(|file| file.sync_data()) {
                tracing::error!("cannot sync the audit log to disk: {error}");
                let reason = format!("records may not have reached the disk: {error}");
                connection.writer.lock().record_gap(Moment::now(), 0, reason);
            }
        }
        if let Err(error) = self.programs.sync() {
            tracing::error!("cannot sync stored programs of the audit log to disk: {error}");
        }
        if has_new_segment {
            let SinkSettings { log, keys, keep_days, .. } = &self.settings;
            if let Err(error) = retention::expire(log, keys, *keep_days, Moment::now()) {
                tracing::warn!("cannot remove expired segments of the audit log: {error}");
            }
        }
    }

    /// Ends all segments, before the process exits.
    pub fn close(&self) {
        let connections: Vec<Arc<SinkConnection>> = self.connections.lock().values().cloned().collect();
        for connection in connections {
            connection.writer.lock().close(Moment::now(), "exit");
        }
    }
}
