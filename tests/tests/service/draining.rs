//! SIGTERM: what is under way comes to its end, and nothing begins.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::{OPEN, get, is_ready, running, sleeping};

#[tokio::test]
async fn what_runs_is_answered_and_what_comes_is_told_to_come_again() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let door = lockhouse.door().await;
    is_ready(&door).await;
    let (modern, legacy) = (door.visitor(None), door.session(None, "2025-11-25").await);
    let run = |of: &lockhouse_tests::Visitor| {
        let of = of.clone();
        tokio::spawn(async move { of.run_code("python", &sleeping(2.0)).await })
    };
    let under_way = [run(&modern), run(&legacy)];
    running(&door, 2).await;
    let mut stream = legacy.listen().await;
    door.signal(Signal::SIGTERM);
    door.says("draining: 2 runs").await;
    let mut table = Table::new("while it drains");
    let (status, words) = get(&door, "/ready").await;
    table.row("not ready", ensure(status == 503 && words.contains("drains"), &words));
    table.row("it lives", equal(get(&door, "/live").await.0, 200));
    for (name, visitor) in [("2026-07-28", &modern), ("2025-11-25", &legacy)] {
        let message = visitor.calling("run_code", json!({"language": "python", "code": "1"}));
        let reply = visitor.post(&message).await;
        let answer = reply.answer();
        table.row(format!("{name}: a run is refused"), equal(reply.status, 503));
        table.row(
            format!("{name}: when to retry"),
            ensure(reply.header("retry-after").parse::<u64>().is_ok(), &reply),
        );
        table.row(
            format!("{name}: in words"),
            ensure(
                answer["error"]["message"].as_str().is_some_and(|words| words.contains("restarting")),
                &reply,
            ),
        );
        table.row(format!("{name}: of its request"), equal(&answer["id"], &message["id"]));
        let kept = visitor.call("get_result", json!({"handle": "0".repeat(32)})).await;
        table.row(
            format!("{name}: results can be had"),
            ensure(kept["error"]["message"].as_str().is_some_and(|words| words.contains("no result")), &kept),
        );
    }
    for run in under_way {
        let answer = run.await.unwrap();
        table.row("what was under way has its answer", equal(&answer["value"], &json!("done")));
    }
    let rest = wait_until("the stream ends", async || Some(stream.next().await)).await;
    table.row("streams end", equal(rest, None));
    let ended = door.ended().await;
    table.row("exit status", equal(ended.status, Some(0)));
    table.row("the log says nothing of a fault", ensure(!ended.stderr.contains("ERROR"), &ended.stderr));
    table.finish();
}

#[tokio::test]
async fn what_takes_longer_than_it_may_is_stopped_and_told() {
    let lockhouse = Lockhouse::with_fixture().config(&format!("{OPEN}[service]\ndrain_seconds = 0.3\n"));
    let door = lockhouse.door().await;
    is_ready(&door).await;
    let mut table = Table::new("runs that are stopped");
    let mut waiting = Vec::new();
    for (version, visitor) in
        [("2026-07-28", door.visitor(None)), ("2025-06-18", door.session(None, "2025-06-18").await)]
    {
        let run = tokio::spawn(async move { visitor.run_code("python", &sleeping(60.0)).await });
        waiting.push((version, run));
    }
    running(&door, 2).await;
    door.signal(Signal::SIGTERM);
    for (version, run) in waiting {
        let answer = run.await.unwrap();
        table.row(format!("{version}: status"), equal(&answer["status"], &json!("cancelled")));
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{version}: in words"), ensure(told.contains("Lockhouse is ending"), &answer));
    }
    table.row("exit status", equal(door.ended().await.status, Some(0)));
    table.finish();
}

#[tokio::test]
async fn the_second_signal_ends_it_at_once() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let door = lockhouse.door().await;
    is_ready(&door).await;
    let visitor = door.visitor(None);
    let run = tokio::spawn(async move { visitor.run_code("python", &sleeping(25.0)).await });
    running(&door, 1).await;
    door.signal(Signal::SIGTERM);
    door.says("draining: 1 runs").await;
    door.signal(Signal::SIGTERM);
    assert_eq!(door.ended().await.status, Some(0));
    drop(run);
}

#[tokio::test]
async fn over_standard_input_nothing_is_waited_for() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let answer = session.run_code("python", "1").await;
    assert_eq!(answer["status"], "ok");
    let _run = session.start_code("python", &sleeping(25.0));
    let ended = session.terminate().await;
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}
