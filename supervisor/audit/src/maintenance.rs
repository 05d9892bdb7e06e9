//! Background maintenance of the audit log, so that no call waits for it: syncs files to disk, signs checkpoints, and
//! removes expired segments.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::moment::Moment;
use super::{Audit, Destination, sync_programs};

/// Maximum time from the write of a record until the log is synced to disk.
/// Bound: the audit log.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Maintains the audit log until the last reference to it is dropped. Starts work when `written` reports a new record,
/// and sleeps while no records are written.
pub(super) async fn run(audit: Weak<Audit>, written: Arc<Notify>) {
    loop {
        written.notified().await;
        loop {
            tokio::time::sleep(SYNC_INTERVAL).await;
            let Some(audit) = audit.upgrade() else { return };
            if !maintain(audit).await {
                break;
            }
        }
    }
}

/// Does all maintenance that is due. Returns true if unsigned records remain, so that maintenance must continue even if
/// no more records are written.
async fn maintain(audit: Arc<Audit>) -> bool {
    let Destination::Files { writer, .. } = &audit.destination else { return false };
    let work = writer.lock().maintain(Moment::now());
    if let Some(file) = work.to_sync {
        // Syncing to disk can block, so it runs on a blocking thread.
        let audit = audit.clone();
        let synced = spawn_blocking(move || {
            if let Destination::Files { programs, .. } = &audit.destination {
                sync_programs(programs);
            }
            file.sync_data()
        });
        let synced = synced.await;
        if let Ok(Err(error)) = synced {
            tracing::error!("cannot sync the audit log to disk: {error}");
            let reason = format!("records may not have reached the disk: {error}");
            writer.lock().record_gap(Moment::now(), 0, reason);
        }
    }
    if work.has_new_segment {
        let audit = audit.clone();
        let _ = spawn_blocking(move || audit.expire()).await;
    }
    work.needs_signature
}
