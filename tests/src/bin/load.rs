//! `make load`: many AI clients over HTTP at one time, against the built `lockhouse serve --listen`, and one among them that
//! is hostile.
//!
//! `load [--clients N] [--seconds N] [--hostile-seconds N] [--think-ms N] [--json FILE]`. First all behave for `--seconds`;
//! then turns of other kinds follow each other for `--hostile-seconds`. Exit status 1 if an answer was wrong or lost, 2 for
//! wrong arguments. The clients share the machine with what they measure: times are those of this machine, and what can be
//! compared is the ratio of the kinds of turn.

#![allow(clippy::print_stdout, clippy::too_many_lines)] // A table is what it is for.

#[path = "../load/daemon.rs"]
mod daemon;
#[path = "../load/figures.rs"]
mod figures;
#[path = "../load/honest.rs"]
mod honest;
#[path = "../load/hostile.rs"]
mod hostile;
#[path = "../load/turns.rs"]
mod turns;
#[path = "../load/wire.rs"]
mod wire;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use daemon::{Daemon, token};
use figures::{Figures, header, remains, row};
use honest::Habit;
use lockhouse_tests::Lockhouse;
use serde_json::json;
use wire::Era;

type Fallible<T> = Result<T, Box<dyn Error>>;

const SAMPLES: usize = 10;
/// What one client may use, as an operator of a shared daemon sets it. All clients that behave have one address here.
const CONFIG: &str = "\
[http.limits]
connections_per_peer = 600
[clients]
requests = \"120/min\"
runs = \"30/min\"
running = 1
";

/// Many AI clients over HTTP at one time, and a hostile one among them.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value = "500", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    clients: usize,
    /// How long all behave
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// How long turns with and without the hostile client take together
    #[arg(long, default_value_t = 360)]
    hostile_seconds: u64,
    /// How long a client thinks between requests, on average
    #[arg(long, default_value_t = 5_000)]
    think_ms: u64,
    /// A file that gets the figures
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    turns::be_beside().await;
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
        tokio::spawn(honest::behave(host, token, Habit::Keeps(era), think, figures));
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
    let [without, beside, with] = turns::take(hostile, &daemon.host, &bad, &figures).await?;
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
