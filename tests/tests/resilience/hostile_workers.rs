//! Tests of hostile native workers that violate the worker protocol. Each execution must get exactly one valid answer,
//! other executions must continue, and the supervisor must not leak memory.

mod behaviours;
mod counting_client;

use std::path::PathBuf;
use std::process::Command;

use lockhouse_tests::{Lockhouse, Table, ensure, equal, fixture_server, is_full};

use counting_client::Client;
use serde_json::Value;

const CONFIG: &str =
    "[limits]\noutput_kib = 64\ncalls = 50\nparallel_calls = 8\n[pool]\nidle = 2\nrunning = 8\n";
/// The maximum growth of the supervisor's resident memory after the warm-up rounds, in KiB. It equals the maximum size
/// of one message between supervisor and worker.
const GROWTH_KIB_MAX: u64 = 8 * 1024;
/// The maximum resident memory of the supervisor in KiB: 64 MiB for each of the eight running workers. This is enough
/// for one message of the worker in raw and in parsed form, the replies to the worker, and lines of an upstream server.
const PEAK_KIB_MAX: u64 = 8 * 64 * 1024;
/// The maximum length, in bytes, of the error message about a worker that could not be started. Lockhouse truncates the
/// text of the worker that the message quotes.
const MESSAGE_BYTES_MAX: usize = 4_100;
/// The number of rounds after the warm-up with `LOCKHOUSE_TESTS=full`. Each round runs all hostile behaviours at once.
const ROUNDS: usize = 20;
const ROUNDS_QUICK: usize = 3;
const WARM_UP_ROUNDS: usize = 2;

fn hostile_worker() -> PathBuf {
    fixture_server().with_file_name("hostile-peer")
}

fn with_worker(program: &std::path::Path) -> Lockhouse {
    with_worker_and_config(program, "")
}

fn with_worker_and_config(program: &std::path::Path, config: &str) -> Lockhouse {
    Lockhouse::with_fixture().config(&format!("{CONFIG}[javascript]\nworker = {program:?}\n{config}"))
}

/// Returns the field `line` of the supervisor's `/proc/PID/status`, in KiB: `VmRSS` is its resident memory, `VmHWM` the
/// peak of its resident memory.
fn memory_kib(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the supervisor lives");
    let line =
        status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':')).expect("the line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn every_behaviour_has_a_row() {
    let listed = Command::new(hostile_worker()).arg("--list").output().expect("a list");
    let mut listed: Vec<String> =
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
    let mut rows: Vec<&str> = behaviours::all().iter().map(|row| row.behaviour).collect();
    listed.sort_unstable();
    rows.sort_unstable();
    assert_eq!(listed, rows);
}

#[test]
fn each_hostile_behaviour_gets_one_answer_and_other_programs_run() {
    let lockhouse = with_worker(&hostile_worker());
    let mut client = Client::connect(lockhouse.command(&["serve"]));
    let mut table = Table::new("a hostile worker, and a working one");
    for row in behaviours::all() {
        let beside = client.start("typescript", "well for a while", None);
        let hostile = client.start("typescript", row.behaviour, row.timeout_s);
        let answers = client.wait_for(&[beside, hostile]);
        let (value, error) = (&answers[&beside]["value"], &answers[&beside]["error"]);
        let unharmed = ensure(value == 20, format!("the one beside it: {value} {error}"));
        table.row(row.behaviour, row.check(&answers[&hostile]).and(unharmed));
    }
    let python = client.run("python", "1 + 1");
    table.row("python afterwards", equal(&python["value"], &2.into()));
    let (stderr, not_one) = client.close();
    table.row("each request has exactly one answer", equal(not_one, vec![]));
    table.row("nothing panicked", ensure(!stderr.contains("panicked"), &stderr));
    let records = lockhouse.audit();
    let of = |event: &str| -> Vec<_> {
        let named = |record: &Value| (record["execution"].to_string(), record["call"].to_string());
        records.iter().filter(|record| record["event"] == event).map(named).collect()
    };
    let (calls, outcomes) = (of("call"), of("outcome"));
    let without = calls.iter().filter(|call| outcomes.iter().filter(|outcome| outcome == call).count() != 1);
    table.row(
        "each call has one outcome in the log",
        equal((calls.len() > 1_000, without.count()), (true, 0)),
    );
    let late = records.iter().any(|record| record["tool"] == "count");
    table.row("what is asked after the end is not done", equal(late, false));
    table.finish();
}

