//! Tests that the audit commands read logs of any size line by line, in bounded memory.

use std::fmt::Write as _;

use lockhouse_tests::{Lockhouse, Table, ensure, is_full};
use nix::sys::resource::{UsageWho, getrusage};

use crate::audit::ADD;

/// The size of the log: in both forms, larger than the memory that a command may need for it.
const MIB: usize = 24;
const MIB_OF_FULL_FORM: usize = 48;
/// The maximum memory in KiB that a command may need for a large audit log, in addition to its memory for a small one.
const MORE_KIB_MAX: i64 = 16 * 1024;

/// Returns the largest resident memory, in KiB, of all child processes of this test so far. Each test runs in a process
/// of its own, so other tests have no effect on the number.
fn largest_child_kib() -> i64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss()
}

#[test]
fn audit_commands_read_large_logs_in_bounded_memory() {
    let lockhouse = Lockhouse::with_fixture();
    let answer = lockhouse.answer("python", ADD);
    let execution = answer["execution"].as_str().unwrap().to_owned();
    // The same record is repeated. The log does not verify, and the failure uses no additional memory either.
    let segment = &lockhouse.segments()[0];
    let call = std::fs::read_to_string(segment).unwrap().lines().nth(2).unwrap().to_owned();
    let commands: [&[&str]; 6] = [
        &["audit", "verify"],
        &["audit", "query", "--tool", "none"],
        &["audit", "query"],
        &["audit", "show", &execution],
        &["audit", "tail", "-n", "50"],
        &["audit", "export", "--format", "ocsf"],
    ];
    let before: Vec<_> = commands.iter().map(|command| lockhouse.run(command).status).collect();
    assert!(before.iter().all(|status| *status == Some(0)), "{before:?}");
    let without = largest_child_kib();
    let mib = if is_full() { MIB_OF_FULL_FORM } else { MIB };
    let bytes = mib * 1024 * 1024;
    let mut text = String::with_capacity(bytes + call.len());
    while text.len() < bytes {
        writeln!(text, "{call}").unwrap();
    }
    std::fs::write(segment, text).unwrap();
    let mut table = Table::new(&format!("memory for {mib} MiB of records"));
    for command in commands {
        let mut started = lockhouse.command(command);
        let status =
            started.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status().unwrap();
        let more = largest_child_kib() - without;
        let name = format!("{} ({status}): {more} KiB more", command.join(" "));
        table.row(name, ensure(more < MORE_KIB_MAX, more));
    }
    table.finish();
}
