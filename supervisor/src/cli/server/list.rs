//! `lockhouse server list`

use std::process::ExitCode;

use lockhouse_upstream::Upstreams;
use serde_json::Value;

use super::report::{COLUMNS, Report};
use super::{load, progress};
use crate::cli::table;
use crate::cli::terminal::for_stdout;
use crate::config::{Files, Settings};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Show what is configured, and start nothing
    #[arg(long)]
    no_connect: bool,
}

pub(super) async fn list(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let settings = load(files)?;
    let mut reports: Vec<Report> = match arguments.no_connect {
        true => settings
            .engine
            .servers
            .iter()
            .map(|(name, server)| Report::configured(name.as_str(), server))
            .collect(),
        false => connected(&settings).await,
    };
    reports.extend(settings.unused.iter().map(Report::unused));
    if arguments.json {
        let rows: Value = reports.iter().map(Report::to_json).collect();
        println!("{}", for_stdout(&format!("{rows:#}")));
    } else if reports.is_empty() {
        eprintln!(
            "lockhouse: no server is configured; add one with `lockhouse server add`, or name an AI client's file with --servers"
        );
    } else {
        let rows: Vec<Vec<String>> = reports.iter().map(Report::cells).collect();
        println!("{}", table::render(&COLUMNS, &rows));
    }
    Ok(ExitCode::SUCCESS)
}

async fn connected(settings: &Settings) -> Vec<Report> {
    let upstreams = Upstreams::connect(settings.engine.servers.clone(), &settings.engine.places);
    progress::connect(&upstreams).await;
    let report = |(name, connection)| {
        let definition = settings.engine.servers.get(name)?;
        Some(Report::connected(name.as_str(), definition, connection))
    };
    let reports = upstreams.iter().filter_map(report).collect();
    upstreams.close().await;
    reports
}
