//! Measures the honest clients of `load` in turns (periods of measurement) of three kinds: without the hostile client,
//! beside the computing process (background load that uses CPU time and sends no requests), and with the hostile
//! client. The turns alternate, so that all three kinds are measured under the same conditions.
//!
//! The hostile client and the computing process are separate processes of this program. The computing process is
//! scheduled as idle work, so it computes on free CPUs only. The hostile client has the lowest priority of normal
//! work (nice 19): in reality it computes on another machine, so here its computing must hardly slow down the server,
//! and it must not stop its attacks while the CPUs are busy.

use std::process::Command;
use std::time::{Duration, Instant};

use super::daemon::KilledChild;
use super::results::{Cpus, Figures, Summary, row};
use super::{Fallible, hostile_client};

/// The maximum duration of one turn. During a turn, the measured conditions stay the same.
const TURN: Duration = Duration::from_secs(60);
/// The pause after a turn with the hostile client, in which the effects of its attacks end.
const RECOVERY_PAUSE: Duration = Duration::from_secs(5);
/// How long the computing process, which is background load, keeps a CPU core busy, and how long it then sleeps, in
/// alternation. It thereby uses as much CPU time as the configuration permits to the hostile client's runs.
const SPIN_INTERVAL: Duration = Duration::from_secs(1);
/// The environment variable with the hostile client's token. A process that has this variable acts as the hostile
/// client.
const TOKEN: &str = "LOAD_HOSTILE_TOKEN";
/// The environment variable that makes a process of this program the computing process: it computes in an endless loop,
/// only to use CPU time as background load beside the honest clients. This shows how much CPU contention alone slows
/// them down. The value of the variable does not matter.
const COMPUTES: &str = "LOAD_COMPUTES";

/// If this process was started as the hostile client or as the computing process (background load), acts as such until
/// it is killed. Otherwise returns at once.
pub(crate) async fn run_if_background_process() {
    if let Ok(token) = std::env::var(TOKEN) {
        hostile_client::attack_all(std::env::args().nth(1).unwrap_or_default(), token).await;
    }
    while std::env::var_os(COMPUTES).is_some() {
        let began = Instant::now();
        while began.elapsed() < SPIN_INTERVAL {}
        std::thread::sleep(SPIN_INTERVAL);
    }
}

/// Measures alternating turns for the total duration `long`, and returns the merged results of each kind of turn:
/// without the hostile client, beside the computing process (background load), and with the hostile client. `host` is
/// the address of the server, `bad` the hostile client's token; the honest clients add their answers to `figures`.
pub(crate) async fn take(long: Duration, host: &str, bad: &str, figures: &Figures) -> Fallible<[Summary; 3]> {
    let mut sums: [Summary; 3] = Default::default();
    let mut p99s: [Vec<f64>; 3] = Default::default();
    let each = TURN.min(long / 3);
    let turns = long.as_secs() / (3 * each.as_secs()).max(1);
    for turn in 1..=turns {
        let (without, quiet) = watch(figures, each, None).await;
        let (beside, idle) = watch(figures, each, Some(compute()?)).await;
        let (with, hostile) = watch(figures, each, Some(attack_all(host, bad)?)).await;
        println!(
            "  turn {turn:>2}  p99 ms: without {:>6.1}, beside idle work {:>6.1}, with a hostile one {:>6.1}  \
             stolen %: {quiet:>4.1} {idle:>4.1} {hostile:>4.1}",
            without.p99_ms, beside.p99_ms, with.p99_ms
        );
        for ((sum, p99s), of_turn) in sums.iter_mut().zip(&mut p99s).zip([without, beside, with]) {
            p99s.push(of_turn.p99_ms);
            *sum = std::mem::take(sum).and(of_turn);
        }
        tokio::time::sleep(RECOVERY_PAUSE).await;
    }
    if turns > 0 {
        let middles = p99s.map(median);
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

/// Measures the honest clients, which add their answers to `figures`, during one turn: a period of the duration `long`.
/// If `beside` is a process, it runs during the turn and is then killed. Returns the results, and the CPU time that the
/// hypervisor took from this machine, in percent of the time of all CPUs.
async fn watch(figures: &Figures, long: Duration, beside: Option<KilledChild>) -> (Summary, f64) {
    let began = Cpus::now();
    figures.take();
    tokio::time::sleep(long).await;
    let summary = figures.take();
    drop(beside);
    (summary, began.stolen_percent())
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_unstable_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or_default()
}

/// Starts the computing process: background load that uses CPU time and sends no requests. It shows how much CPU
/// contention alone slows down the honest clients.
fn compute() -> Fallible<KilledChild> {
    let mut command = Command::new("chrt");
    command.args(["--idle", "0"]).arg(std::env::current_exe()?).env(COMPUTES, "1");
    Ok(KilledChild(command.spawn()?))
}

/// Starts the process that acts as the hostile client.
fn attack_all(host: &str, token: &str) -> Fallible<KilledChild> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(std::env::current_exe()?).arg(host).env(TOKEN, token);
    Ok(KilledChild(command.spawn()?))
}
