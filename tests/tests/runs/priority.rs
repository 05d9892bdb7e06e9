//! Runs that compute for long: who shares a Lockhouse with others gives way to them.

use lockhouse_tests::{Lockhouse, Table, descendants, ensure, equal, wait_until};
use serde_json::json;

use crate::session;

/// Linux's numbers of scheduling policies.
const OTHER: u64 = 0;
const IDLE: u64 = 5;
/// Two threads that never stop, besides those of the interpreter.
const SPIN: &str = "\
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
spin()
";

/// How each thread of each process below this one is scheduled.
fn scheduled(ancestor: u32) -> Vec<Vec<u64>> {
    let below = descendants(ancestor).into_iter().map(|process| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        threads.filter_map(|thread| policy(&thread.ok()?.path().join("stat"))).collect()
    });
    below.collect()
}

fn policy(stat: &std::path::Path) -> Option<u64> {
    let stat = std::fs::read_to_string(stat).ok()?;
    // The 41st field: the third is the first after the name.
    stat.rsplit_once(") ")?.1.split(' ').nth(38)?.parse().ok()
}

#[tokio::test]
async fn a_long_run_of_one_among_many_gives_way_with_all_its_threads() {
    let lockhouse = Lockhouse::new();
    let token = lockhouse.run(&["token", "create", "one"]).stdout.trim_end().to_owned();
    let door = lockhouse.door().await;
    let visitor = door.visitor(Some(&token));
    let run = json!({"language": "python", "code": SPIN, "timeout_s": 5});
    let mut table = Table::new("how runs are scheduled");
    let running = tokio::spawn(async move { visitor.call("run_code", run).await });
    let all = wait_until("it gives way", async || {
        let all = scheduled(door.pid());
        all.iter().any(|threads| threads.contains(&IDLE)).then_some(all)
    });
    let (giving_way, others): (Vec<_>, Vec<_>) =
        all.await.into_iter().partition(|threads| threads.contains(&IDLE));
    table.row("one worker gives way", equal(&giving_way.len(), &1));
    table.row(
        "with all its threads",
        ensure(
            giving_way.concat().len() >= 2 && giving_way.concat().iter().all(|of| *of == IDLE),
            "one does not",
        ),
    );
    table.row(
        "and no other process",
        ensure(others.concat().iter().all(|of| *of == OTHER), "another one does"),
    );
    table
        .row("it goes on to its end", equal(&running.await.expect("an answer")["status"], &json!("timeout")));
    table.finish();
}

#[tokio::test]
async fn who_has_it_for_themselves_gives_way_to_nobody() {
    let lockhouse = Lockhouse::new();
    let session = session(&lockhouse, lockhouse_tests::Session::latest()).await;
    let second = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass";
    let running = session.start_code("python", second);
    let mut table = Table::new("how a run over standard input is scheduled");
    let mut looks = 0;
    wait_until("it is over", async || {
        let all = scheduled(session.pid()).concat();
        assert!(all.iter().all(|of| *of == OTHER), "{all:?}");
        looks += 1;
        running.is_finished().then_some(())
    })
    .await;
    table.row("it was looked at often", ensure(looks > 10, looks));
    let answer = lockhouse_tests::structured(running.await.expect("an answer"));
    let took = answer["stats"]["wall_ms"].as_f64();
    table.row("control: it was a long one", ensure(took.is_some_and(|took| took >= 1_000.0), &answer));
    table.finish();
}