#[test]
fn rounds_of_concurrent_hostile_workers_leak_nothing() {
    let rounds = WARM_UP_ROUNDS + if is_full() { ROUNDS } else { ROUNDS_QUICK };
    // Stored results would hide a memory leak.
    let lockhouse = with_worker_and_config(&hostile_worker(), "[results]\nkeep_mib = 0\n");
    let mut client = Client::connect(lockhouse.command(&["serve"]));
    let rows = behaviours::all();
    let mut table = Table::new("rounds of every behaviour at once");
    let mut sizes = Vec::new();
    for round in 1..=rounds {
        let ids: Vec<usize> =
            rows.iter().map(|row| client.start("typescript", row.behaviour, row.timeout_s)).collect();
        let answers = client.wait_for(&ids);
        for (row, id) in rows.iter().zip(&ids) {
            if let Err(found) = row.check(&answers[id]) {
                table.row(format!("{}, round {round}", row.behaviour), Err(found));
            }
        }
        sizes.push(memory_kib(client.pid(), "VmRSS"));
    }
    let most = memory_kib(client.pid(), "VmHWM");
    println!("resident after each round, KiB: {sizes:?}; {most} at most");
    // The allocator returns memory irregularly, so a leak shows in the minimum of several rounds.
    let least = |sizes: &[u64]| sizes.iter().copied().min().unwrap_or(0);
    let (first, later) = sizes.split_at(WARM_UP_ROUNDS);
    let grown = least(&later[later.len() - ROUNDS_QUICK..]).saturating_sub(least(first));
    table.row(format!("{rounds} rounds grow it by {grown} KiB"), ensure(grown <= GROWTH_KIB_MAX, &sizes));
    table.row("it never holds more than is agreed", ensure(most <= PEAK_KIB_MAX, most));
    table.row("control: it took in a large message", ensure(most > sizes[0] + 8 * 1024, (most, &sizes)));
    let python = client.run("python", "1 + 1");
    table.row("python afterwards", equal(&python["value"], &2.into()));
    let (stderr, not_one) = client.close();
    table.row("each request has exactly one answer", equal(not_one, vec![]));
    table.row("nothing panicked", ensure(!stderr.contains("panicked"), &stderr));
    table.finish();
}

/// What a hostile worker does before it receives code: the name of the behaviour, and a text in the expected error
/// message.
const BEFORE_CODE: [(&str, &str); 11] = [
    ("refuses-to-start", "refuses to start"),
    ("ends-in-the-zygote", "exit status: 9"),
    ("has-a-long-name", "ended before it was ready"),
    ("prints-early", "it sent Output while sealing itself"),
    ("asks-early", "it sent Request while sealing itself"),
    ("is-done-early", "it sent Done while sealing itself"),
    ("is-ready-twice", "it sent Ready while running"),
    ("refuses-with-megabytes", "no"),
    ("sends-garbage-early", "exceeds the limit"),
    ("exits-early", "it ended with status 3"),
    ("crashes-early", "ended by signal 11"),
];

#[test]
fn a_worker_that_misbehaves_before_it_receives_code_is_reported_and_python_still_runs() {
    let mut table = Table::new("hostile behaviour before code is received");
    for (name, words) in BEFORE_CODE {
        let lockhouse = Lockhouse::new();
        let program = lockhouse.path(name);
        std::os::unix::fs::symlink(hostile_worker(), &program).expect("a name for it");
        let lockhouse = lockhouse.config(&format!("{CONFIG}[javascript]\nworker = {program:?}\n"));
        let mut client = Client::connect(lockhouse.command(&["serve"]));
        for _ in 0..2 {
            let answer = client.run("typescript", "well");
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            let told = message.contains(words) && message.len() <= MESSAGE_BYTES_MAX;
            let not_run = answer["status"] != "ok" && answer["value"].is_null();
            table.row(name, ensure(told && not_run, &answer));
        }
        let python = client.run("python", "1 + 1");
        let (stderr, not_one) = client.close();
        let goes_on = python["value"] == 2 && not_one.is_empty() && !stderr.contains("panicked");
        table.row(format!("{name}, and then python"), ensure(goes_on, (&python, &not_one, &stderr)));
    }
    table.finish();
}
