//! Measures one build of Lockhouse and prints a table of the times.
//!
//! The rows that the gateway can serve are measured with both in turns, so that other load on the machine affects both
//! alike.

use std::time::{Duration, Instant};

use super::Fallible;
use super::build::Build;
use super::client::Client;
use super::cpu_time::CpuTime;
use super::gateway::Gateway;
use super::percentiles::{EXECUTIONS, IN_FLIGHT, Times, millis};
use super::workloads::{Row, first_calls, selected, trivial, warm};

/// The number of turns in which a row is measured.
const TURNS: usize = 10;

/// The measured times of one row, and the CPU time of all of them.
#[derive(Default)]
struct Measured {
    times: Vec<Duration>,
    cpu: CpuTime,
}

pub(crate) fn measure(build: &Build, gateway: &Gateway, only: &str) -> Fallible<()> {
    println!("lockhouse at the MCP stdio boundary; times and CPU times per run in ms");
    println!(
        "ratio: p50 of lockhouse, divided by that of a gateway without any checks, which is measured in turns\n"
    );
    println!(
        "{:62}  {:>7}  {:>7}  {:>7}  {:>6}  {:>10}  {:>7}  {:>7}  {:>5}",
        "", "p50", "p95", "p99", "runs", "supervisor", "workers", "gateway", "ratio"
    );
    for row in selected(trivial("first result after start"), only) {
        let started = Instant::now();
        build.start()?.run(&row)?;
        println!("{:62}  {:>7.1}", row.name, millis(started.elapsed()));
    }
    let (mut lockhouse, mut gateway) = (build.start()?, gateway.start()?);
    for row in first_calls() {
        lockhouse.run(&row)?;
    }
    for row in selected(warm(), only) {
        let in_turn = |client: &mut Client| client.times(&row, row.runs / TURNS);
        let [lockhouse, gateway] = in_turns(&row, [&mut lockhouse, &mut gateway], in_turn)?;
        print_row(&row, lockhouse, gateway)?;
    }
    println!("\nexecutions of 1+1 per second, {IN_FLIGHT} at a time");
    for row in selected(trivial("1+1"), only) {
        let in_turn = |client: &mut Client| Ok(vec![client.together(&row, IN_FLIGHT, EXECUTIONS / TURNS)?]);
        let measured = in_turns(&row, [&mut lockhouse, &mut gateway], in_turn)?;
        let [rate, gateway_rate] = measured
            .each_ref()
            .map(|measured| EXECUTIONS as f64 / measured.times.iter().sum::<Duration>().as_secs_f64());
        let [supervisor, workers] = measured[0].cpu.per_run(EXECUTIONS);
        println!(
            "  {}: {rate:.0}, gateway {gateway_rate:.0}, ratio {:.2}; CPU supervisor {supervisor:.3}, workers {workers:.2} ms per run",
            row.name,
            rate / gateway_rate
        );
    }
    Ok(())
}

/// Measures a row with Lockhouse and the gateway in turns; without the gateway if it does not serve the row.
fn in_turns(
    row: &Row,
    mut clients: [&mut Client; 2],
    in_turn: impl Fn(&mut Client) -> Fallible<Vec<Duration>>,
) -> Fallible<[Measured; 2]> {
    let mut measured = [Measured::default(), Measured::default()];
    let count = if Gateway::serves(row) { 2 } else { 1 };
    for _ in 0..TURNS {
        for (client, measured) in clients.iter_mut().zip(&mut measured).take(count) {
            let before = client.cpu_time();
            measured.times.extend(in_turn(client)?);
            measured.cpu = measured.cpu + (client.cpu_time() - before);
        }
    }
    Ok(measured)
}

fn print_row(row: &Row, lockhouse: Measured, gateway: Measured) -> Fallible<()> {
    let times = Times::new(lockhouse.times).ok_or("a row without runs")?;
    let [supervisor, workers] = lockhouse.cpu.per_run(times.count());
    let [p50, p95, p99] = [50, 95, 99].map(|percent| times.percentile(percent));
    let (name, runs) = (&row.name, times.count());
    print!("{name:62}  {p50:>7.2}  {p95:>7.2}  {p99:>7.2}  {runs:>6}  {supervisor:>10.3}  {workers:>7.2}");
    if let Some(times) = Times::new(gateway.times) {
        let gateway = times.percentile(50);
        print!("  {gateway:>7.2}  {:>5.2}", p50 / gateway);
    }
    println!();
    Ok(())
}
