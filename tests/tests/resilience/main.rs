//! Whatever dies, and whoever leaves: one answer, and what comes next works.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod deaths;
mod endings;
mod endurance;
mod nested;
mod parallel;
mod peers;
mod renewal;
mod upstreams;

use lockhouse_tests::{Lockhouse, Process, Session, children, wait_until};

/// Waits until so many calls have gone out.
async fn calls(lockhouse: &Lockhouse, count: usize) {
    wait_until("the calls go out", async || {
        let records = lockhouse.audit();
        (records.iter().filter(|record| record["event"] == "call").count() >= count).then_some(())
    })
    .await;
}

fn is_upstream(process: &Process) -> bool {
    process.command.contains("fixture-server")
}

/// The fork servers: the supervisor's children that are no upstream server.
fn zygotes(session: &Session) -> Vec<Process> {
    children(session.pid()).into_iter().filter(|child| !is_upstream(child)).collect()
}

fn workers(session: &Session) -> Vec<Process> {
    zygotes(session).iter().flat_map(|zygote| children(zygote.pid)).collect()
}
