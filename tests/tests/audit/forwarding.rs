//! Tests that the audit log is forwarded as it is written: to receivers that this test has written, which are away, slow or
//! hostile.

mod credentials;
mod delivery_bound;
mod hostile_receivers;
mod journal;
mod process_deaths;
mod received;
mod sink_forwarding;
mod syslog_server;
mod tls_front;

use lockhouse_tests::{HttpAnswer, HttpRequest, HttpServer, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::Value;

use crate::audit::{ADD, assert_verified};
use crate::http::tls::certificate_file;
use journal::Journal;
use received::Received;
use syslog_server::SyslogServer;
use tls_front::TlsFront;

/// Returns a test directory with a fixture server whose log is forwarded to a destination. The destination's certificate
/// must be the test certificate `daemon`.
fn forwarding_to(destination: &str) -> Lockhouse {
    with_audit(&format!("forward = [\"{destination}\"]\nforward_ca = \"{}\"\n", ca().display()))
}

/// Returns a test directory with a fixture server and these keys of `[audit]`.
fn with_audit(keys: &str) -> Lockhouse {
    Lockhouse::with_fixture().config(&format!("[audit]\n{keys}"))
}

fn ca() -> std::path::PathBuf {
    certificate_file("daemon.pem")
}

/// A collector that keeps what it receives, and answers each request as the test says.
struct Collector {
    server: HttpServer,
    received: Received,
}

impl Collector {
    fn start(answer: impl Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static) -> Self {
        let received = Received::default();
        let kept = received.clone();
        let server = HttpServer::start(move |request| {
            let answer = answer(request);
            if matches!(answer, HttpAnswer::Full(200, ..)) {
                kept.add_otlp(&request.message());
            }
            answer
        });
        Self { server, received }
    }

    fn accepting() -> Self {
        Self::start(|_| HttpAnswer::json(200, &serde_json::json!({})))
    }

    fn destination(&self) -> String {
        format!("otlp+{}", self.server.url("/v1/logs"))
    }
}

/// Returns what `lockhouse audit forward --json` says about the only destination.
fn report(lockhouse: &Lockhouse) -> Value {
    lockhouse.run(&["audit", "forward", "--json"]).json()[0].clone()
}

async fn adds(session: &lockhouse_tests::Session, count: usize) {
    for _ in 0..count {
        let answer = session.run_code("python", ADD).await;
        assert_eq!(answer["value"], 3, "{answer}");
    }
}

#[tokio::test]
async fn each_kind_of_receiver_gets_every_record_in_its_order() {
    let mut table = Table::new("records as receivers have them");
    let collector = Collector::accepting();
    let front = TlsFront::start("daemon", &collector.server.url("")).await;
    let behind_tls = format!("otlp+https://{}/v1/logs", front.address());
    let (journal, syslog) = (Journal::start(), SyslogServer::start("daemon").await);
    let plain = Collector::accepting();
    for (kind, destination, received) in [
        ("journald", journal.destination(), journal.received()),
        ("syslog over TLS", syslog.destination(), syslog.received()),
        ("OTLP", plain.destination(), plain.received.clone()),
        ("OTLP over TLS", behind_tls, collector.received.clone()),
    ] {
        let lockhouse = forwarding_to(&destination);
        let session = lockhouse.serve().await;
        adds(&session, 3).await;
        let early = wait_until("records arrive while the process runs", async || {
            (!received.is_empty()).then_some(())
        });
        early.await;
        let ended = session.close().await;
        table.row(format!("{kind}: the process ends"), equal(ended.status, Some(0)));
        table.row(format!("{kind}: every record"), received.has_all(&lockhouse));
        let reported = lockhouse.run(&["audit", "forward"]);
        let said = reported.stdout.contains("all records delivered") && reported.status == Some(0);
        table.row(format!("{kind}: the report"), ensure(said, &reported));
        assert_verified(&lockhouse);
    }
    table.finish();
}

#[tokio::test]
async fn ocsf_events_have_the_record_and_its_place() {
    let (journal, syslog) = (Journal::start(), SyslogServer::start("daemon").await);
    let destinations = format!("\"{}\", \"{}\"", journal.destination(), syslog.destination());
    let keys = format!(
        "forward = [{destinations}]\nforward_format = \"ocsf\"\nforward_ca = \"{}\"\n",
        ca().display()
    );
    let lockhouse = with_audit(&keys);
    let session = lockhouse.serve().await;
    adds(&session, 1).await;
    session.close().await;
    let mut table = Table::new("records as OCSF events");
    for (kind, received) in [("journald", journal.received()), ("syslog", syslog.received())] {
        table.row(format!("{kind}: every record"), received.has_all(&lockhouse));
        let calls = received.texts().into_iter().filter(|text| text.contains("\"class_uid\":6003")).count();
        table.row(format!("{kind}: API activity"), ensure(calls >= 3, received.texts()));
    }
    table.finish();
}

#[tokio::test]
async fn a_receiver_that_was_away_gets_everything_and_no_call_waits_for_it() {
    let mut syslog = SyslogServer::start("daemon").await;
    syslog.stop().await;
    let lockhouse = forwarding_to(&syslog.destination());
    let session = lockhouse.serve().await;
    adds(&session, 5).await;
    session.wait_for_log("cannot be delivered to").await;
    assert!(syslog.received().is_empty(), "control: it is away");
    let reported = report(&lockhouse);
    assert!(reported["error"].as_str().is_some_and(|error| error.contains("cannot connect")), "{reported}");
    assert!(reported["lag_s"].as_f64().is_some_and(|lag| lag > 0.0), "{reported}");
    // Nobody waits for it at the end either, and the records of this process stay.
    session.kill().await;
    let session = lockhouse.serve().await;
    adds(&session, 5).await;
    syslog.restart().await;
    let received = syslog.received();
    wait_until("everything arrives", async || received.has_all(&lockhouse).ok()).await;
    wait_until("the report is good", async || report(&lockhouse)["error"].is_null().then_some(())).await;
    session.close().await;
    assert!(received.has_all(&lockhouse).is_ok(), "{:?}", received.has_all(&lockhouse));
}

#[tokio::test]
async fn segments_that_were_removed_before_their_delivery_are_recorded_and_the_record_is_delivered() {
    let mut syslog = SyslogServer::start("daemon").await;
    syslog.stop().await;
    let lockhouse = forwarding_to(&syslog.destination());
    let session = lockhouse.serve().await;
    adds(&session, 1).await;
    session.wait_for_log("cannot be delivered to").await;
    session.close().await;
    let removed = lockhouse.segments()[0].clone();
    let session = lockhouse.serve().await;
    session.wait_for_log("cannot be delivered to").await;
    std::fs::remove_file(&removed).unwrap();
    adds(&session, 1).await;
    syslog.restart().await;
    let received = syslog.received();
    let lost = wait_until("the loss is recorded", async || {
        lockhouse.records().into_iter().find(|record| record["event"] == "delivery")
    });
    let lost = lost.await;
    let name = removed.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        (&lost["outcome"], &lost["of_segment"], &lost["first"]),
        (&"lost".into(), &name.into(), &0.into())
    );
    assert_eq!(lost["destination"], syslog.destination());
    wait_until("the record of the loss arrives", async || {
        received.texts().iter().any(|text| text.contains("\"outcome\":\"lost\"")).then_some(())
    })
    .await;
    session.close().await;
    assert_eq!(received.has_all(&lockhouse), Ok(()));
    let printed = lockhouse.run(&["audit", "query", "--event", "delivery"]).stdout;
    assert!(printed.contains("lost") && printed.contains(&syslog.destination()), "{printed}");
}

