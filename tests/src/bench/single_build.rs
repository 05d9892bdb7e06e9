//! Measures one build of Lockhouse and prints a table of the times.

use std::time::Instant;

use super::Fallible;
use super::build::Build;
use super::percentiles::{EXECUTIONS, IN_FLIGHT, Times, millis};
use super::workloads::{first_calls, trivial, warm};

pub(crate) fn measure(build: &Build) -> Fallible<()> {
    println!("lockhouse at the MCP stdio boundary; times in ms\n");
    println!("{:55}  {:>7}  {:>7}  {:>7}  {:>6}", "", "p50", "p95", "p99", "runs");
    for row in trivial("first result after start") {
        let started = Instant::now();
        build.start()?.run(&row)?;
        println!("{:55}  {:>7.1}", row.name, millis(started.elapsed()));
    }
    let mut client = build.start()?;
    for row in first_calls() {
        client.run(&row)?;
    }
    for row in warm() {
        let times = Times::new(client.times(&row, row.runs)?).ok_or("a row without runs")?;
        let [p50, p95, p99] = [50, 95, 99].map(|percent| times.percentile(percent));
        println!("{:55}  {p50:>7.2}  {p95:>7.2}  {p99:>7.2}  {:>6}", row.name, times.count());
    }
    println!("\nexecutions of 1+1 per second, {IN_FLIGHT} at a time");
    for row in trivial("1+1") {
        let took = client.together(&row, IN_FLIGHT, EXECUTIONS)?;
        println!("  {}: {:.0}", row.language, EXECUTIONS as f64 / took.as_secs_f64());
    }
    Ok(())
}
