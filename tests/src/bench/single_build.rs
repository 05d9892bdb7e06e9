//! Measures one build of Lockhouse and prints a table of the times.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Fallible;
use super::build::Build;
use super::client::Client;
use super::percentiles::{EXECUTIONS, IN_FLIGHT, Times, millis};
use super::workloads::{Row, first_calls, floor, selected, trivial, warm};

/// Measures the build. For comparison, also measures the program `floor_program` (`bench-floor`), which does only the
/// minimum of a run.
pub(crate) fn measure(build: &Build, floor_program: &Path, only: &str) -> Fallible<()> {
    println!("lockhouse at the MCP stdio boundary; times and CPU times per run in ms\n");
    println!(
        "{:62}  {:>7}  {:>7}  {:>7}  {:>6}  {:>10}  {:>7}",
        "", "p50", "p95", "p99", "runs", "supervisor", "workers"
    );
    for row in selected(trivial("first result after start"), only) {
        let started = Instant::now();
        build.start()?.run(&row)?;
        println!("{:62}  {:>7.1}", row.name, millis(started.elapsed()));
    }
    let mut client = Client::start(Command::new(floor_program))?;
    for row in selected(floor(), only) {
        print_row(&mut client, &row)?;
    }
    let mut client = build.start()?;
    for row in first_calls() {
        client.run(&row)?;
    }
    for row in selected(warm(), only) {
        print_row(&mut client, &row)?;
    }
    println!("\nexecutions of 1+1 per second, {IN_FLIGHT} at a time");
    for row in selected(trivial("1+1"), only) {
        let before = client.cpu_time();
        let took = client.together(&row, IN_FLIGHT, EXECUTIONS)?;
        let [supervisor, workers] = (client.cpu_time() - before).per_run(EXECUTIONS);
        let rate = EXECUTIONS as f64 / took.as_secs_f64();
        println!(
            "  {}: {rate:.0}; CPU supervisor {supervisor:.3}, workers {workers:.2} ms per run",
            row.name
        );
    }
    Ok(())
}

fn print_row(client: &mut Client, row: &Row) -> Fallible<()> {
    let before = client.cpu_time();
    let times = Times::new(client.times(row, row.runs)?).ok_or("a row without runs")?;
    let [supervisor, workers] = (client.cpu_time() - before).per_run(row.runs);
    let [p50, p95, p99] = [50, 95, 99].map(|percent| times.percentile(percent));
    let (name, runs) = (&row.name, times.count());
    println!("{name:62}  {p50:>7.2}  {p95:>7.2}  {p99:>7.2}  {runs:>6}  {supervisor:>10.3}  {workers:>7.2}");
    Ok(())
}
