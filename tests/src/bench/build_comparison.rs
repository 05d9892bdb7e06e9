//! Measures two builds of Lockhouse in alternation, so that other load on the machine affects both alike.
//!
//! Each program is measured in rounds. In a round each build does its share of the program's runs; the build that
//! begins alternates from round to round. Comparing a build with itself shows how far a ratio deviates from 1 by
//! chance.

use std::time::{Duration, Instant};

use super::Fallible;
use super::build::Build;
use super::client::Client;
use super::cpu_time::CpuTime;
use super::percentiles::{EXECUTIONS, IN_FLIGHT, Times};
use super::workloads::{Row, first_calls, trivial, warm};

const ROUNDS: usize = 10;
/// The index of the older build in arrays of two builds.
const OLD: usize = 0;
/// The index of the newer build in arrays of two builds.
const NEW: usize = 1;

pub(crate) fn measure(old: &Build, new: &Build) -> Fallible<()> {
    println!("lockhouse at the MCP stdio boundary, two builds in turns; times in ms, ratios are new / old\n");
    println!("old: {}\nnew: {}\n", old.path().display(), new.path().display());
    println!(
        "{:62}  {:>7}  {:>7}  {:>5}  {:>7}  {:>7}  {:>5}  {:>6}  {:>7}  {:>7}  {:>5}",
        "",
        "p50 old",
        "p50 new",
        "ratio",
        "p95 old",
        "p95 new",
        "ratio",
        "runs",
        "CPU old",
        "CPU new",
        "ratio"
    );
    let builds = [old, new];
    for row in trivial("first result after start") {
        let times = alternate(|build| {
            let started = Instant::now();
            builds[build].start()?.run(&row)?;
            Ok(vec![started.elapsed()])
        })?;
        print(&row, times, None)?;
    }
    let mut clients = [old.start()?, new.start()?];
    for client in &mut clients {
        for row in first_calls() {
            client.run(&row)?;
        }
    }
    for row in warm() {
        let mut cpu = [CpuTime::default(); 2];
        let times = alternate(|build| {
            let before = clients[build].cpu_time();
            let times = clients[build].times(&row, row.runs.div_ceil(ROUNDS));
            cpu[build] = cpu[build] + (clients[build].cpu_time() - before);
            times
        })?;
        print(&row, times, Some(cpu))?;
    }
    println!("\nexecutions of 1+1 per second, {IN_FLIGHT} at a time");
    for row in trivial("1+1") {
        let before = [OLD, NEW].map(|build| clients[build].cpu_time());
        let [old, new] = per_second(&mut clients, &row)?;
        println!("  {}: old {old:.0}, new {new:.0}, ratio {:.3}", row.language, new / old);
        let used = [OLD, NEW].map(|build| (clients[build].cpu_time() - before[build]).per_run(EXECUTIONS));
        for (position, of) in ["supervisor", "workers"].into_iter().enumerate() {
            let [old, new] = used.map(|used| used[position]);
            println!("    CPU of the {of}, ms per run: old {old:.3}, new {new:.3}, ratio {:.3}", new / old);
        }
    }
    Ok(())
}

/// Measures both builds in each of `ROUNDS` rounds. `run` gets the index of a build and returns the times that it
/// measured with this build. Returns the times of all rounds for each build.
fn alternate(mut run: impl FnMut(usize) -> Fallible<Vec<Duration>>) -> Fallible<[Vec<Duration>; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let order = if round % 2 == 0 { [OLD, NEW] } else { [NEW, OLD] };
        for build in order {
            let of = if build == OLD { "old" } else { "new" };
            times[build].extend(run(build).map_err(|error| format!("the {of} build: {error}"))?);
        }
    }
    Ok(times)
}

fn per_second(clients: &mut [Client; 2], row: &Row) -> Fallible<[f64; 2]> {
    let runs = EXECUTIONS.div_ceil(ROUNDS);
    let times = alternate(|build| Ok(vec![clients[build].together(row, IN_FLIGHT, runs)?]))?;
    let rate = |times: Vec<Duration>| (runs * ROUNDS) as f64 / times.iter().sum::<Duration>().as_secs_f64();
    Ok(times.map(rate))
}

/// Prints one row of the table: percentiles of `times`, the measured times of each build, and the CPU time of each
/// build's supervisor in ms per run. `cpu` is the CPU time of each build during all its runs; `None` if not measured.
fn print(row: &Row, times: [Vec<Duration>; 2], cpu: Option<[CpuTime; 2]>) -> Fallible<()> {
    let [old, new] = times.map(Times::new);
    let (old, new) = (old.ok_or("a row without runs")?, new.ok_or("a row without runs")?);
    let [p50, p95] = [50, 95].map(|percent| {
        let (old, new) = (old.percentile(percent), new.percentile(percent));
        format!("{old:>7.2}  {new:>7.2}  {:>5.3}", new / old)
    });
    let runs = new.count();
    let cpu = cpu.map(|cpu| cpu.map(|cpu| cpu.per_run(runs)[0]));
    let cpu = cpu.map_or(String::new(), |[old, new]| format!("{old:>7.3}  {new:>7.3}  {:>5.3}", new / old));
    println!("{:62}  {p50}  {p95}  {runs:>6}  {cpu}", row.name);
    Ok(())
}
