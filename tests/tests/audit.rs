//! The audit log: its events, the values that it omits, and the detection of tampering.

mod administration;
mod commands;
mod concurrent_processes;
mod disk_full;
mod events;
mod large_logs;
mod ocsf;
mod recorded_values;
mod stored_programs;
mod supervisor_kills;
mod tampering;

use lockhouse_tests::{CommandOutput, Lockhouse};

/// A policy with a tool for each decision that needs no approval.
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"delete_everything\"]\n";

const ADD: &str = "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']";

fn verify(lockhouse: &Lockhouse) -> CommandOutput {
    lockhouse.run(&["audit", "verify"])
}

/// Asserts that `lockhouse audit verify` finds no fault in the log, and returns its output.
fn assert_verified(lockhouse: &Lockhouse) -> String {
    let finished = verify(lockhouse);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("verified: "), "{finished:?}");
    finished.stdout
}
