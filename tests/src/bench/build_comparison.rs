//! Measures two builds of Lockhouse in alternation, so that other load on the machine affects both alike.
//!
//! There are ten pairs. In each pair, both builds are started, the new one twice, and the gateway, and each row of the table
//! is measured with all four, one directly after the other, in an order that changes from pair to pair. The ratio of a row is
//! the median of the ratios of its pairs. The ratio of the new build's two processes shows how far a ratio deviates from 1 by
//! chance.

use std::time::{Duration, Instant};

use super::Fallible;
use super::build::Build;
use super::client::Client;
use super::cpu_time::CpuTime;
use super::gateway::Gateway;
use super::percentiles::{EXECUTIONS, IN_FLIGHT, Times};
use super::workloads::{Row, first_calls, selected, trivial, warm};

const PAIRS: usize = 10;
/// Number of starts of each process that a pair measures.
const STARTS: usize = 5;
/// The old build, the new build, the new build again, and the gateway.
const PROCESSES: usize = 4;
const GATEWAY: usize = 3;

/// One row of the table.
struct Comparison {
    name: String,
    /// The median time in ms of each process, for each pair. That of the gateway is NaN if it does not serve the row.
    medians: Vec<[f64; PROCESSES]>,
    cpu: [CpuTime; PROCESSES],
}

pub(crate) fn measure(old: &Build, new: &Build, gateway: &Gateway, only: &str) -> Fallible<()> {
    println!("lockhouse at the MCP stdio boundary, two builds in turns: {PAIRS} pairs of processes\n");
    println!("old: {}\nnew: {}\n", old.path().display(), new.path().display());
    let mut comparisons = Vec::new();
    for pair in 0..PAIRS {
        eprintln!("pair {} of {PAIRS}", pair + 1);
        let rows = measure_pair([old, new, new], gateway, order(pair), only)?;
        if comparisons.is_empty() {
            comparisons = rows;
        } else {
            for (comparison, row) in comparisons.iter_mut().zip(rows) {
                comparison.medians.extend(row.medians);
                for (sum, cpu) in comparison.cpu.iter_mut().zip(row.cpu) {
                    *sum = *sum + cpu;
                }
            }
        }
    }
    println!(
        "{:62}  {:>7}  {:>7}  {:>6}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}",
        "median times in ms; ratios are medians of pairs",
        "old",
        "new",
        "ratio",
        "itself",
        "differ",
        "CPU",
        "gateway",
        "old/it",
        "new/it"
    );
    comparisons.iter().for_each(print);
    Ok(())
}

/// Returns the order in which the processes of a pair are measured.
fn order(pair: usize) -> [usize; PROCESSES] {
    let mut order = [0, 1, 2, GATEWAY];
    order.rotate_left(pair % PROCESSES);
    if pair % 2 == 1 {
        order.reverse();
    }
    order
}

fn measure_pair(
    builds: [&Build; GATEWAY],
    gateway: &Gateway,
    order: [usize; PROCESSES],
    only: &str,
) -> Fallible<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    let builds_only = order.iter().copied().filter(|process| *process != GATEWAY);
    for row in selected(trivial("first result after start"), only) {
        comparisons.push(compare(&row.name, builds_only.clone(), |process| {
            let start = || {
                let started = Instant::now();
                builds[process].start()?.run(&row)?;
                Ok(started.elapsed())
            };
            let times = (0..STARTS).map(|_| start()).collect::<Fallible<_>>()?;
            Ok((times, CpuTime::default()))
        })?);
    }
    let [old, new, again] = builds;
    let mut clients = [old.start()?, new.start()?, again.start()?, gateway.start()?];
    for client in &mut clients[..GATEWAY] {
        for row in first_calls() {
            client.run(&row)?;
        }
    }
    let serving = |row: &Row| {
        let serves = Gateway::serves(row);
        order.into_iter().filter(move |process| serves || *process != GATEWAY)
    };
    for row in selected(warm(), only) {
        comparisons.push(compare(&row.name, serving(&row), |process| {
            with_cpu_time(&mut clients[process], |client| client.times(&row, row.runs.div_ceil(PAIRS)))
        })?);
    }
    for row in selected(trivial("1+1"), only) {
        let name = format!("{}, {IN_FLIGHT} at a time, {} runs", row.name, EXECUTIONS / PAIRS);
        comparisons.push(compare(&name, serving(&row), |process| {
            with_cpu_time(&mut clients[process], |client| {
                Ok(vec![client.together(&row, IN_FLIGHT, EXECUTIONS / PAIRS)?])
            })
        })?);
    }
    Ok(comparisons)
}

fn with_cpu_time(
    client: &mut Client,
    run: impl FnOnce(&mut Client) -> Fallible<Vec<Duration>>,
) -> Fallible<(Vec<Duration>, CpuTime)> {
    let before = client.cpu_time();
    let times = run(client)?;
    Ok((times, client.cpu_time() - before))
}

/// Measures the processes in `order`. `run` gets the index of a process, and returns its times and its CPU time.
fn compare(
    name: &str,
    order: impl Iterator<Item = usize>,
    mut run: impl FnMut(usize) -> Fallible<(Vec<Duration>, CpuTime)>,
) -> Fallible<Comparison> {
    let mut medians = [f64::NAN; PROCESSES];
    let mut cpu = [CpuTime::default(); PROCESSES];
    for process in order {
        let (times, used) = run(process).map_err(|error| format!("{name}, process {process}: {error}"))?;
        medians[process] = Times::new(times).ok_or("a row without runs")?.percentile(50);
        cpu[process] = used;
    }
    Ok(Comparison { name: name.to_owned(), medians: vec![medians], cpu })
}

fn print(comparison: &Comparison) {
    let Comparison { name, medians, cpu } = comparison;
    let [old, new] = [0, 1].map(|process| median(medians.iter().map(|pair| pair[process])));
    // Both processes of the new build stand for it, so that the old build is compared with as many runs as possible.
    let ratio = median(medians.iter().flat_map(|[old, new, again, _]| [new / old, again / old]));
    let itself = median(medians.iter().map(|[_, new, again, _]| again / new));
    let [old_cpu, new_cpu, again_cpu, _] = cpu.map(|cpu| cpu.supervisor.as_secs_f64());
    let cpu =
        if old_cpu > 0.0 { format!("{:>6.3}", (new_cpu + again_cpu) / 2.0 / old_cpu) } else { String::new() };
    print!(
        "{name:62}  {old:>7.2}  {new:>7.2}  {ratio:>6.3}  {itself:>6.3}  {:>6.3}  {cpu:>6}",
        ratio - itself
    );
    let gateway = median(medians.iter().map(|pair| pair[GATEWAY]));
    if !gateway.is_nan() {
        let old = median(medians.iter().map(|pair| pair[0] / pair[GATEWAY]));
        let new =
            median(medians.iter().flat_map(|[_, new, again, gateway]| [new / gateway, again / gateway]));
        print!("  {gateway:>7.2}  {old:>6.2}  {new:>6.2}");
    }
    println!();
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}
