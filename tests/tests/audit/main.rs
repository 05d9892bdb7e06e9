//! The audit log: what is in it, what is not, and what is told of one that somebody changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod administration;
mod commands;
mod events;
mod failures;
mod kills;
mod ocsf;
mod processes;
mod programs;
mod size;
mod tampering;
mod values;

use lockhouse_tests::{Finished, Lockhouse};

/// A policy with a tool for each decision that needs no person.
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"delete_everything\"]\n";

const ADD: &str = "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']";

fn verify(lockhouse: &Lockhouse) -> Finished {
    lockhouse.run(&["audit", "verify"])
}

/// Asserts that nothing is said against the log.
fn assert_verified(lockhouse: &Lockhouse) -> String {
    let finished = verify(lockhouse);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("verified: "), "{finished:?}");
    finished.stdout
}
