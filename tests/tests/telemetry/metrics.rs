//! Tests that the daemon's endpoint `/metrics` exports exactly the metrics that docs/metrics.md documents.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_tests::{Daemon, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::json;

use crate::telemetry::OPEN;

const PAGE: &str = include_str!("../../../docs/metrics.md");
const POLICY: &str =
    "version = 1\n[servers.fixture]\nallow = [\"echo\", \"add\", \"slow\"]\ncalls_per_execution = 2\n";

/// Forwards the audit log to a journal that does not exist.
const NO_JOURNAL: &str = "[audit]\nforward = [\"journald:/nowhere/socket\"]\n";

async fn scrape(daemon: &Daemon) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(daemon.url("/metrics")).send().await.unwrap().text().await.unwrap()
}

/// Returns the value of the exported metric with this name and these labels, or NaN if there is none. `figures` is the
/// text of `/metrics`.
fn value(figures: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let has = |line: &&str| {
        let end = line.find(['{', ' ']).unwrap_or(0);
        line[..end] == *name
            && labels.iter().all(|(label, value)| line.contains(&format!("{label}=\"{value}\"")))
    };
    let line = figures.lines().find(has);
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(f64::NAN)
}

/// Returns the type and the labels of every metric in `figures`, the text of `/metrics`, by the metric's name.
fn exported_metrics(figures: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut shape = BTreeMap::new();
    for line in figures.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            shape.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.starts_with('#') && !line.is_empty() {
            let name = &line[..line.find(['{', ' ']).unwrap()];
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let name = of_histogram.filter(|name| shape.contains_key(*name)).unwrap_or(name);
            let labels = line
                .split_once('{')
                .and_then(|(_, rest)| rest.split_once('}'))
                .map_or("", |(labels, _)| labels);
            let labels = labels
                .split("\",")
                .filter_map(|label| label.split_once('='))
                .map(|(label, _)| label.to_owned());
            shape.get_mut(name).unwrap().1.extend(labels.filter(|label| label != "le"));
        }
    }
    shape
}

/// Returns the type and the labels of every metric in docs/metrics.md, by the metric's name.
fn documented_metrics() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `lockhouse_"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let labels = cells[3].split(',').map(|label| label.trim().trim_matches('`').to_owned());
        let labels = labels.filter(|label| !label.is_empty()).collect();
        (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), labels))
    };
    rows.map(row).collect()
}

#[tokio::test]
async fn exported_metrics_match_the_documentation() {
    let lockhouse = Lockhouse::with_fixture()
        .policy(POLICY)
        .config(&format!("{OPEN}{NO_JOURNAL}[limits]\ntimeout_seconds = 1\n"));
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None);
    let python = async |code: &str| http_client.run_code("python", code).await;
    let call = "from mcp_tools.fixture import echo\n";
    python(&format!("{call}echo(value='x' * 5000)\n1")).await;
    python("from mcp_tools.fixture import fail\ntry:\n    fail()\nexcept Exception as e: print(e)").await;
    python(&format!("{call}for n in range(3): echo(value='a')")).await;
    for _ in 0..2 {
        python("from mcp_tools import fixture\ndir(fixture)").await;
    }
    python("while True: pass").await;
    python("import mcp_tools\ntry:\n    mcp_tools.call_tool('made_up', 'x', {})\nexcept Exception: pass")
        .await;
    http_client.call("run_code", json!({"language": "cobol", "code": "1"})).await;
    http_client.run_code("typescript", "1").await;
    http_client.clone().with("host", "evil.example").request("tools/list", json!({})).await;
    daemon.reload().await;
    let figures = wait_until("the fixture is connected", async || {
        let figures = scrape(&daemon).await;
        let has_failed = value(&figures, "lockhouse_audit_forward_failures_total", &[]) >= 1.0;
        let is_connected = value(&figures, "lockhouse_upstream_state", &[("state", "connected")]) == 1.0;
        (has_failed && is_connected).then_some(figures)
    })
    .await;
    let mut table = Table::new("figures");
    let (found, documented) = (exported_metrics(&figures), documented_metrics());
    for (name, of) in &documented {
        // No upstream server has failed, so this metric may be absent.
        let is_lacking = *name == "lockhouse_upstream_failures_total" && !found.contains_key(name);
        table.row(name, if is_lacking { Ok(()) } else { equal(found.get(name), Some(of)) });
    }
    let unknown: Vec<&String> = found.keys().filter(|name| !documented.contains_key(*name)).collect();
    table.row("no other", ensure(unknown.is_empty(), &unknown));
    table.row(
        "nothing that code or a client has made up",
        ensure(
            !figures.contains("made_up")
                && !figures.contains("evil")
                && !figures.contains("cobol")
                && !figures.contains("echo"),
            &figures,
        ),
    );
    let at_least = |name: &str, labels: &[(&str, &str)], least: f64| {
        let found = value(&figures, name, labels);
        ensure(found >= least, format!("{found} of {labels:?}"))
    };
    for (name, labels, least) in [
        ("lockhouse_executions_total", &[("language", "python"), ("status", "ok")][..], 2.0),
        ("lockhouse_executions_total", &[("status", "timeout")], 1.0),
        ("lockhouse_kills_total", &[("reason", "timeout")], 1.0),
        ("lockhouse_calls_total", &[("server", "fixture"), ("outcome", "ok")], 3.0),
        ("lockhouse_calls_total", &[("server", "unknown")], 1.0),
        ("lockhouse_decisions_total", &[("decision", "allow")], 3.0),
        ("lockhouse_decisions_total", &[("decision", "deny")], 1.0),
        ("lockhouse_rate_limited_total", &[("by", "policy")], 1.0),
        ("lockhouse_kept_out_bytes_total", &[], 4_000.0),
        ("lockhouse_catalogue_lookups_total", &[("result", "hit")], 1.0),
        ("lockhouse_stage_seconds_count", &[("stage", "run")], 5.0),
        ("lockhouse_stage_seconds_count", &[("stage", "audit")], 10.0),
        ("lockhouse_stage_seconds_count", &[("stage", "gate")], 3.0),
        ("lockhouse_upstream_call_seconds_count", &[("server", "fixture")], 3.0),
        ("lockhouse_http_requests_total", &[("status", "200")], 5.0),
        ("lockhouse_http_refused_total", &[("reason", "host")], 1.0),
        ("lockhouse_http_connections", &[], 1.0),
        ("lockhouse_zygote_starts_total", &[("language", "python"), ("reason", "first")], 1.0),
        ("lockhouse_pool_forks_total", &[("language", "python")], 4.0),
        ("lockhouse_configuration_generation", &[], 2.0),
        ("lockhouse_configuration_reloads_total", &[("outcome", "taken")], 1.0),
        ("lockhouse_process_resident_bytes", &[], 1_000_000.0),
        ("lockhouse_audit_writable", &[], 1.0),
    ] {
        table.row(format!("{name} {labels:?}"), at_least(name, labels, least));
    }
    table.finish();
    assert_eq!(daemon.terminate().await.status, Some(0));
}
