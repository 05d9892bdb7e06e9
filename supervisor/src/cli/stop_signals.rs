//! Stops a service on SIGTERM and SIGINT, and a command on SIGHUP too.

use lockhouse_base::lifecycle::Lifecycle;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels the work of a command when Ctrl-C, SIGTERM or SIGHUP (the end of its terminal) asks it to end, so that it ends
/// its servers and writes its last audit record.
pub(super) fn cancel_on_signal(work: &CancellationToken) {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let work = work.clone();
        match signal(kind) {
            Ok(mut signal) => drop(tokio::spawn(async move {
                signal.recv().await;
                work.cancel();
            })),
            Err(error) => tracing::warn!("a signal cannot be handled: {error}"),
        }
    }
}

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
