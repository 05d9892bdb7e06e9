//! Stops a service on SIGTERM and SIGINT.

use lockhouse_base::lifecycle::Lifecycle;
use tokio::signal::unix::{SignalKind, signal};

/// Stops the server on SIGTERM or SIGINT. With `drains` (set for a
/// service of several clients), the first signal starts a drain, which lets
/// running code finish, and a second signal stops the code that still runs.
pub(super) fn end_on_signal(life: &Lifecycle, drains: bool) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let life = life.clone();
        match signal(kind) {
            Ok(mut signal) => drop(tokio::spawn(async move {
                signal.recv().await;
                if drains && !life.draining().is_cancelled() {
                    tokio::select! {
                        () = life.drain() => {}
                        _ = signal.recv() => tracing::warn!("second stop signal: running code is stopped"),
                    }
                }
                life.close();
            })),
            Err(error) => tracing::warn!("a signal cannot be handled: {error}"),
        }
    }
}
