//! `lockhouse serve`

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{UNAVAILABLE, USAGE, read, start};
use crate::config::Files;
use crate::control::ControlSocket;
use crate::execution::Language;
use crate::front;
use crate::front::http::{Address, HttpSettings};
use crate::supervisor::Supervisor;
use crate::upstream::NESTED;

/// How AI clients come in.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Serve over HTTP, at IP:PORT or unix:/PATH; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
}

/// Serves until the client closes its end, or a signal asks to stop. SIGHUP loads the configuration again.
pub(super) async fn serve(files: &Files, arguments: Arguments) -> ExitCode {
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
    let control = ControlSocket::open(supervisor.approvers().desk(), supervisor.sessions());
    let _control = control.map_err(|reason| tracing::warn!("{reason}"));
    let serving = async {
        match arguments.listen {
            listen if listen.is_empty() => front::serve_stdio(supervisor.clone(), closing.clone()).await,
            listen => {
                let settings = HttpSettings { listen, access: supervisor.settings().access.clone() };
                front::http::serve(supervisor.clone(), settings, closing.clone()).await
            }
        }
    };
    let served = tokio::select! {
        served = serving => served,
        reason = supervisor.unprotected() => Err(reason),
        never = reload_on_signal(&supervisor, files) => match never {},
        never = reload_on_answer(&supervisor, files) => match never {},
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

/// SIGHUP: what is written now takes effect, or what was in force stays and the reason is told.
async fn reload_on_signal(supervisor: &Supervisor, files: &Files) -> Infallible {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => {
            tracing::warn!("SIGHUP cannot be handled: {error}");
            return std::future::pending().await;
        }
    };
    loop {
        if hangup.recv().await.is_none() {
            return std::future::pending().await;
        }
        reload(supervisor, files);
    }
}

/// An answer to a question changed the policy file: whoever gave it waits until it is in force.
async fn reload_on_answer(supervisor: &Supervisor, files: &Files) -> Infallible {
    while let Some(waits) = supervisor.approvers().policy_changed().await {
        reload(supervisor, files);
        let _ = waits.send(());
    }
    std::future::pending().await
}

fn reload(supervisor: &Supervisor, files: &Files) {
    match read(files) {
        Ok((settings, policy)) => supervisor.reload(settings, policy),
        Err(error) => {
            tracing::error!("the configuration was not loaded again, and what was in force stays:\n{error}");
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
