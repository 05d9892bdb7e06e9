//! Tests of the CPU scheduling of runs: long runs in a daemon that several clients share get the scheduling policy
//! `SCHED_IDLE`.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use lockhouse_tests::{Lockhouse, Table, descendants, ensure, equal, wait_until};
use serde_json::json;

use crate::runs::session;

/// The numbers of Linux's scheduling policies: `OTHER` is `SCHED_OTHER`, and `IDLE` is `SCHED_IDLE`.
const OTHER: u64 = 0;
const IDLE: u64 = 5;
/// A Python program that loops forever in two threads.
const SPIN: &str = "\
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
spin()
";

/// Returns the scheduling policies of the threads of all descendant processes of `ancestor`: one list for each process.
fn scheduling_policies(ancestor: u32) -> Vec<Vec<u64>> {
    let below = descendants(ancestor).into_iter().map(|process| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        threads.filter_map(|thread| policy(&thread.ok()?.path().join("stat"))).collect()
    });
    below.collect()
}

/// Returns the ids of the descendant processes of `ancestor` that have the scheduling policy `SCHED_IDLE`.
fn idle_processes(ancestor: u32) -> BTreeSet<u32> {
    let stat = |pid: &u32| std::path::PathBuf::from(format!("/proc/{pid}/stat"));
    let below = descendants(ancestor).into_iter().map(|process| process.pid);
    below.filter(|pid| policy(&stat(pid)) == Some(IDLE)).collect()
}

fn policy(stat: &std::path::Path) -> Option<u64> {
    let stat = std::fs::read_to_string(stat).ok()?;
    // Field 41 of `/proc/PID/stat`. The text after the name starts with field 3.
    stat.rsplit_once(") ")?.1.split(' ').nth(38)?.parse().ok()
}

#[tokio::test]
async fn a_long_run_of_a_shared_daemon_is_deprioritized_with_all_its_threads() {
    let lockhouse = Lockhouse::new();
    let token = lockhouse.run(&["token", "create", "one"]).stdout.trim_end().to_owned();
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(Some(&token));
    let run = json!({"language": "python", "code": SPIN, "timeout_s": 5});
    let mut table = Table::new("how runs are scheduled");
    let running = tokio::spawn(async move { http_client.call("run_code", run).await });
    let all = wait_until("it gives way", async || {
        let all = scheduling_policies(daemon.pid());
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
async fn short_runs_without_pause_are_deprioritized_like_a_long_one() {
    let lockhouse = Lockhouse::new();
    let daemon = lockhouse.daemon().await;
    let http_clients = ["one", "other"].map(|name| {
        let token = lockhouse.run(&["token", "create", name]).stdout.trim_end().to_owned();
        daemon.http_client(Some(&token))
    });
    // Each run uses less CPU time than a rested client may, and the pauses are long enough for the next check.
    let code = "import time\nend = time.process_time() + 0.02\nwhile time.process_time() < end: pass\ntime.sleep(0.3)";
    let gives_way = async |http_client: &lockhouse_tests::HttpClient| {
        // The worker of the previous run may still be exiting.
        let before = idle_processes(daemon.pid());
        let run = json!({"language": "python", "code": code});
        let mut running = pin!(http_client.call("run_code", run));
        let mut after = BTreeSet::new();
        loop {
            match tokio::time::timeout(Duration::from_millis(20), &mut running).await {
                Ok(answer) => break assert_eq!(answer["status"], "ok", "{answer}"),
                Err(_) => after.extend(idle_processes(daemon.pid())),
            }
        }
        !after.is_subset(&before)
    };
    let mut table = Table::new("how short runs are scheduled");
    table.row("the first is not idle work", equal(&gives_way(&http_clients[0]).await, &false));
    wait_until("one of those that follow is", async || gives_way(&http_clients[0]).await.then_some(())).await;
    table.row("control: another client's is not", equal(&gives_way(&http_clients[1]).await, &false));
    table.finish();
}

#[tokio::test]
async fn an_unshared_lockhouse_is_never_deprioritized() {
    let lockhouse = Lockhouse::new();
    let session = session(&lockhouse, lockhouse_tests::Session::latest()).await;
    let second = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass";
    let running = session.start_code("python", second);
    let mut table = Table::new("how a run over standard input is scheduled");
    let mut looks = 0;
    wait_until("it is over", async || {
        let all = scheduling_policies(session.pid()).concat();
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
