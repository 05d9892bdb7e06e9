//! Tests of `lockhouse status`, which shows the running Lockhouse processes of the user.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, wait_until};

use crate::telemetry::OPEN;

#[tokio::test]
async fn status_shows_every_lockhouse_process_of_the_user() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let none = lockhouse.run(&["status"]);
    let mut table = Table::new("lockhouse status");
    table.row(
        "none runs",
        ensure(none.status == Some(7) && none.stdout.contains("No Lockhouse"), none.transcript()),
    );
    let (daemon, session) = (lockhouse.daemon().await, lockhouse.serve().await);
    let shown = wait_until("both are ready", async || {
        let shown = lockhouse.run(&["status", "--json"]);
        let all: Vec<serde_json::Value> = serde_json::from_str(&shown.stdout).unwrap();
        (shown.status == Some(0) && all.len() == 2).then_some(all)
    })
    .await;
    let mut pids: Vec<u64> = shown.iter().filter_map(|one| one["pid"].as_u64()).collect();
    pids.sort_unstable();
    let mut expected = [u64::from(daemon.pid()), u64::from(session.pid())];
    expected.sort_unstable();
    table.row("over HTTP and over standard input", equal(pids, expected.to_vec()));
    let words = lockhouse.run(&["status"]).stdout;
    for part in [": ready", "python", "typescript", "fixture", "audit log writable", "of 16 running"] {
        table.row(format!("in words: {part}"), ensure(words.contains(part), &words));
    }
    table.finish();
}
