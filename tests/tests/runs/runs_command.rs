//! Tests of `lockhouse runs`, the command with which an operator lists and cancels runs.

use lockhouse_tests::{Session, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::runs::{ENDLESS, lockhouse, outcome, session, start_in_background, start_with_worker};

#[tokio::test]
async fn an_operator_lists_and_cancels_runs() {
    let lockhouse = lockhouse("[runs]\nwait_seconds = 0.2\n[pool]\nidle = 1\nrunning = 1\n");
    let session = session(&lockhouse, Session::latest()).await;
    let mut table = Table::new("lockhouse runs");
    let nothing = lockhouse.run(&["runs", "list"]);
    table.row("control: nothing runs", ensure(nothing.stdout == "No code is running.\n", &nothing));
    let (running, waiting) =
        (start_with_worker(&session, ENDLESS).await, start_in_background(&session, "'its turn'").await);
    let listed: Vec<Value> =
        serde_json::from_value(lockhouse.run(&["runs", "list", "--json"]).json()).unwrap();
    let states: Vec<&Value> = listed.iter().map(|run| &run["state"]).collect();
    table.row("in their order", equal(states, vec![&json!("running"), &json!("waiting")]));
    let known = listed.iter().all(|run| {
        run["client"] == "lockhouse-tests" && run["language"] == "python" && run["pid"] == session.pid()
    });
    table.row("whose", ensure(known, &listed));
    let shown = lockhouse.run(&["runs", "list"]).stdout;
    let id = listed[0]["execution"].as_str().unwrap();
    table.row("as a table", ensure(shown.contains(id) && shown.contains("waiting"), &shown));
    let unknown = lockhouse.run(&["runs", "end", "nothing"]);
    let told = unknown.status == Some(1) && unknown.stderr.contains("lockhouse runs list");
    table.row("one that is not there", ensure(told, &unknown));
    // Both ids begin with the time, so their first digits are equal.
    let several = lockhouse.run(&["runs", "end", &id[..2]]);
    let other = listed[1]["execution"].as_str().unwrap();
    let told = several.status == Some(1) && several.stderr.contains(id) && several.stderr.contains(other);
    table.row("an ambiguous prefix", ensure(told, &several));
    let ended = lockhouse.run(&["runs", "end", &id[..id.len() - 1]]);
    table.row("ended", ensure(ended.status == Some(0) && ended.stdout.contains(id), &ended));
    table.row("it says so", equal(&outcome(&session, &running).await["status"], &json!("cancelled")));
    table.row("the next one", equal(&outcome(&session, &waiting).await["value"], &json!("its turn")));
    for _ in 0..2 {
        start_in_background(&session, ENDLESS).await;
    }
    let all = lockhouse.run(&["runs", "end", "--all"]).stdout;
    table.row("all of them", equal(all.lines().count(), 2));
    wait_until("nothing runs", async || {
        (lockhouse.run(&["runs", "list"]).stdout == "No code is running.\n").then_some(())
    })
    .await;
    table.finish();
}
