//! `make load-attacks`: measures 20 honest clients over HTTP, with and without an attack on a resource that
//! all clients share.
//!
//! `load-attacks [--clients N] [--turns N] [--turn-seconds N] [--think-ms N] [--only NAME] [--beside yes]
//! [--json FILE]`. The exit status is 1 if an honest client's answer was wrong or lost or if the measurement failed, and 2 for
//! invalid arguments. The measurement consists of turns (periods of `--turn-seconds`), alternately with and without the
//! attack. The attackers run on the same machine as the daemon, so only these two kinds of turn can be compared with
//! each other. With `--beside yes`, attacking clients attack a second daemon. This shows how much the load on the
//! machine alone slows down the honest clients.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../load/attacks.rs"]
mod attacks;
#[path = "../load/daemon.rs"]
mod daemon;
#[path = "../load/honest_clients.rs"]
mod honest_clients;
#[path = "../load/http_connection.rs"]
mod http_connection;
#[path = "../load/results.rs"]
mod results;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attacks::{ATTACKS, Attack};
use clap::builder::{BoolishValueParser, PossibleValuesParser, RangedU64ValueParser};
use clap::{ArgAction, Parser};
use daemon::{Daemon, token};
use honest_clients::ConnectionUse;
use http_connection::Era;
use lockhouse_tests::Lockhouse;
use results::{Cpus, Figures, Summary, header, remains, row};
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The pause after a turn with an attack, in which the effects of the attack end.
const RECOVERY_PAUSE: Duration = Duration::from_secs(3);
/// The interval between samples of the daemon's memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[servers.hostile]\nallow = [\"*\"]\n";

/// Measures 20 honest clients over HTTP, in alternating periods (turns) with and without an attack on a
/// resource that all of them share.
#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value = "20", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    clients: usize,
    /// The number of turns (measured periods) without the attack, and also of turns with it
    #[arg(long, default_value = "6", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    turns: usize,
    #[arg(long, default_value_t = 15)]
    turn_seconds: u64,
    /// How long an honest client pauses between requests, in milliseconds on average
    #[arg(long, default_value_t = 400)]
    think_ms: u64,
    /// The only attack to measure, instead of all attacks
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(ATTACKS.map(|attack| attack.name)))]
    only: Option<String>,
    /// Whether attacking clients attack a second daemon instead, to measure the effect of the load on the machine
    /// alone
    #[arg(long, action = ArgAction::Set, value_name = "yes|no", hide_possible_values = true, default_value = "no", value_parser = BoolishValueParser::new())]
    beside: bool,
    /// The file to write the measured figures to, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    attacks::attack_if_requested().await;
    match measure(&Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("load-attacks: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: &Arguments) -> Fallible<bool> {
    println!("{}", header());
    let (mut reports, mut right) = (Vec::new(), true);
    for attack in ATTACKS {
        if arguments.only.as_ref().is_some_and(|only| only != attack.name) {
            continue;
        }
        let (report, is_right) = under(attack, arguments).await?;
        reports.push(report);
        right &= is_right;
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, Value::from(reports).to_string())?;
    }
    Ok(right)
}

/// Measures turns (periods) with and without one attack, against a daemon that is started for this attack.
/// Returns a report, and whether all answers to honest clients were right.
async fn under(attack: Attack, arguments: &Arguments) -> Fallible<(Value, bool)> {
    let lockhouse = Lockhouse::with_fixture().policy(POLICY);
    let order = lockhouse.file("order", "");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/flooding.py");
    let lockhouse =
        lockhouse.servers_entry("hostile", json!({"command": "python3", "args": [script, order]}));
    let bad = token(&lockhouse, "hostile")?;
    let names = (0..arguments.clients).map(|number| format!("client-{number}"));
    let tokens = names.map(|name| token(&lockhouse, &name)).collect::<Fallible<Vec<String>>>()?;
    let daemon = Daemon::start(&lockhouse)?;
    let second = match arguments.beside {
        true => Some(second_daemon()?),
        false => None,
    };
    let (target, bad) = second.as_ref().map_or((&daemon.host, &bad), |(_, second, bad)| (&second.host, bad));
    let figures = Arc::new(Figures::default());
    let think = Duration::from_millis(arguments.think_ms);
    let long = Duration::from_secs(arguments.turn_seconds);
    for (number, token) in tokens.into_iter().enumerate() {
        let (host, figures) = (daemon.host.clone(), figures.clone());
        // Half of the clients open a connection for each request, so that attacks on connections affect them.
        let habit = match number % 2 {
            0 if matches!(attack.name, "connections" | "churn") => ConnectionUse::PerRequest,
            0 => ConnectionUse::KeepAlive(Era::Stateless),
            _ => ConnectionUse::KeepAlive(Era::Sessions),
        };
        tokio::spawn(honest_clients::behave(host, token, habit, think, figures));
    }
    // Warm-up: connections are open and workers are started.
    tokio::time::sleep(RECOVERY_PAUSE).await;
    let (mut without, mut with) = (Summary::default(), Summary::default());
    let (mut memory, began) = (0, Cpus::now());
    for _ in 0..arguments.turns {
        without = without.and(turn(&figures, long, &daemon, &mut memory).await);
        attack.order(&order, true)?;
        let attacker = attack.start(target, bad)?;
        with = with.and(turn(&figures, long, &daemon, &mut memory).await);
        drop(attacker);
        attack.order(&order, false)?;
        tokio::time::sleep(RECOVERY_PAUSE).await;
    }
    row(&format!("without {}", attack.name), &without);
    row(&format!("with {}", attack.name), &with);
    let (ratio, mib) = (with.p99_ms / without.p99_ms, memory as f64 / 1024.0);
    println!(
        "  {}: p99 {ratio:.2} times that without, memory at most {mib:.1} MiB; the host took {:.1} %",
        attack.what,
        began.stolen_percent()
    );
    for fault in without.faults.iter().chain(&with.faults) {
        println!("  FAULT {fault}");
    }
    let right = without.wrong + without.lost + with.wrong + with.lost == 0;
    let report = json!({
        "attack": attack.name, "what": attack.what, "without": without.to_json(), "with": with.to_json(),
        "p99_ratio": ratio, "memory_max_mib": mib,
    });
    Ok((report, right))
}

/// Starts a second daemon, which has no honest clients, and returns it with the token of the client that attacks it.
fn second_daemon() -> Fallible<(Lockhouse, Daemon, String)> {
    let lockhouse = Lockhouse::with_fixture().policy(POLICY);
    let token = token(&lockhouse, "hostile")?;
    let daemon = Daemon::start(&lockhouse)?;
    Ok((lockhouse, daemon, token))
}

/// Measures the honest clients during one turn, a period of the duration `long`. Raises `memory` to the daemon's
/// largest resident memory during the turn, in KiB, if that is higher.
async fn turn(figures: &Figures, long: Duration, daemon: &Daemon, memory: &mut u64) -> Summary {
    figures.take();
    let until = Instant::now() + long;
    while Instant::now() < until {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        *memory = (*memory).max(remains(daemon.process.0.id()).0);
    }
    figures.take()
}
