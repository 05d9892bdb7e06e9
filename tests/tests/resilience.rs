//! Failures while Lockhouse serves: killed processes, disconnecting AI clients, hostile workers. Each request gets one
//! answer, and later requests succeed.

mod concurrency;
mod endurance;
mod failing_upstreams;
mod hostile_workers;
mod killed_processes;
mod recursion;
mod shutdown;
mod zygote_renewal;

use lockhouse_tests::{Lockhouse, Process, Session, children, wait_until};

/// Waits until the audit log has at least `count` calls.
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

/// Returns the fork servers: the supervisor's children that are not upstream servers.
fn zygotes(session: &Session) -> Vec<Process> {
    children(session.pid()).into_iter().filter(|child| !is_upstream(child)).collect()
}

fn workers(session: &Session) -> Vec<Process> {
    zygotes(session).iter().flat_map(|zygote| children(zygote.pid)).collect()
}
