//! `lockhouse audit sink`: the process that writes the audit logs of all engines of a host, and forwards them.

use std::path::PathBuf;

use lockhouse_audit::{Audit, AuditSettings, Sink, SinkSettings};
use lockhouse_audit_forward::Forwarding;
use lockhouse_config::{self as config, Files};
use tokio_util::sync::CancellationToken;

use super::CommandResult;
use crate::cli::stop_signals::cancel_on_signal;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The socket for engines, as in `sink = "unix:PATH"` of their configuration
    #[arg(long, value_name = "PATH", default_value = "/run/lockhouse-audit/sink.sock")]
    listen: PathBuf,
    /// Where the log (in `log`) and its key (in `keys`) are
    #[arg(long, value_name = "DIR", default_value = "/var/lib/lockhouse-audit")]
    directory: PathBuf,
    /// Days after which a segment (file) of the log is deleted [default: keep_days of the configuration, else 30]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
    keep_days: Option<u32>,
    /// What one account can write in a day
    #[arg(long, value_name = "MIB", default_value_t = 1_024, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    quota_mib: u64,
}

/// Runs the sink until SIGTERM or SIGINT.
pub(super) async fn sink(files: &Files, arguments: Arguments) -> CommandResult {
    let Arguments { listen, directory, keep_days, quota_mib } = arguments;
    let directory = std::path::absolute(directory)?;
    let (log, keys) = (directory.join("log"), directory.join("keys"));
    let (audit, forward) = config::load_sink_settings(files, log.clone(), keys.clone())?;
    let keep_days = keep_days.unwrap_or(audit.keep_days);
    let settings = SinkSettings { log, keys, keep_days, quota_bytes_per_day: quota_mib * 1024 * 1024 };
    let (own, forwarding) = match forward.destinations.is_empty() {
        true => (None, None),
        false => {
            let own = Audit::open(AuditSettings { keep_days, ..audit })?;
            // Its thread starts before the threads that are confined.
            let forwarding = Forwarding::start(forward, &own)?;
            (Some(own), forwarding)
        }
    };
    let sink = Sink::open(settings, own.clone())?;
    let listener = Sink::listen(&listen)?;
    sink.start_maintenance()?;
    let stopped = CancellationToken::new();
    cancel_on_signal(&stopped);
    let serving = sink.clone();
    let serve = tokio::task::spawn_blocking(move || serving.serve(&listener));
    tracing::info!("the audit sink accepts records at {}", listen.display());
    tokio::select! {
        () = stopped.cancelled() => {}
        served = serve => served??,
    }
    sink.close();
    if let Some(own) = own {
        own.close();
    }
    if let Some(forwarding) = forwarding {
        forwarding.close().await;
    }
    let _ = std::fs::remove_file(&listen);
    // The thread that accepts connections ends with the process only.
    std::process::exit(0)
}
