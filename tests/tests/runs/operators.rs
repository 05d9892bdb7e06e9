//! `lockhouse runs`: an operator sees what runs, and ends it.

use lockhouse_tests::{Session, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::{ENDLESS, begun, left_running, lockhouse, outcome, session};

#[tokio::test]
async fn an_operator_sees_what_runs_and_ends_it() {
    let lockhouse = lockhouse("[runs]\nwait_seconds = 0.2\n[pool]\nidle = 1\nrunning = 1\n");
    let session = session(&lockhouse, Session::latest()).await;
    let mut table = Table::new("lockhouse runs");
    let nothing = lockhouse.run(&["runs", "list"]);
    table.row("control: nothing runs", ensure(nothing.stdout == "Nothing runs.\n", &nothing));
    let (running, waiting) = (begun(&session, ENDLESS).await, left_running(&session, "'its turn'").await);
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
    let ended = lockhouse.run(&["runs", "end", id]);
    table.row("ended", ensure(ended.status == Some(0) && ended.stdout.contains(id), &ended));
    table.row("it says so", equal(&outcome(&session, &running).await["status"], &json!("cancelled")));
    table.row("the next one", equal(&outcome(&session, &waiting).await["value"], &json!("its turn")));
    for _ in 0..2 {
        left_running(&session, ENDLESS).await;
    }
    let all = lockhouse.run(&["runs", "end", "--all"]).stdout;
    table.row("all of them", equal(all.lines().count(), 2));
    wait_until("nothing runs", async || {
        (lockhouse.run(&["runs", "list"]).stdout == "Nothing runs.\n").then_some(())
    })
    .await;
    table.finish();
}
