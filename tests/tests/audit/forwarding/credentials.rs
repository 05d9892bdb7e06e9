//! Tests of what identifies a machine to a destination: headers and certificates.

use lockhouse_tests::{Table, ensure, wait_until};

use super::syslog_server::SyslogServer;
use super::tls_front::{TlsFront, acceptor_for};
use super::{Collector, adds, ca, report, with_audit};
use crate::http::tls::certificate_file;

#[tokio::test]
async fn a_header_has_its_value_from_a_file_and_nothing_shows_it() {
    let collector = Collector::accepting();
    let lockhouse = with_audit("");
    let token = lockhouse.file("token", "SEKRET\n");
    let entry = |value: &str| {
        let headers = format!("{{ Authorization = \"{value}\", X-Scope-OrgID = \"${{env:HOME}}\" }}");
        format!("[audit]\nforward = [{{ to = \"{}\", headers = {headers} }}]\n", collector.destination())
    };
    lockhouse.file("config/lockhouse/config.toml", entry(&format!("Bearer ${{file:{}}}", token.display())));
    let session = lockhouse.serve().await;
    adds(&session, 1).await;
    wait_until("everything arrives", async || collector.received.has_all(&lockhouse).ok()).await;
    let ended = session.close().await;
    let mut table = Table::new("headers");
    let request = collector.server.requests().remove(0);
    let sent = request.headers.get("authorization").is_some_and(|value| value == "Bearer SEKRET");
    table.row("it is sent", ensure(sent, &request.headers));
    table.row("another one too", ensure(request.headers.contains_key("x-scope-orgid"), &request.headers));
    let shown = format!("{ended:?}{:?}", lockhouse.run(&["audit", "forward"]));
    table.row("neither the log nor the report shows it", ensure(!shown.contains("SEKRET"), &shown));
    for (name, value, words) in [
        ("a value in the file itself", "Bearer SEKRET", "must have one of the placeholders"),
        ("no such file", "${file:/nowhere/token}", "/nowhere/token"),
        ("no such variable", "SEKRET ${env:NOWHERE}", "NOWHERE is not set"),
    ] {
        lockhouse.file("config/lockhouse/config.toml", entry(value));
        let refused = lockhouse.run(&["run", "-c", "1", "--language", "python"]);
        let is_told = refused.stderr.contains(words) && refused.stderr.contains("Authorization");
        let is_refused = refused.status != Some(0) && is_told && !refused.errors().contains("SEKRET");
        table.row(format!("{name}: refused"), ensure(is_refused, &refused));
    }
    table.finish();
}

#[tokio::test]
async fn a_destination_may_require_a_certificate_of_this_machine() {
    let mut table = Table::new("certificates of this machine");
    let path = |ending: &str| certificate_file(&format!("renewed.{ending}")).display().to_string();
    let identity = format!("certificate = \"{}\", key = \"{}\"", path("pem"), path("key"));
    let wrong = format!("certificate = \"{}\", key = \"{}\"", path("key"), path("key"));
    for kind in ["syslog", "otlp"] {
        for (name, keys, words) in [
            ("with it", identity.as_str(), None),
            ("without one", "", Some("certificate")),
            (
                "with a file without one",
                wrong.as_str(),
                Some("which certificate names, has no valid certificate"),
            ),
        ] {
            let collector = Collector::accepting();
            let (syslog, front);
            let (destination, received) = if kind == "syslog" {
                syslog = SyslogServer::start_with(acceptor_for("daemon", "renewed")).await;
                (syslog.destination(), syslog.received())
            } else {
                front =
                    TlsFront::start_with(acceptor_for("daemon", "renewed"), &collector.server.url("")).await;
                (format!("otlp+https://{}", front.address()), collector.received.clone())
            };
            let separator = if keys.is_empty() { "" } else { ", " };
            let lockhouse = with_audit(&format!(
                "forward = [{{ to = \"{destination}\"{separator}{keys} }}]\nforward_ca = \"{}\"\n",
                ca().display()
            ));
            let session = lockhouse.serve().await;
            adds(&session, 1).await;
            let outcome = match words {
                None => {
                    wait_until("everything arrives", async || received.has_all(&lockhouse).ok()).await;
                    Ok(())
                }
                Some(words) => {
                    // A connection that is reset before its alert is read says less. The next attempt says more.
                    let error = wait_until("the failure is reported with its reason", async || {
                        let error = report(&lockhouse)["error"].as_str()?.to_owned();
                        error.to_lowercase().contains(words).then_some(error)
                    });
                    ensure(received.is_empty(), error.await)
                }
            };
            session.close().await;
            table.row(format!("{kind}, {name}"), outcome);
        }
    }
    table.finish();
}
