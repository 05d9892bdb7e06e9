//! Background maintenance of the audit log, outside of the path of calls: syncs to disk, signs checkpoints, and
//! removes expired segments.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::Audit;

/// Maximum time from a record until it is synced to disk.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Maintains the log until its last reference is dropped. Sleeps while no records are written.
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

/// Does all maintenance that is due. Returns whether maintenance must continue although no more records are written.
async fn maintain(audit: Arc<Audit>) -> bool {
    let work = audit.writer().maintain(SystemTime::now());
    if let Some(file) = work.to_sync {
        // Syncing to disk can block, so it runs on a blocking thread.
        let programs = audit.clone();
        let synced = spawn_blocking(move || {
            programs.sync_programs();
            file.sync_data()
        });
        let synced = synced.await;
        if let Ok(Err(error)) = synced {
            tracing::error!("cannot sync the audit log to disk: {error}");
            let reason = format!("records may not have reached the disk: {error}");
            audit.writer().record_gap(SystemTime::now(), 0, reason);
        }
    }
    if work.has_new_segment {
        let _ = spawn_blocking(move || audit.expire()).await;
    }
    work.needs_signature
}