#[tokio::test]
async fn a_segment_that_was_changed_after_its_delivery_is_recorded_and_the_receiver_keeps_the_original() {
    let collector = Collector::accepting();
    let lockhouse = forwarding_to(&collector.destination());
    let session = lockhouse.serve().await;
    adds(&session, 1).await;
    wait_until("everything arrives", async || collector.received.has_all(&lockhouse).ok()).await;
    let segment = lockhouse.segments()[0].clone();
    let text = std::fs::read_to_string(&segment).unwrap();
    let last = text.lines().last().unwrap();
    let forged = last.replace("\"status\":\"ok\"", "\"status\":\"no\"");
    assert_ne!(last, forged, "{last}");
    // The length stays, so the process goes on at the right place; its next record has the hash of the original.
    std::fs::write(&segment, text.replace(last, &forged)).unwrap();
    adds(&session, 1).await;
    session.close().await;
    assert_eq!(lockhouse.run(&["audit", "verify"]).status, Some(1), "control: the change is one");
    assert!(collector.received.texts().iter().any(|text| text == last), "the receiver has the original");
    let missing = collector.received.has_all(&lockhouse).unwrap_err();
    assert!(missing.contains("\"status\":\"no\""), "the rest was delivered: {missing}");
    // Shorter than what was delivered: it is delivered again, and this is recorded.
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    file.set_len(text.find('\n').unwrap() as u64 + 1).unwrap();
    let session = lockhouse.serve().await;
    let changed = wait_until("the change is recorded", async || {
        lockhouse.records().into_iter().find(|record| record["event"] == "delivery")
    });
    let changed = changed.await;
    let name = segment.file_name().unwrap().to_str().unwrap();
    assert_eq!((&changed["outcome"], &changed["of_segment"]), (&"changed".into(), &name.into()), "{changed}");
    session.close().await;
}
