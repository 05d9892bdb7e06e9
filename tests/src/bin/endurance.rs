//! `make endurance`: long runs against the built `lockhouse serve`, which check the promises that Lockhouse makes.
//!
//! `endurance [deadlines] [short] [kills] [--count N] [--seed N] [--json FILE]`: runs all three suites if none is
//! named. The exit status is 1 if a promise is broken and 2 for invalid arguments. Times are meaningful only on an
//! otherwise idle machine.

#![allow(clippy::print_stdout, reason = "it prints a table")]
#![allow(clippy::expect_used, reason = "a program for tests, which ends with a panic")]

#[path = "../endurance/suites.rs"]
mod suites;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use suites::Report;

const USAGE: &str =
    "usage: endurance [deadlines] [short] [kills] [--count N] [--seed N] [--json FILE], N above 0";

const DEADLINES: usize = 10_000;
/// The suite `deadlines` has a second part with only two executions in flight, so that none waits for a worker. The
/// number of executions in the second part is that of the first part divided by this number. Only the second part
/// checks the times by the client's clock.
const UNCONTENDED_SHARE: usize = 10;
const SHORT: usize = 100_000;
const KILLS: usize = 1_000;
const SEED: u64 = 0x10c4_0053;

struct Arguments {
    suites: Vec<String>,
    count: Option<usize>,
    seed: u64,
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let machine = machine();
    println!("{machine}\n");
    let mut reports = Vec::new();
    let mut add = |report: Report| {
        println!("{report}");
        reports.push(report);
    };
    let count = |full: usize| arguments.count.unwrap_or(full);
    for suite in &arguments.suites {
        match suite.as_str() {
            "deadlines" => {
                add(suites::deadlines(count(DEADLINES), 16).await);
                add(suites::deadlines(count(DEADLINES).div_ceil(UNCONTENDED_SHARE), 2).await);
            }
            "short" => add(suites::short(count(SHORT)).await),
            _ => add(suites::kills(count(KILLS), arguments.seed).await),
        }
    }
    let suites: Vec<Value> = reports.iter().map(Report::to_json).collect();
    let mut promises = suites.iter().filter_map(|suite| suite["promises"].as_array()).flatten();
    let all_kept = promises.all(|promise| promise["kept"] == true);
    if let Some(file) = arguments.json {
        let text = json!({"machine": machine, "seed": arguments.seed, "suites": suites}).to_string();
        if let Err(error) = std::fs::write(&file, text) {
            eprintln!("endurance: {}: {error}", file.display());
            return ExitCode::from(2);
        }
    }
    if all_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments { suites: Vec::new(), count: None, seed: SEED, json: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "deadlines" | "short" | "kills" => found.suites.push(word),
            "--count" => found.count = Some(words.next()?.parse().ok().filter(|count| *count > 0)?),
            "--seed" => found.seed = words.next()?.parse().ok().filter(|seed| *seed > 0)?,
            "--json" => found.json = Some(words.next()?.into()),
            _ => return None,
        }
    }
    if found.suites.is_empty() {
        found.suites = ["deadlines", "short", "kills"].map(str::to_owned).to_vec();
    }
    Some(found)
}

/// Describes the machine: its cores, kernel and load. The measured figures depend on these.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (kernel, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, Linux {}, load before the start {load}", kernel.trim())
}
