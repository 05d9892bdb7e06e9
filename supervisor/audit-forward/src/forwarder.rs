//! The task of one destination: forwards while this process holds the destination's lock. Until then it waits for the lock,
//! and measures how far behind the destination is.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockhouse_audit::{Audit, Delivery};
use tokio_util::sync::CancellationToken;

use crate::active_forwarder::ActiveForwarder;
use crate::backlog::Backlog;
use crate::cursor_file::read_positions;
use crate::state_files::StateFiles;
use crate::{ForwardDestination, ForwardSettings};

/// How often a process tries to take over from the one that forwards.
const STANDBY_INTERVAL: Duration = Duration::from_secs(1);

/// The forwarding to one destination, in this process or in another one.
#[derive(Debug)]
pub(crate) struct Forwarder {
    settings: Arc<ForwardSettings>,
    destination: ForwardDestination,
    audit: Arc<Audit>,
    delivery: Arc<Delivery>,
    files: StateFiles,
    backlog: Backlog,
    /// Size and time of the cursor that was read last.
    cursor_read: Option<(u64, Option<SystemTime>)>,
    /// The last error that was logged.
    reported: Option<String>,
}

impl Forwarder {
    pub(crate) fn new(
        settings: &Arc<ForwardSettings>,
        destination: &ForwardDestination,
        audit: Arc<Audit>,
    ) -> Self {
        Self {
            files: StateFiles::new(settings, &destination.destination),
            backlog: Backlog::new(&settings.log),
            delivery: Arc::new(Delivery::new(destination.destination.to_string())),
            settings: settings.clone(),
            destination: destination.clone(),
            audit,
            cursor_read: None,
            reported: None,
        }
    }

    pub(crate) fn delivery(&self) -> Arc<Delivery> {
        self.delivery.clone()
    }

    /// Forwards, or waits to do so, until `stop` is cancelled.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            match self.files.lock() {
                Ok(Some(_lock)) => match self.activate() {
                    Ok(active) => return active.run(&stop).await,
                    Err(error) => self.report(&error),
                },
                Ok(None) => self.measure(),
                Err(error) => self.report(&error),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(STANDBY_INTERVAL) => {}
            }
        }
    }

    fn activate(&self) -> std::io::Result<ActiveForwarder> {
        let (settings, audit) = (self.settings.clone(), self.audit.clone());
        ActiveForwarder::new(settings, &self.destination, audit, self.delivery.clone(), self.files.clone())
    }

    /// Measures how far behind the destination is, from the log and the cursor.
    pub(crate) fn measure(&mut self) {
        let found = match self.read_cursor().and_then(|()| self.backlog.scan()) {
            Ok(found) => found,
            Err(error) => return self.report(&error),
        };
        // The process that forwards records what is lost.
        found.vanished.iter().for_each(|segment| self.backlog.forget(&segment.name));
        self.reported = None;
        self.delivery.update(self.backlog.lag(), self.files.read_status().error);
    }

    fn read_cursor(&mut self) -> std::io::Result<()> {
        let path = self.files.cursor();
        let metadata = std::fs::symlink_metadata(&path).ok();
        let state = metadata.map(|metadata| (metadata.len(), metadata.modified().ok()));
        if state != self.cursor_read {
            self.backlog.restore(&read_positions(&path)?);
            self.cursor_read = state;
        }
        Ok(())
    }

    /// Reports that the state of the destination cannot be read or written. How far it is behind stays as it was measured, and
    /// so grows.
    fn report(&mut self, error: &std::io::Error) {
        let (words, destination) = (error.to_string(), self.delivery.destination());
        if self.reported.as_ref() != Some(&words) {
            tracing::error!(
                "the audit log is not forwarded to {destination}: its state cannot be used: {words}"
            );
        }
        self.delivery.set_fault(format!("the state of the forwarding cannot be used: {words}"));
        self.reported = Some(words);
    }
}
