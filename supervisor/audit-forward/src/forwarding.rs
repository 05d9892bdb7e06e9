//! The thread that forwards the audit log of this process's configuration.

use std::io;
use std::sync::Arc;
use std::thread;

use lockhouse_audit::Audit;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::ForwardSettings;
use crate::forwarder::Forwarder;

/// Why the log cannot be forwarded.
#[derive(Debug, thiserror::Error)]
#[error("the audit log cannot be forwarded: its thread cannot be started: {0}")]
pub struct ForwardError(#[from] io::Error);

/// The forwarding of the audit log. It ends when this value is dropped.
#[derive(Debug)]
pub struct Forwarding {
    stop: DropGuard,
    ended: oneshot::Receiver<()>,
}

impl Forwarding {
    /// Starts to forward the log to all destinations of the settings, and tells the log how far they are. Returns `None` if
    /// there is no destination.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(settings: ForwardSettings, audit: &Arc<Audit>) -> Result<Option<Self>, ForwardError> {
        if settings.destinations.is_empty() {
            return Ok(None);
        }
        let settings = Arc::new(settings);
        let forwarder = |destination| Forwarder::new(&settings, destination, audit.clone());
        let mut forwarders: Vec<Forwarder> = settings.destinations.iter().map(forwarder).collect();
        // Before the first call, which may depend on it.
        forwarders.iter_mut().for_each(Forwarder::measure);
        audit.set_deliveries(forwarders.iter().map(Forwarder::delivery).collect());
        let stop = CancellationToken::new();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (ending, ended) = oneshot::channel();
        let stopped = stop.clone();
        let run = move || {
            let mut tasks = JoinSet::new();
            for forwarder in forwarders {
                tasks.spawn_on(forwarder.run(stopped.clone()), runtime.handle());
            }
            runtime.block_on(tasks.join_all());
            // The other side may not wait any more.
            let _ = ending.send(());
        };
        thread::Builder::new().name("audit-forward".into()).spawn(run)?;
        Ok(Some(Self { stop: stop.drop_guard(), ended }))
    }

    /// Forwards the last records, for at most a few seconds, and ends.
    pub async fn close(self) {
        let Self { stop, ended } = self;
        drop(stop);
        let _ = ended.await;
    }
}
