//! `make load-attacks`: measures 20 honest clients over HTTP, with and without an attack on a resource that
//! all clients share.
//!
//! `load-attacks [--clients N] [--turns N] [--turn-seconds N] [--think-ms N] [--only NAME] [--json FILE]`. The exit status is 1 if an
//! honest client's answer was wrong or lost or if the measurement failed, and 2 for invalid arguments. The measurement
//! consists of turns (periods of `--turn-seconds`) of three kinds, one after the other: at rest; beside the attack, of which a second
//! daemon is the target, so that it costs the same processor time on this machine; and under the attack. The last two kinds are
//! pairs, and the middle of the ratios of their p99 tells what the attack does besides using processors. Attacks by an
//! upstream server have no turns beside.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../load/attacks.rs"]
mod attacks;
#[path = "../load/daemon.rs"]
mod daemon;
#[path = "../load/honest_clients.rs"]
mod honest_clients;
#[path = "../load/hostile_streams.rs"]
mod hostile_streams;
#[path = "../load/http_connection.rs"]
mod http_connection;
#[path = "../load/results.rs"]
mod results;
#[path = "../load/stream.rs"]
mod stream;

use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attacks::{ATTACKS, Attack};
use clap::Parser;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use daemon::{Daemon, token};
use honest_clients::ConnectionUse;
use http_connection::Era;
use lockhouse_tests::{Lockhouse, front_of};
use results::{Cpus, Figures, Summary, header, remains, row};
use serde_json::{Value, json};
use stream::CERTIFICATE;

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
    /// The number of turns (measured periods) of each kind
    #[arg(long, default_value = "10", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    turns: usize,
    #[arg(long, default_value_t = 15)]
    turn_seconds: u64,
    /// How long an honest client pauses between requests, in milliseconds on average
    #[arg(long, default_value_t = 400)]
    think_ms: u64,
    /// The only attack to measure, instead of all attacks
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(ATTACKS.map(|attack| attack.name)))]
    only: Option<String>,
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

/// Measures the turns of one attack, against a daemon that is started for this attack. Returns a report, and whether all answers to
/// honest clients were right.
async fn under(attack: Attack, arguments: &Arguments) -> Fallible<(Value, bool)> {
    let order = tempfile::NamedTempFile::new()?;
    let target = Target::start(attack, order.path(), arguments.clients)?;
    let other = match attack.upstream {
        Some(_) => None,
        None => Some(Target::start(attack, order.path(), 0)?),
    };
    let figures = Arc::new(Figures::default());
    let long = Duration::from_secs(arguments.turn_seconds);
    start_honest_clients(attack, &target, Duration::from_millis(arguments.think_ms), &figures);
    // Warm-up: connections are open and workers are started.
    tokio::time::sleep(RECOVERY_PAUSE).await;
    let (mut rest, mut beside, mut attacked) = <(Turns, Turns, Turns)>::default();
    let began = Cpus::now();
    for _ in 0..arguments.turns {
        rest.measure(&figures, long, &target.daemon).await;
        if let Some(other) = &other {
            let attacker = attack.start(&other.daemon.host, &other.bad)?;
            beside.measure(&figures, long, &target.daemon).await;
            drop(attacker);
            tokio::time::sleep(RECOVERY_PAUSE).await;
        }
        attack.order(order.path(), true)?;
        let attacker = attack.start(&target.daemon.host, &target.bad)?;
        attacked.measure(&figures, long, &target.daemon).await;
        drop(attacker);
        attack.order(order.path(), false)?;
        tokio::time::sleep(RECOVERY_PAUSE).await;
    }
    let compared = if other.is_some() { Some(&beside) } else { None };
    Ok(report(attack, &rest, compared, &attacked, began.stolen_percent()))
}

fn start_honest_clients(attack: Attack, target: &Target, think: Duration, figures: &Arc<Figures>) {
    for (number, token) in target.tokens.iter().enumerate() {
        let (host, token, figures) = (target.daemon.host.clone(), token.clone(), figures.clone());
        // Half of the clients open a connection for each request, so that attacks on connections affect them.
        let habit = match number % 2 {
            0 if matches!(attack.name, "connections" | "churn") => ConnectionUse::PerRequest,
            0 => ConnectionUse::KeepAlive(Era::Stateless),
            _ => ConnectionUse::KeepAlive(Era::Sessions),
        };
        tokio::spawn(honest_clients::behave(host, token, habit, think, figures));
    }
}

