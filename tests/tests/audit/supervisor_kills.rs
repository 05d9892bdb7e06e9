//! Kills the supervisor at random moments under load. The audit log must still have every call that an upstream server
//! executed, and `lockhouse audit verify` must find no fault in it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use lockhouse_tests::{Lockhouse, Session, is_full, wait_until};
use serde_json::Value;

use crate::audit::verify;

/// The number of times that the test kills the supervisor: first the default, then the number with
/// `LOCKHOUSE_TESTS=full`.
const KILLS: [usize; 2] = [20, 500];
/// The number of programs that make calls concurrently before each kill.
const PROGRAMS: usize = 4;
/// The maximum number of calls that the test waits for before it kills the supervisor. The actual number is random.
const CALLS_MAX: u64 = 40;
/// The maximum pause, in microseconds, between the last awaited call and the kill. The pause is random, and one call
/// takes less time than the maximum, so kills occur at every stage of a call.
const PAUSE_MICROS_MAX: u64 = 3_000;
const SEED: u64 = 0x10c4_0005;

/// Returns a Python program that makes 100,000 calls, numbered in ascending order from `first`. No other program uses
/// these numbers.
fn program(first: u64) -> String {
    format!("from mcp_tools.fixture import add\nfor i in range({first}, {first} + 100000): add(a=i, b=1)")
}

/// Returns the numbers of the calls in the notes that the upstream server writes before it executes a call. Reading
/// begins at byte `start` of the notes.
fn executed_since(lockhouse: &Lockhouse, start: u64) -> Vec<u64> {
    let mut notes = String::new();
    if let Ok(mut file) = std::fs::File::open(lockhouse.path("notes")) {
        file.seek(SeekFrom::Start(start)).unwrap();
        file.read_to_string(&mut notes).unwrap();
    }
    let number = |line: &str| serde_json::from_str::<Value>(line).ok()?["arguments"]["a"].as_u64();
    notes.split_inclusive('\n').filter(|line| line.ends_with('\n')).filter_map(number).collect()
}

/// Returns the numbers of the calls in the audit log, each with the number of its audit records.
fn recorded(lockhouse: &Lockhouse) -> BTreeMap<u64, usize> {
    let printed = lockhouse.run(&["audit", "query", "--json", "--decision", "allow", "--tool", "add"]);
    assert_eq!(printed.status, Some(0), "{}", printed.stderr);
    let mut recorded = BTreeMap::new();
    for line in printed.stdout.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        *recorded.entry(record["values"]["a"].as_u64().unwrap()).or_default() += 1;
    }
    recorded
}

async fn round(lockhouse: &Lockhouse, number: u64, random: &mut fastrand::Rng) {
    let session = Session::connect(lockhouse.command(&["serve"]), Session::latest()).await;
    let before = std::fs::metadata(lockhouse.path("notes")).map_or(0, |notes| notes.len());
    let first = |program: u64| (number * PROGRAMS as u64 + program) * 1_000_000;
    let running: Vec<_> =
        (0..PROGRAMS as u64).map(|of| session.start_code("python", &program(first(of)))).collect();
    let wanted = random.u64(1..=CALLS_MAX) as usize;
    wait_until("calls are made", async || (executed_since(lockhouse, before).len() >= wanted).then_some(()))
        .await;
    // A random pause, so that kills hit every phase of a call.
    tokio::time::sleep(Duration::from_micros(random.u64(..PAUSE_MICROS_MAX))).await;
    session.kill().await;
    for running in running {
        let _ = running.await;
    }
}

#[tokio::test]
async fn every_call_is_recorded_before_it_is_made_even_if_the_supervisor_is_killed() {
    let kills = KILLS[usize::from(is_full())];
    let lockhouse = Lockhouse::with_fixture().config("[audit]\nvalues = true\n");
    let flag = format!("--notes={}", lockhouse.path("notes").display());
    let lockhouse = lockhouse.server("fixture", &[&flag]);
    let mut random = fastrand::Rng::with_seed(SEED);
    for number in 0..kills as u64 {
        round(&lockhouse, number, &mut random).await;
    }
    let finished = verify(&lockhouse);
    let executed: BTreeSet<u64> = executed_since(&lockhouse, 0).into_iter().collect();
    let recorded = recorded(&lockhouse);
    let unrecorded: Vec<&u64> = executed.iter().filter(|number| !recorded.contains_key(number)).collect();
    let open = recorded.keys().filter(|number| !executed.contains(number)).count();
    println!(
        "{kills} kills: {} calls were made and {} are recorded ({open} of these were not made any more); {} without a \
         record; {}",
        executed.len(),
        recorded.len(),
        unrecorded.len(),
        finished.stdout.lines().last().unwrap_or_default()
    );
    assert!(unrecorded.is_empty(), "made without a record: {unrecorded:?}");
    assert!(recorded.values().all(|count| *count == 1), "recorded twice: {recorded:?}");
    assert!(executed.len() >= kills, "control: calls were made");
    assert_eq!(lockhouse.segments().len(), kills, "control: each process has its segment");
    assert_eq!(finished.status, Some(0), "{}", finished.stdout);
}
