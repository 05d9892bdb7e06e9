//! Tests with receivers that answer wrongly, endlessly or not at all: calls go on, nothing is lost, and a receiver that
//! behaves again gets everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_tests::{HttpAnswer, HttpRequest, HttpServer, Table, ensure, equal, wait_until};
use serde_json::json;

use super::received::Received;
use super::syslog_server::SyslogServer;
use super::tls_front::TlsFront;
use super::{Collector, adds, forwarding_to, report};
use crate::audit::assert_verified;

/// An answer to each request, until the collector behaves again.
type Misbehaviour = fn(&HttpRequest, &HttpServer) -> HttpAnswer;

/// More than any response may have.
const LONG_BYTES: usize = 1024 * 1024;

#[tokio::test]
async fn a_hostile_collector_costs_only_its_own_deliveries() {
    let elsewhere = HttpServer::start(|_| HttpAnswer::status(200));
    let misbehaviours: [(&str, &str, Misbehaviour); 8] = [
        ("status 500", "HTTP status 500", |_, _| HttpAnswer::status(500)),
        ("status 404", "HTTP status 404", |_, _| HttpAnswer::status(404)),
        ("status 401", "HTTP status 401", |_, _| HttpAnswer::status(401)),
        ("busy for a year", "busy", |_, _| HttpAnswer::status(503).with("Retry-After", "31536000")),
        ("a redirect", "HTTP status 307", |_, elsewhere| {
            HttpAnswer::status(307).with("Location", &elsewhere.url("/v1/logs"))
        }),
        ("a page", "not valid", |_, _| HttpAnswer::Full(200, Vec::new(), "<html>log in</html>".into())),
        ("a long response", "more than", |_, _| {
            HttpAnswer::Full(200, Vec::new(), format!("{{\"x\":\"{}\"}}", "x".repeat(LONG_BYTES)))
        }),
        ("no whole response", "not valid", |_, _| HttpAnswer::CutOff("data: {".into())),
    ];
    let mut table = Table::new("collectors that misbehave");
    for (name, words, misbehaviour) in misbehaviours {
        let behaves = Arc::new(AtomicBool::new(false));
        let (is_good, other) = (behaves.clone(), elsewhere.clone());
        let received = Received::default();
        let kept = received.clone();
        let server = HttpServer::start(move |request| {
            if is_good.load(Ordering::SeqCst) {
                kept.add_otlp(&request.message());
                return HttpAnswer::json(200, &json!({}));
            }
            misbehaviour(request, &other)
        });
        let lockhouse = forwarding_to(&format!("otlp+{}", server.url("/v1/logs")));
        let session = lockhouse.serve().await;
        adds(&session, 2).await;
        wait_until("the failure is reported", async || {
            report(&lockhouse)["error"].as_str().is_some_and(|error| error.contains(words)).then_some(())
        })
        .await;
        adds(&session, 2).await;
        // The process ends in time, although nothing was delivered.
        let ended = session.close().await;
        table.row(format!("{name}: the process ends"), equal(ended.status, Some(0)));
        let failing = lockhouse.run(&["audit", "forward"]);
        table.row(format!("{name}: the report"), equal(failing.status, Some(1)));
        behaves.store(true, Ordering::SeqCst);
        let session = lockhouse.serve().await;
        wait_until("everything arrives", async || received.has_all(&lockhouse).ok()).await;
        session.close().await;
        table.row(format!("{name}: every record"), received.has_all(&lockhouse));
        assert_verified(&lockhouse);
    }
    table.row("no redirect was followed", ensure(elsewhere.requests().is_empty(), elsewhere.requests()));
    table.finish();
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_no_call_and_no_end() {
    let collector = Collector::start(|_| HttpAnswer::NoAnswer);
    let lockhouse = forwarding_to(&collector.destination());
    let session = lockhouse.serve().await;
    wait_until("a request waits", async || {
        adds(&session, 1).await;
        (!collector.server.requests().is_empty()).then_some(())
    })
    .await;
    adds(&session, 5).await;
    assert_eq!(session.close().await.status, Some(0));
    assert_verified(&lockhouse);
}

#[tokio::test]
async fn a_syslog_server_that_closes_in_the_middle_of_a_message_loses_nothing() {
    let syslog = SyslogServer::start("daemon").await;
    syslog.close_after(3);
    let lockhouse = forwarding_to(&syslog.destination());
    let session = lockhouse.serve().await;
    adds(&session, 3).await;
    wait_until("the failure is reported", async || report(&lockhouse)["error"].as_str().map(str::to_owned))
        .await;
    syslog.close_after(0);
    let received = syslog.received();
    wait_until("everything arrives", async || received.has_all(&lockhouse).ok()).await;
    session.close().await;
    assert_eq!(received.has_all(&lockhouse), Ok(()));
    assert!(received.duplicates() > 0, "control: messages were sent again");
}

#[tokio::test]
async fn a_receiver_without_a_valid_certificate_gets_nothing() {
    let mut table = Table::new("certificates");
    for name in ["renewed", "expired"] {
        let syslog = SyslogServer::start(name).await;
        let collector = Collector::accepting();
        let front = TlsFront::start(name, &collector.server.url("")).await;
        for destination in [syslog.destination(), format!("otlp+https://{}", front.address())] {
            let kind = format!("{name}, {}", destination.split(':').next().unwrap_or_default());
            let lockhouse = forwarding_to(&destination);
            let session = lockhouse.serve().await;
            adds(&session, 1).await;
            let error = wait_until("the failure is reported", async || {
                report(&lockhouse)["error"].as_str().map(str::to_owned)
            });
            let error = error.await;
            table.row(format!("{kind}: why"), ensure(error.contains("certificate"), error));
            session.close().await;
        }
        let nothing = syslog.received().is_empty() && collector.received.is_empty();
        table.row(format!("{name}: nothing arrived"), ensure(nothing, "records"));
    }
    table.finish();
}

#[tokio::test]
async fn records_that_a_collector_rejects_are_left_out_one_by_one_and_recorded() {
    let has_run = |request: &HttpRequest| request.body.contains("\\\"event\\\":\\\"execution\\\"");
    let collector = Collector::start(move |request| match has_run(request) {
        true => HttpAnswer::status(400),
        false => HttpAnswer::json(200, &json!({})),
    });
    let lockhouse = forwarding_to(&collector.destination());
    let session = lockhouse.serve().await;
    adds(&session, 1).await;
    let rejected = wait_until("the rejection is recorded", async || {
        lockhouse.records().into_iter().find(|record| record["event"] == "delivery")
    });
    let rejected = rejected.await;
    assert_eq!(rejected["outcome"], "rejected", "{rejected}");
    let run = lockhouse.records().into_iter().find(|record| record["event"] == "execution").unwrap();
    assert_eq!((&rejected["first"], &rejected["last"]), (&run["seq"], &run["seq"]), "{rejected}");
    session.close().await;
    let missing = collector.received.has_all(&lockhouse).unwrap_err();
    assert!(missing.contains("\"event\":\"execution\""), "{missing}");
    let received = collector.received.texts();
    for event in ["open", "call", "outcome", "end", "delivery", "close"] {
        assert!(received.iter().any(|text| text.contains(&format!("\"event\":\"{event}\""))), "{event}");
    }
}

#[tokio::test]
async fn a_partial_success_is_recorded_and_not_repeated() {
    let partial = json!({"partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "too old"}});
    let collector = Collector::start(move |_| HttpAnswer::json(200, &partial));
    let lockhouse = forwarding_to(&collector.destination());
    let session = lockhouse.serve().await;
    adds(&session, 1).await;
    let rejected = wait_until("the rejection is recorded", async || {
        lockhouse.records().into_iter().find(|record| record["event"] == "delivery")
    });
    let reason = rejected.await["reason"].to_string();
    assert!(reason.contains("2 records") && reason.contains("too old"), "{reason}");
    adds(&session, 2).await;
    session.close().await;
    assert_eq!(collector.received.duplicates(), 0);
    let count = lockhouse.records().iter().filter(|record| record["event"] == "delivery").count();
    assert_eq!(count, 1, "at most one a minute");
}
