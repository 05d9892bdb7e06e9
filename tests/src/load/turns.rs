//! Turns without the hostile client, beside a process that computes where a CPU is free, and with the hostile client, one after
//! the other, so that all are measured under the same circumstances.
//!
//! What is beside the clients is a process of its own of this same program, with the least priority, since its own work would
//! be another machine's.

use std::process::Command;
use std::time::{Duration, Instant};

use super::daemon::Ending;
use super::figures::{Cpus, Figures, Summary, row};
use super::{Fallible, hostile};

/// One turn of one kind, at most.
const TURN: Duration = Duration::from_secs(60);
/// After a hostile turn: what it left behind ends.
const REST: Duration = Duration::from_secs(5);
/// How long a process that computes does so, and rests: what the configuration lets the hostile client's runs do.
const SPELL: Duration = Duration::from_secs(1);
/// For the process beside, in its environment: what it does.
const TOKEN: &str = "LOAD_HOSTILE_TOKEN";
const COMPUTES: &str = "LOAD_COMPUTES";

/// In a process that was started to be beside the clients: is so, until it is killed.
pub(crate) async fn be_beside() {
    if let Ok(token) = std::env::var(TOKEN) {
        hostile::hurt(std::env::args().nth(1).unwrap_or_default(), token).await;
    }
    while std::env::var_os(COMPUTES).is_some() {
        let began = Instant::now();
        while began.elapsed() < SPELL {}
        std::thread::sleep(SPELL);
    }
}

/// The sum of each kind of turn, for as long as was asked for.
pub(crate) async fn take(long: Duration, host: &str, bad: &str, figures: &Figures) -> Fallible<[Summary; 3]> {
    let mut sums: [Summary; 3] = Default::default();
    let mut p99s: [Vec<f64>; 3] = Default::default();
    let each = TURN.min(long / 3);
    let turns = long.as_secs() / (3 * each.as_secs()).max(1);
    for turn in 1..=turns {
        let (without, quiet) = watch(figures, each, None).await;
        let (beside, idle) = watch(figures, each, Some(compute()?)).await;
        let (with, hostile) = watch(figures, each, Some(hurt(host, bad)?)).await;
        println!(
            "  turn {turn:>2}  p99 ms: without {:>6.1}, beside idle work {:>6.1}, with a hostile one {:>6.1}  \
             stolen %: {quiet:>4.1} {idle:>4.1} {hostile:>4.1}",
            without.p99_ms, beside.p99_ms, with.p99_ms
        );
        for ((sum, p99s), of_turn) in sums.iter_mut().zip(&mut p99s).zip([without, beside, with]) {
            p99s.push(of_turn.p99_ms);
            *sum = std::mem::take(sum).and(of_turn);
        }
        tokio::time::sleep(REST).await;
    }
    if turns > 0 {
        let middles = p99s.map(middle);
        let names = ["turns without a hostile one", "turns beside idle work", "turns with a hostile one"];
        for (name, sum) in names.into_iter().zip(&sums) {
            row(name, sum);
        }
        for kind in [1, 2] {
            println!(
                "p99 of {}: {:.2} times that without; of its middle turn {:.2} times",
                names[kind],
                sums[kind].p99_ms / sums[0].p99_ms,
                middles[kind] / middles[0]
            );
        }
    }
    Ok(sums)
}

/// One turn beside a process, and how much of the CPUs the host took, in percent.
async fn watch(figures: &Figures, long: Duration, beside: Option<Ending>) -> (Summary, f64) {
    let began = Cpus::now();
    figures.take();
    tokio::time::sleep(long).await;
    let summary = figures.take();
    drop(beside);
    (summary, began.stolen_percent())
}

fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_unstable_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or_default()
}

/// What has nothing to do with Lockhouse and computes where a CPU is free: what that alone costs the clients here.
fn compute() -> Fallible<Ending> {
    let mut command = Command::new("chrt");
    command.args(["--idle", "0"]).arg(std::env::current_exe()?).env(COMPUTES, "1");
    Ok(Ending(command.spawn()?))
}

/// The hostile client.
fn hurt(host: &str, token: &str) -> Fallible<Ending> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(std::env::current_exe()?).arg(host).env(TOKEN, token);
    Ok(Ending(command.spawn()?))
}
