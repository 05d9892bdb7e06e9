//! Tests of failures while `lockhouse serve` runs: killed processes, AI clients that disconnect, and hostile workers.
//! Each request must get exactly one answer, and later requests must succeed.

mod concurrency;
mod endurance;
mod failing_upstreams;
mod hostile_workers;
mod killed_processes;
mod recursion;
mod shutdown;
mod zygote_renewal;

use lockhouse_tests::{Lockhouse, Process, Session, children, wait_until};

/// Waits until the audit log has records of at least `count` upstream calls.
async fn wait_for_calls(lockhouse: &Lockhouse, count: usize) {
    wait_until("the calls go out", async || {
        let records = lockhouse.audit();
        (records.iter().filter(|record| record["event"] == "call").count() >= count).then_some(())
    })
    .await;
}

fn is_upstream(process: &Process) -> bool {
    process.command.contains("fixture-server")
}

fn is_guard(process: &Process) -> bool {
    process.command.starts_with("lockhouse guard ")
}

/// Returns the zygotes: all child processes of the supervisor that are neither upstream servers nor the guard, which ends
/// these.
fn zygotes(session: &Session) -> Vec<Process> {
    children(session.pid()).into_iter().filter(|child| !is_upstream(child) && !is_guard(child)).collect()
}

fn workers(session: &Session) -> Vec<Process> {
    zygotes(session).iter().flat_map(|zygote| children(zygote.pid)).collect()
}
