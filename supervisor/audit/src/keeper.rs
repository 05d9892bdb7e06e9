//! What is done for the log off the way of calls: bringing it to the disk, signing it, and letting go of what is too old.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::Audit;

/// From a record until it is on the disk, while the process lives.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the log up for as long as there is somebody who writes it. It sleeps until there is a record.
pub(super) async fn keep_up(audit: Weak<Audit>, written: Arc<Notify>) {
    loop {
        written.notified().await;
        loop {
            tokio::time::sleep(SYNC_INTERVAL).await;
            let Some(audit) = audit.upgrade() else { return };
            if !look_after(audit).await {
                break;
            }
        }
    }
}

/// Whether it must be looked after again although nothing more is written.
async fn look_after(audit: Arc<Audit>) -> bool {
    let upkeep = audit.writer().keep_up(SystemTime::now());
    if let Some(file) = upkeep.to_sync {
        // A disk may take its time.
        let programs = audit.clone();
        let synced = spawn_blocking(move || {
            programs.sync_programs();
            file.sync_data()
        });
        let synced = synced.await;
        if let Ok(Err(error)) = synced {
            tracing::error!("the audit log did not reach the disk: {error}");
            let reason = format!("records may not have reached the disk: {error}");
            audit.writer().missed(SystemTime::now(), 0, reason);
        }
    }
    if upkeep.has_begun {
        let _ = spawn_blocking(move || audit.expire()).await;
    }
    upkeep.goes_on
}
