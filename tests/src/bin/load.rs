//! `make load`: many AI clients over HTTP at the same time, one of them hostile, against the built `lockhouse serve
//! --listen`.
//!
//! `load [--clients N] [--seconds N] [--hostile-seconds N] [--think-ms N] [--json FILE]`. In the first phase all
//! clients are honest, for `--seconds`; then turns (periods) with and without the hostile client alternate for
//! `--hostile-seconds`. The exit status is 1 if an answer was wrong or lost or if the measurement failed, and 2 for
//! invalid arguments. The clients run on the same machine as the daemon: times are those of this machine, and only the
//! ratios between kinds of turn can be compared.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../load/alternating_turns.rs"]
mod alternating_turns;
#[path = "../load/daemon.rs"]
mod daemon;
#[path = "../load/honest_clients.rs"]
mod honest_clients;
#[path = "../load/hostile_client.rs"]
mod hostile_client;
#[path = "../load/http_connection.rs"]
mod http_connection;
#[path = "../load/results.rs"]
mod results;
#[path = "../load/stream.rs"]
mod stream;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use daemon::{Daemon, token};
use honest_clients::ConnectionUse;
use http_connection::Era;
use lockhouse_tests::Lockhouse;
use results::{Figures, header, remains, row};
use serde_json::json;

type Fallible<T> = Result<T, Box<dyn Error>>;

const SAMPLES: usize = 10;
/// The daemon's configuration: quotas per client as an operator of a shared daemon sets them, and a higher limit on
/// connections per address, because all honest clients have the same address here.
const CONFIG: &str = "\
[http.limits]
connections_per_peer = 600
[clients]
requests = \"120/min\"
runs = \"30/min\"
running = 1
";

/// Measures many AI clients over HTTP at the same time, with and without a hostile client among them.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value = "500", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    clients: usize,
    /// The seconds of the first phase, in which all clients are honest
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// The seconds of the second phase, in which periods with and without the hostile client alternate
    #[arg(long, default_value_t = 360)]
    hostile_seconds: u64,
    /// How long an honest client pauses between requests, in milliseconds on average
    #[arg(long, default_value_t = 5_000)]
    think_ms: u64,
    /// The file to write the measured figures to, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    alternating_turns::run_if_background_process().await;
    match measure(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: &Arguments) -> Fallible<bool> {
    let lockhouse = Lockhouse::with_fixture().config(CONFIG);
    let names: Vec<String> = (0..arguments.clients).map(|number| format!("client-{number}")).collect();
    eprintln!("making {} tokens", names.len() + 1);
    let tokens = names.iter().map(|name| token(&lockhouse, name)).collect::<Fallible<Vec<String>>>()?;
    let bad = token(&lockhouse, "hostile")?;
    let daemon = Daemon::start(&lockhouse)?;
    let figures = Arc::new(Figures::default());
    let think = Duration::from_millis(arguments.think_ms);
    let sample_seconds = arguments.seconds as f64 / SAMPLES as f64;
    for (number, token) in tokens.into_iter().enumerate() {
        let (host, figures) = (daemon.host.clone(), figures.clone());
        let era = if number.is_multiple_of(2) { Era::Stateless } else { Era::Sessions };
        tokio::spawn(honest_clients::behave(host, token, ConnectionUse::KeepAlive(era), think, figures));
    }
    println!("{} clients, each thinks for {think:?} on average", arguments.clients);
    let mut memory = Vec::new();
    for sample in 0..SAMPLES {
        tokio::time::sleep(Duration::from_secs_f64(sample_seconds)).await;
        let (kib, files) = remains(daemon.process.0.id());
        println!(
            "  {:>4.0} s  memory {:>6.1} MiB  open files {files}",
            sample_seconds * (sample + 1) as f64,
            kib as f64 / 1024.0
        );
        memory.push(kib);
    }
    let all = figures.take();
    println!("\n{}", header());
    row("all behave", &all);
    let hostile = Duration::from_secs(arguments.hostile_seconds);
    let [without, beside, with] = alternating_turns::take(hostile, &daemon.host, &bad, &figures).await?;
    for fault in [&all, &without, &beside, &with].into_iter().flat_map(|summary| &summary.faults) {
        println!("FAULT {fault}");
    }
    if let Some(path) = &arguments.json {
        let report = json!({
            "clients": arguments.clients, "think_ms": arguments.think_ms, "memory_kib": memory,
            "all": all.to_json(), "without": without.to_json(), "beside": beside.to_json(),
            "with": with.to_json(),
        });
        std::fs::write(path, report.to_string())?;
    }
    Ok([&all, &without, &beside, &with].iter().all(|summary| summary.wrong + summary.lost == 0))
}
