//! Tests of several Lockhouse processes that write to one audit directory, while a command reads from it.

use lockhouse_tests::{Lockhouse, wait_until};
use serde_json::Value;

use crate::audit::{ADD, assert_verified};

#[tokio::test]
async fn two_concurrent_processes_write_separate_chains() {
    let lockhouse = Lockhouse::with_fixture();
    let (one, other) = (lockhouse.serve().await, lockhouse.serve().await);
    for _ in 0..5 {
        let answers = tokio::join!(one.run_code("python", ADD), other.run_code("python", ADD));
        assert_eq!((&answers.0["value"], &answers.1["value"]), (&3.into(), &3.into()));
    }
    assert_eq!(lockhouse.segments().len(), 2);
    // While both processes run, verification finds no fault in segments that grow.
    let reported = assert_verified(&lockhouse);
    assert_eq!(reported.matches("is not closed").count(), 2, "{reported}");
    let ended = tokio::join!(one.close(), other.close());
    assert_eq!((ended.0.status, ended.1.status), (Some(0), Some(0)));
    let reported = assert_verified(&lockhouse);
    assert!(
        !reported.contains("not closed") && reported.contains("0 of them after the last signature"),
        "{reported}"
    );
    let printed = lockhouse.run(&["audit", "query", "--json"]).stdout;
    let times: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["time"].clone()).collect();
    assert!(times.is_sorted_by_key(|time| time.as_str().map(str::to_owned)), "{times:?}");
    assert_eq!(times.len(), lockhouse.records().len());
}

#[tokio::test]
async fn concurrent_first_starts_create_one_signing_key() {
    let lockhouse = Lockhouse::with_fixture();
    let running: Vec<_> = (0..4)
        .map(|_| {
            let mut command = lockhouse.command(&["run", "-c", "1", "--language", "typescript"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(lockhouse.segments().len(), 4);
    assert_verified(&lockhouse);
}

#[tokio::test]
async fn audit_tail_follows_records_of_other_processes() {
    let lockhouse = Lockhouse::with_fixture();
    let _ = lockhouse.answer("python", ADD);
    let path = lockhouse.path("followed");
    let mut command = lockhouse.command(&["audit", "tail", "-f", "-n", "2"]);
    let mut follower = command.stdout(std::fs::File::create(&path).unwrap()).spawn().unwrap();
    let followed = || std::fs::read_to_string(&path).unwrap();
    let lines = async |count: usize| {
        wait_until("the records are shown", async || (followed().lines().count() >= count).then_some(()))
            .await;
    };
    lines(2).await;
    let session = lockhouse.serve().await;
    let running = session.start_code("python", "from mcp_tools.fixture import slow\nslow(ms=3000)");
    // The earlier records, the execution, and the call in flight.
    lines(4).await;
    assert!(!running.is_finished());
    running.await.unwrap().unwrap();
    lines(6).await;
    let text = followed();
    for reported in ["end", "fixture.add", "fixture.slow", "python"] {
        assert!(text.contains(reported), "{reported}: {text}");
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
}
