//! `lockhouse serve` on a host whose engines belong to the system: a front of one AI client without policy and secrets, which
//! never runs an engine itself.

use std::process::ExitCode;
use std::time::Duration;

use interprocess::local_socket::tokio::Stream;
use lockhouse_config::{Files, SystemEngine};
use lockhouse_link::{EngineSocket, EngineSource, RemoteEngineError, RemoteEngineSettings};
use tokio::time::{Instant, sleep};

use super::Arguments;
use super::shared::ThinProcess;
use crate::cli::engine_socket::FRONT_SOCKET;
use crate::cli::system_engine::{self, SystemEngineError};
use crate::cli::{UNAVAILABLE, USAGE, launcher, print_error};

/// How long a front tries to reach the engine, which may be starting, and how often.
/// Bound: engines and fronts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_EVERY: Duration = Duration::from_millis(50);

/// Serves the AI client on standard input and output until it disconnects, or a signal stops the process.
pub(super) async fn serve(engine: SystemEngine, files: &Files, arguments: &Arguments) -> ExitCode {
    if arguments.uses_http() {
        eprintln!(
            "lockhouse: the administrator lets AI clients of people use the engine of this host only, over standard input and output: \
             leave out --http and --listen"
        );
        return ExitCode::from(USAGE);
    }
    if files.options().next().is_some() || arguments.own || arguments.expose != Default::default() {
        tracing::warn!(
            "the engine of this host has a configuration and a policy of its own: --config, --policy, --servers, --expose and \
             --own have no effect"
        );
    }
    match ThinProcess::connect(settings(engine)).await {
        Ok(client) => client.serve(arguments.answer_settings()).await,
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

fn settings(engine: SystemEngine) -> RemoteEngineSettings {
    RemoteEngineSettings {
        connect: Box::new(move |source| {
            Box::pin(async move {
                // There is one way to this engine.
                if source == EngineSource::Activated {
                    return Err(RemoteEngineError::Busy);
                }
                let stream =
                    connect(engine).await.map_err(|error| RemoteEngineError::Unavailable(error.into()))?;
                // It ended with the previous engine.
                launcher::start();
                Ok(EngineSocket { stream, setup: None })
            })
        }),
        advice: "The administrator of this host can read the log of the engine.".to_owned(),
    }
}

async fn connect(engine: SystemEngine) -> Result<Stream, SystemEngineError> {
    let (directory, started) = (engine.directory(), Instant::now());
    loop {
        match system_engine::connect(&directory, FRONT_SOCKET).await {
            Err(error) if error.may_be_restart() && started.elapsed() < CONNECT_TIMEOUT => {
                sleep(RETRY_EVERY).await;
            }
            connected => return connected,
        }
    }
}
