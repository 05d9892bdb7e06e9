//! `lockhouse server list`: connects to every upstream server and shows its state.

use std::process::ExitCode;

use lockhouse_config::{Files, Settings};
use lockhouse_upstream::Upstreams;
use serde_json::Value;

use super::status_report::{COLUMNS, StatusReport};
use super::{connection_progress, load};
use crate::cli::table;
use crate::cli::terminal::for_stdout;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Only show the configuration, without connecting
    #[arg(long)]
    no_connect: bool,
}

pub(super) async fn list(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let settings = load(files)?;
    let mut reports: Vec<StatusReport> = match arguments.no_connect {
        true => settings
            .engine
            .servers
            .iter()
            .map(|(name, server)| StatusReport::configured(name.as_str(), server))
            .collect(),
        false => connect_and_report(&settings).await,
    };
    reports.extend(settings.skipped_servers.iter().map(StatusReport::unused));
    if arguments.json {
        let rows: Value = reports.iter().map(StatusReport::to_json).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
    } else if reports.is_empty() {
        eprintln!(
            "lockhouse: no server is configured; add one with `lockhouse server add`, or name an AI client's file with --servers"
        );
    } else {
        let rows: Vec<Vec<String>> = reports.iter().map(StatusReport::cells).collect();
        println!("{}", table::render(&COLUMNS, &rows));
    }
    Ok(ExitCode::SUCCESS)
}

async fn connect_and_report(settings: &Settings) -> Vec<StatusReport> {
    let upstreams = Upstreams::connect(settings.engine.servers.clone(), &settings.engine.places);
    connection_progress::connect_all(&upstreams).await;
    let configured = &settings.engine.servers;
    let reports = upstreams
        .iter()
        .filter_map(|(name, connection)| {
            Some(StatusReport::connected(name.as_str(), configured.get(name)?, connection))
        })
        .collect();
    upstreams.close().await;
    reports
}
