//! `lockhouse serve`

use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{UNAVAILABLE, USAGE, start};
use crate::config::Files;
use crate::execution::Language;
use crate::front;
use crate::upstream::NESTED;

/// Serves until the client closes its end, or a signal asks to stop.
pub(super) async fn serve(files: &Files) -> ExitCode {
    if std::env::var_os(NESTED).is_some() {
        eprintln!(
            "lockhouse: this is an upstream server of another Lockhouse; take it out of that one's servers file"
        );
        return ExitCode::from(USAGE);
    }
    let supervisor = match start(files, &[Language::Python, Language::Typescript]) {
        Ok(supervisor) => Arc::new(supervisor),
        Err(status) => return status,
    };
    let closing = CancellationToken::new();
    close_on_signal(&closing);
    let served = tokio::select! {
        served = front::serve_stdio(supervisor.clone(), closing.clone()) => served,
        reason = supervisor.unprotected() => Err(reason),
    };
    closing.cancel();
    supervisor.close().await;
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("lockhouse: {reason}");
            ExitCode::from(UNAVAILABLE)
        }
    }
}

fn close_on_signal(closing: &CancellationToken) {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let closing = closing.clone();
        match signal(kind) {
            Ok(mut signal) => drop(tokio::spawn(async move {
                signal.recv().await;
                closing.cancel();
            })),
            Err(error) => tracing::warn!("a signal cannot be handled: {error}"),
        }
    }
}
