//! All metrics with their kind, labels and description. A test compares docs/metrics.md with this list.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}
use Kind::{Counter, Gauge, Histogram};

/// The name, kind, labels and description of a metric.
type Metric = (&'static str, Kind, &'static [&'static str], &'static str);

#[rustfmt::skip]
const METRICS: [Metric; 45] = [
    ("lockhouse_build_info", Gauge, &["version"], "1, with the version of Lockhouse"),
    ("lockhouse_uptime_seconds", Gauge, &[], "Seconds since the process was started"),
    ("lockhouse_ready", Gauge, &[], "1 while runs are accepted, as /ready reports"),
    ("lockhouse_draining", Gauge, &[], "1 while the process drains: runs in flight end, and no run begins"),
    ("lockhouse_configuration_generation", Gauge, &[], "Number of the active configuration: 1 at the start, one more with every reload"),
    ("lockhouse_configuration_reloads_total", Counter, &["outcome"], "Reloads of the configuration, by whether the new one was accepted"),
    ("lockhouse_stage_seconds", Histogram, &["stage"], "Duration of the stages of runs and calls"),
    ("lockhouse_executions_total", Counter, &["language", "status"], "Runs that were answered"),
    ("lockhouse_executions_running", Gauge, &[], "Runs in flight, including those that wait for a worker"),
    ("lockhouse_kills_total", Counter, &["reason"], "Workers that were killed or crashed"),
    ("lockhouse_kept_out_bytes_total", Counter, &[], "Bytes of tool results that were not shown to a model"),
    ("lockhouse_calls_total", Counter, &["server", "outcome"], "Calls of submitted code that were answered"),
    ("lockhouse_decisions_total", Counter, &["decision"], "Decisions of the policy on calls"),
    ("lockhouse_rate_limited_total", Counter, &["by"], "Calls and requests that exceeded a rate limit"),
    ("lockhouse_catalogue_lookups_total", Counter, &["result"], "Lists of tools requested by submitted code, by whether they were cached"),
    ("lockhouse_upstream_state", Gauge, &["server", "state"], "1 for the current state of an upstream server"),
    ("lockhouse_upstream_tools", Gauge, &["server"], "Known tools of an upstream server"),
    ("lockhouse_upstream_call_seconds", Histogram, &["server"], "Time from a request to an upstream server to its answer"),
    ("lockhouse_upstream_failures_total", Counter, &["server"], "Requests that an upstream server did not answer, or answered with a protocol error"),
    ("lockhouse_upstream_reconnects_total", Counter, &["server"], "Connections to an upstream server that were lost"),
    ("lockhouse_pool_workers", Gauge, &["language", "state"], "Workers that are idle, starting or running"),
    ("lockhouse_pool_places", Gauge, &["language"], "Maximum number of concurrent runs"),
    ("lockhouse_pool_waiting", Gauge, &["language"], "Runs that wait for a worker"),
    ("lockhouse_pool_forks_total", Counter, &["language"], "Workers that were forked"),
    ("lockhouse_zygote_starts_total", Counter, &["language", "reason"], "Zygotes that were started, by reason"),
    ("lockhouse_zygote_age_seconds", Gauge, &["language"], "Age of the active zygote"),
    ("lockhouse_sandbox_full", Gauge, &["language"], "1 if this host provides every protection of the sandbox"),
    ("lockhouse_sessions", Gauge, &[], "Open sessions"),
    ("lockhouse_results", Gauge, &[], "Stored results"),
    ("lockhouse_results_bytes", Gauge, &[], "Bytes of stored results"),
    ("lockhouse_audit_writable", Gauge, &[], "1 while audit records can be written"),
    ("lockhouse_audit_failures_total", Counter, &[], "Audit records that could not be written"),
    ("lockhouse_audit_forward_lag_seconds", Gauge, &["destination"], "Age of the oldest audit record that a destination has not received; 0 if there is none"),
    ("lockhouse_audit_forward_failures_total", Counter, &["destination"], "Failed attempts to deliver audit records to a destination"),
    ("lockhouse_http_requests_total", Counter, &["status"], "HTTP requests that were answered"),
    ("lockhouse_http_connections", Gauge, &[], "HTTP connections that are open"),
    ("lockhouse_http_connections_total", Counter, &[], "HTTP connections that were opened"),
    ("lockhouse_http_authentication_failures_total", Counter, &[], "HTTP requests whose authentication failed"),
    ("lockhouse_http_refused_total", Counter, &["reason"], "HTTP requests and connections that were refused"),
    ("lockhouse_cluster_hosts", Gauge, &[], "Hosts of the cluster that this one knows, with itself; 0 without a cluster"),
    ("lockhouse_cluster_state_reachable", Gauge, &[], "1 while the state that the hosts of the cluster share can be reached, and without a cluster"),
    ("lockhouse_cluster_audit_copied", Gauge, &[], "1 while the copies of this host's audit log in NATS are complete, and if there are none"),
    ("lockhouse_cluster_values_copied", Gauge, &[], "1 while the values that this host stores are copied to S3, and if they need not be"),
    ("lockhouse_cluster_passed_on_total", Counter, &["outcome"], "Requests that were passed on to another host of the cluster"),
    ("lockhouse_process_resident_bytes", Gauge, &[], "Resident memory of the supervisor"),
];

/// Label values that are known in advance, each with its metric and label. The counters with these label
/// values are set to zero when metrics are enabled, so that alert rules notice the first increment.
#[rustfmt::skip]
const KNOWN_LABEL_VALUES: [(&str, &str, &[&str]); 8] = [
    ("lockhouse_kills_total", "reason", &["timeout", "cpu", "memory", "amount", "violation", "cancelled", "died"]),
    ("lockhouse_decisions_total", "decision", &["allow", "ask", "deny"]),
    ("lockhouse_rate_limited_total", "by", &["policy", "client"]),
    ("lockhouse_catalogue_lookups_total", "result", &["hit", "miss"]),
    ("lockhouse_configuration_reloads_total", "outcome", &["taken", "refused"]),
    ("lockhouse_http_refused_total", "reason", &["rate", "quota", "connections", "body", "host", "origin", "timeout", "draining", "head", "evicted"]),
    ("lockhouse_http_requests_total", "status", &["200", "401", "503"]),
    ("lockhouse_cluster_passed_on_total", "outcome", &["answered", "unreachable", "lost"]),
];

/// Registers the descriptions of all metrics. Sets the counters and gauges without labels, and the counters in
/// [`KNOWN_LABEL_VALUES`], to zero.
pub(super) fn describe_all() {
    for (name, kind, labels, description) in METRICS {
        let unit = unit(name);
        match kind {
            Counter => describe_counter!(name, unit, description),
            Gauge => describe_gauge!(name, unit, description),
            Histogram => describe_histogram!(name, unit, description),
        }
        match kind {
            Counter if labels.is_empty() => counter!(name).absolute(0),
            Gauge if labels.is_empty() => gauge!(name).set(0.0),
            _ => {}
        }
    }
    for (name, label, values) in KNOWN_LABEL_VALUES {
        values.iter().for_each(|value| counter!(name, label => *value).absolute(0));
    }
}

/// Returns the unit of a metric according to the suffix of its name: `_seconds` or `_bytes`, else a count.
fn unit(name: &str) -> Unit {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => Unit::Seconds,
        Some("bytes") => Unit::Bytes,
        _ => Unit::Count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/metrics.md");

    #[test]
    fn the_page_lists_every_figure_and_no_other() {
        let row = |(name, kind, labels, description): Metric| {
            let kind = format!("{kind:?}").to_lowercase();
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{name}` | {kind} | {} | {description} |", labels.join(", ")).replace("|  |", "| |")
        };
        let listed: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `lockhouse_")).collect();
        let figures: Vec<String> = METRICS.into_iter().map(row).collect();
        assert_eq!(listed, figures, "\n{}", figures.join("\n"));
    }

    #[test]
    fn known_values_are_of_labels_that_there_are() {
        for (name, label, _) in KNOWN_LABEL_VALUES {
            assert!(METRICS.iter().any(|(of, _, labels, _)| *of == name && *labels == [label]), "{name}");
        }
    }
}
