//! The table of two builds that are measured in turns, so that what the machine does meanwhile meets both alike.
//!
//! Each row is taken in rounds. In a round each build has its share of the row's runs; the one that begins changes from round
//! to round. A build beside itself shows how far a ratio is from 1 without a reason.

use std::time::{Duration, Instant};

use super::Fallible;
use super::build::Build;
use super::client::Client;
use super::rows::{Row, first_calls, trivial, warm};
use super::times::{AT_A_TIME, EXECUTIONS, Times};

const ROUNDS: usize = 10;
/// The indexes of the two builds.
const OLD: usize = 0;
const NEW: usize = 1;

pub(crate) fn measure(old: &Build, new: &Build) -> Fallible<()> {
    println!("lockhouse at the MCP stdio boundary, two builds in turns; times in ms, ratios are new / old\n");
    println!("old: {}\nnew: {}\n", old.path().display(), new.path().display());
    println!(
        "{:55}  {:>7}  {:>7}  {:>5}  {:>7}  {:>7}  {:>5}  {:>6}",
        "", "p50 old", "p50 new", "ratio", "p95 old", "p95 new", "ratio", "runs"
    );
    let builds = [old, new];
    for row in trivial("first result after start") {
        let times = in_turns(|build| {
            let started = Instant::now();
            builds[build].start()?.run(&row)?;
            Ok(vec![started.elapsed()])
        })?;
        print(&row, times)?;
    }
    let mut clients = [old.start()?, new.start()?];
    for client in &mut clients {
        for row in first_calls() {
            client.run(&row)?;
        }
    }
    for row in warm() {
        let times = in_turns(|build| clients[build].times(&row, row.runs.div_ceil(ROUNDS)))?;
        print(&row, times)?;
    }
    println!("\nexecutions of 1+1 per second, {AT_A_TIME} at a time");
    for row in trivial("1+1") {
        let [old, new] = per_second(&mut clients, &row)?;
        println!("  {}: old {old:.0}, new {new:.0}, ratio {:.3}", row.language, new / old);
    }
    Ok(())
}

/// What `run` gives in all rounds, for each build.
fn in_turns(mut run: impl FnMut(usize) -> Fallible<Vec<Duration>>) -> Fallible<[Vec<Duration>; 2]> {
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
    let times = in_turns(|build| Ok(vec![clients[build].together(row, AT_A_TIME, runs)?]))?;
    let rate = |times: Vec<Duration>| (runs * ROUNDS) as f64 / times.iter().sum::<Duration>().as_secs_f64();
    Ok(times.map(rate))
}

fn print(row: &Row, times: [Vec<Duration>; 2]) -> Fallible<()> {
    let [old, new] = times.map(Times::of);
    let (old, new) = (old.ok_or("a row without runs")?, new.ok_or("a row without runs")?);
    let [p50, p95] = [50, 95].map(|percent| {
        let (old, new) = (old.percentile(percent), new.percentile(percent));
        format!("{old:>7.2}  {new:>7.2}  {:>5.3}", new / old)
    });
    println!("{:55}  {p50}  {p95}  {:>6}", row.name, new.count());
    Ok(())
}