/// Prints the results of the turns of an attack. Returns them, and whether all answers to honest clients were right.
fn report(
    attack: Attack,
    rest: &Turns,
    beside: Option<&Turns>,
    attacked: &Turns,
    stolen_percent: f64,
) -> (Value, bool) {
    let kinds = [("at rest", Some(rest)), ("beside", beside), ("under", Some(attacked))];
    let kinds = kinds.into_iter().filter_map(|(kind, turns)| Some((kind, turns?)));
    let mut is_right = true;
    for (kind, turns) in kinds {
        row(&format!("{kind} {}", attack.name), &turns.sum);
        turns.sum.faults.iter().for_each(|fault| println!("  FAULT {fault}"));
        is_right &= turns.sum.wrong + turns.sum.lost == 0;
    }
    let ratio = attacked.p99_ratio(beside.unwrap_or(rest));
    let memory = |of: fn(&Turns) -> u64| [rest, attacked].map(|turns| of(turns) as f64 / 1024.0);
    let (engine, front) = (memory(|turns| turns.engine_kib), memory(|turns| turns.front_kib));
    println!(
        "  {}: p99 {ratio:.2} times that {} (middle of {} pairs). Memory at most, at rest and under it: engine {:.1} and {:.1} MiB, \
         front {:.1} and {:.1} MiB; the host took {stolen_percent:.1} %",
        attack.what,
        if beside.is_some() { "beside the same load" } else { "at rest" },
        attacked.p99_ms.len(),
        engine[0],
        engine[1],
        front[0],
        front[1],
    );
    let report = json!({
        "attack": attack.name, "what": attack.what, "p99_ratio": ratio, "engine_mib": engine, "front_mib": front,
        "rest": rest.sum.to_json(), "beside": beside.map(|turns| turns.sum.to_json()), "under": attacked.sum.to_json(),
    });
    (report, is_right)
}

/// A daemon, the tokens of its honest clients, and that of the client that attacks it.
struct Target {
    daemon: Daemon,
    tokens: Vec<String>,
    bad: String,
    _lockhouse: Lockhouse,
}

impl Target {
    /// Starts a daemon. Its hostile upstream server does what the file `order` says.
    fn start(attack: Attack, order: &Path, clients: usize) -> Fallible<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/flooding.py");
        let server = json!({"command": "python3", "args": [script, order]});
        let mut lockhouse = Lockhouse::with_fixture().policy(POLICY).servers_entry("hostile", server);
        if attack.needs_tls() {
            lockhouse = lockhouse.config("[http.tls]\ncertificate = \"daemon.pem\"\nkey = \"daemon.key\"\n");
            for name in ["daemon.pem", "daemon.key"] {
                let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(CERTIFICATE).with_file_name(name);
                let file = lockhouse.file(&format!("config/lockhouse/{name}"), std::fs::read(source)?);
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))?;
            }
        }
        let bad = token(&lockhouse, "hostile")?;
        let names = (0..clients).map(|number| format!("client-{number}"));
        let tokens = names.map(|name| token(&lockhouse, &name)).collect::<Fallible<Vec<String>>>()?;
        Ok(Self { daemon: Daemon::start(&lockhouse)?, tokens, bad, _lockhouse: lockhouse })
    }
}

/// The results of the turns of one kind.
#[derive(Default)]
struct Turns {
    sum: Summary,
    /// The p99 of each turn.
    p99_ms: Vec<f64>,
    /// The largest resident memory of the daemon's processes.
    engine_kib: u64,
    front_kib: u64,
}

impl Turns {
    /// Measures the honest clients during one turn, a period of the duration `long`.
    async fn measure(&mut self, figures: &Figures, long: Duration, daemon: &Daemon) {
        figures.take();
        let until = Instant::now() + long;
        let engine = daemon.process.0.id();
        while Instant::now() < until {
            tokio::time::sleep(SAMPLE_INTERVAL).await;
            self.engine_kib = self.engine_kib.max(remains(engine).0);
            let front = front_of(engine).map_or(0, |front| remains(front.pid).0);
            self.front_kib = self.front_kib.max(front);
        }
        let turn = figures.take();
        self.p99_ms.push(turn.p99_ms);
        self.sum = std::mem::take(&mut self.sum).and(turn);
    }

    /// Returns the middle of the ratios of the p99 of these turns to that of the others at the same time.
    fn p99_ratio(&self, others: &Self) -> f64 {
        let mut ratios: Vec<f64> =
            self.p99_ms.iter().zip(&others.p99_ms).map(|(own, other)| own / other).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let middle = [ratios.len().saturating_sub(1) / 2, ratios.len() / 2];
        middle.map(|index| ratios.get(index).copied().unwrap_or_default()).iter().sum::<f64>() / 2.0
    }
}
