//! Tests of processes that are killed while they forward the audit log, and of several processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lockhouse_tests::{HttpAnswer, kill, wait_until};
use serde_json::json;

use super::{Collector, adds, forwarding_to, report};
use crate::audit::assert_verified;

#[tokio::test]
async fn a_process_that_is_killed_after_a_delivery_and_before_it_is_noted_delivers_again() {
    let victim = Arc::new(AtomicU32::new(0));
    let to_kill = victim.clone();
    let collector = Collector::start(move |request| {
        // The first request with the record of a call is the last thing that this process does.
        if request.body.contains("\\\"event\\\":\\\"call\\\"") {
            let pid = to_kill.swap(0, Ordering::SeqCst);
            if pid > 0 {
                kill(pid);
            }
        }
        HttpAnswer::json(200, &json!({}))
    });
    let lockhouse = forwarding_to(&collector.destination());
    let session = lockhouse.serve().await;
    victim.store(session.pid(), Ordering::SeqCst);
    // Its answer may or may not arrive.
    let running = session.start_code("python", crate::audit::ADD);
    wait_until("it is killed", async || (victim.load(Ordering::SeqCst) == 0).then_some(())).await;
    let _ = running.await;
    drop(session);
    // The collector kills before it notes what it has received.
    wait_until("control: records arrived before", async || {
        (!collector.received.texts().is_empty()).then_some(())
    })
    .await;
    let session = lockhouse.serve().await;
    wait_until("everything arrives", async || collector.received.has_all(&lockhouse).ok()).await;
    session.close().await;
    assert_eq!(collector.received.has_all(&lockhouse), Ok(()));
    assert!(collector.received.duplicates() > 0, "what was not noted is delivered again");
    assert_verified(&lockhouse);
}

#[tokio::test]
async fn one_process_forwards_the_records_of_all_and_another_one_takes_over() {
    let collector = Collector::accepting();
    let lockhouse = forwarding_to(&collector.destination());
    let (one, other) = (lockhouse.serve().await, lockhouse.serve().await);
    tokio::join!(adds(&one, 3), adds(&other, 3));
    wait_until("everything arrives", async || collector.received.has_all(&lockhouse).ok()).await;
    assert_eq!(collector.received.duplicates(), 0, "only one process forwards");
    let forwarding = report(&lockhouse)["pid"].as_u64().unwrap();
    let (killed, remaining) = if forwarding == u64::from(one.pid()) { (one, other) } else { (other, one) };
    assert_eq!(forwarding, u64::from(killed.pid()));
    killed.kill().await;
    adds(&remaining, 3).await;
    wait_until("the other process forwards", async || {
        collector.received.has_all(&lockhouse).ok()?;
        (report(&lockhouse)["pid"] == remaining.pid()).then_some(())
    })
    .await;
    remaining.close().await;
    assert_eq!(collector.received.has_all(&lockhouse), Ok(()));
    assert!(report(&lockhouse)["pid"].is_null(), "{}", report(&lockhouse));
}

#[tokio::test]
async fn a_command_delivers_its_own_records_and_those_of_earlier_commands() {
    let collector = Collector::accepting();
    let lockhouse = forwarding_to(&collector.destination());
    assert_eq!(lockhouse.run(&["token", "create", "desk"]).status, Some(0));
    assert!(collector.received.is_empty(), "a command without calls does not forward");
    let answer = lockhouse.answer("python", crate::audit::ADD);
    assert_eq!(answer["value"], 3, "{answer}");
    assert_eq!(collector.received.has_all(&lockhouse), Ok(()), "delivered at the end");
    assert!(collector.received.texts().iter().any(|text| text.contains("\"event\":\"token\"")));
}
