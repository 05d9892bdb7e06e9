//! Tests of `lockhouse doctor --balancer`: it passes with the configurations of `packaging/balancers`, and finds what makes them wrong.

use lockhouse_tests::{CommandOutput, Lockhouse, Table, equal, is_full};
use serde_json::Value;

use super::Hosts;
use super::balancer::{Balancer, Kind};

/// The number of cases in the quick form of the tests: at least one for each check.
const QUICK: usize = 5;

/// Returns the names of the checks that fail, and how many there are.
fn failed_checks(hosts: &Hosts) -> (Vec<String>, usize) {
    failed_checks_of(&hosts.balancer, &hosts.lockhouses[0], &hosts.clients[0].1)
}

/// Returns the names of the checks of a balancer that fail, and how many there are.
pub(crate) fn failed_checks_of(
    balancer: &Balancer,
    lockhouse: &Lockhouse,
    token: &str,
) -> (Vec<String>, usize) {
    let token = lockhouse.file("token", format!("{token}\n")).display().to_string();
    let url = format!("https://127.0.0.1:{}/mcp", balancer.port);
    let arguments = ["doctor", "--json", "--balancer", &url, "--token-file", &token];
    let mut command = lockhouse.command(&arguments);
    command.env("SSL_CERT_FILE", &balancer.pem);
    let output = CommandOutput::run(&mut command, b"");
    let list: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let checks = list["checks"].as_array().expect("a list");
    let failed = checks.iter().filter(|check| check["passes"] == false);
    let failed: Vec<String> =
        failed.map(|check| check["check"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(output.status, Some(if failed.is_empty() { 0 } else { 7 }), "{output:?}");
    (failed, checks.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_what_a_balancer_does_wrong() {
    let mut table = Table::new("doctor --balancer");
    let once = ["once_after_500", "once_after_502", "once_after_504", "once_without_answer"];
    let buffer = "http-request del-header Forwarded\n    http-response wait-for-body time 10s";
    let retries = "retry-on all-retryable-errors";
    let next = "proxy_next_upstream error timeout http_500 http_502 http_504 non_idempotent;";
    let cases: [(Kind, &str, (&str, &str), &[&str]); 9] = [
        (Kind::Haproxy, "as packaged", ("", ""), &[]),
        (Kind::Haproxy, "all retries", ("retry-on conn-failure 503", retries), &once),
        (Kind::Haproxy, "round robin", ("balance hdr(X-Affinity)", "balance roundrobin"), &["stays"]),
        (
            Kind::Haproxy,
            "another Host",
            ("http-request del-header Forwarded", "http-request set-header Host x.example.com"),
            &["reaches"],
        ),
        (Kind::Haproxy, "a buffer", ("http-request del-header Forwarded", buffer), &["streams"]),
        // From here on in the full form of the tests only.
        (Kind::Haproxy, "HTTP/2 of clients", ("alpn http/1.1", "alpn h2,http/1.1"), &once[3..]),
        (Kind::Nginx, "as packaged", ("", ""), &[]),
        (Kind::Nginx, "all retries", ("proxy_next_upstream error timeout;", next), &once),
        (Kind::Caddy, "as packaged", ("", ""), &[]),
    ];
    let cases = &cases[..if is_full() { cases.len() } else { QUICK }];
    for &(kind, name, (from, to), expected) in cases {
        let change = |text: String| if from.is_empty() { text } else { text.replace(from, to) };
        let Some(hosts) = Hosts::start_unsettled(kind, change).await else { return };
        let (failed, count) = failed_checks(&hosts);
        table.row(
            format!("{kind:?}: {name}"),
            equal(failed, expected.iter().map(|&id| id.to_owned()).collect()),
        );
        let complete = match expected {
            ["reaches"] => 1,
            ["stays"] => 4,
            _ => 8,
        };
        table.row(format!("{kind:?}: {name}: the checks"), equal(count, complete));
    }
    table.finish();
}
