//! Tests of the audit log: which events it records, which values it omits, and how it detects tampering.

mod administration;
mod administrative_acts;
mod clock;
mod commands;
mod concurrent_processes;
mod disk_full;
mod events;
mod forwarding;
mod heads;
mod large_logs;
mod ocsf;
mod recorded_values;
mod request_ids;
mod sink;
mod stored_programs;
mod supervisor_kills;
mod tampering;
mod usage;

use lockhouse_tests::{CommandOutput, Lockhouse};

/// A policy that denies the fixture server's tool `delete_everything` and allows all its other tools. No call needs
/// approval.
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"delete_everything\"]\n";

const ADD: &str = "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']";

fn verify(lockhouse: &Lockhouse) -> CommandOutput {
    lockhouse.run(&["audit", "verify"])
}

/// Asserts that `lockhouse audit verify` finds no fault in the audit log, and returns the standard output of the
/// command.
fn assert_verified(lockhouse: &Lockhouse) -> String {
    let finished = verify(lockhouse);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("verified: "), "{finished:?}");
    finished.stdout
}
