//! Every figure that there is, with what Prometheus is told of it. docs/metrics.md is held to this list.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}
use Kind::{Counter, Gauge, Histogram};

/// Name, kind, labels and what it says.
type Figure = (&'static str, Kind, &'static [&'static str], &'static str);

#[rustfmt::skip]
const FIGURES: [Figure; 38] = [
    ("lockhouse_build_info", Gauge, &["version"], "1, with the version of Lockhouse"),
    ("lockhouse_uptime_seconds", Gauge, &[], "Since the process was started"),
    ("lockhouse_ready", Gauge, &[], "1 while runs are taken, as /ready says"),
    ("lockhouse_draining", Gauge, &[], "1 while runs come to their end before a restart"),
    ("lockhouse_configuration_generation", Gauge, &[], "1 at the start, and one more with every reload"),
    ("lockhouse_configuration_reloads_total", Counter, &["outcome"], "Reloads, by whether what was written was taken"),
    ("lockhouse_stage_seconds", Histogram, &["stage"], "Where the time of runs and calls goes"),
    ("lockhouse_executions_total", Counter, &["language", "status"], "Runs that have their answer"),
    ("lockhouse_executions_running", Gauge, &[], "Runs that are under way, those that wait among them"),
    ("lockhouse_kills_total", Counter, &["reason"], "Workers that were ended before their time, or died"),
    ("lockhouse_kept_out_bytes_total", Counter, &[], "Bytes that tools answered and no model was shown"),
    ("lockhouse_calls_total", Counter, &["server", "outcome"], "Calls of code that have their answer"),
    ("lockhouse_decisions_total", Counter, &["decision"], "What the policy said of calls"),
    ("lockhouse_rate_limited_total", Counter, &["by"], "Calls and requests that were too many"),
    ("lockhouse_catalogue_lookups_total", Counter, &["result"], "Lists of tools that code asked for, by whether they were made already"),
    ("lockhouse_upstream_state", Gauge, &["server", "state"], "1 for the state that a server is in"),
    ("lockhouse_upstream_tools", Gauge, &["server"], "Tools of a server, as far as they are known"),
    ("lockhouse_upstream_call_seconds", Histogram, &["server"], "From a request to a server to its answer"),
    ("lockhouse_upstream_failures_total", Counter, &["server"], "Requests that a server did not answer, or with an error of the protocol"),
    ("lockhouse_upstream_reconnects_total", Counter, &["server"], "Connections to a server that were lost"),
    ("lockhouse_pool_workers", Gauge, &["language", "state"], "Workers that are idle, on their way, or run something"),
    ("lockhouse_pool_places", Gauge, &["language"], "Runs that there may be at one time"),
    ("lockhouse_pool_waiting", Gauge, &["language"], "Runs that wait for a worker"),
    ("lockhouse_pool_forks_total", Counter, &["language"], "Workers that were forked"),
    ("lockhouse_zygote_starts_total", Counter, &["language", "reason"], "Zygotes that were started, and why"),
    ("lockhouse_zygote_age_seconds", Gauge, &["language"], "Age of the zygote that forks"),
    ("lockhouse_sandbox_full", Gauge, &["language"], "1 where this host gives every protection"),
    ("lockhouse_sessions", Gauge, &[], "Sessions that are kept"),
    ("lockhouse_results", Gauge, &[], "Results that are kept"),
    ("lockhouse_results_bytes", Gauge, &[], "Bytes of results that are kept"),
    ("lockhouse_audit_writable", Gauge, &[], "1 while records can be written"),
    ("lockhouse_audit_failures_total", Counter, &[], "Records that could not be written"),
    ("lockhouse_http_requests_total", Counter, &["status"], "HTTP requests that have their answer"),
    ("lockhouse_http_connections", Gauge, &[], "HTTP connections that are open"),
    ("lockhouse_http_connections_total", Counter, &[], "HTTP connections that were opened"),
    ("lockhouse_http_authentication_failures_total", Counter, &[], "HTTP requests whose sender did not prove who they are"),
    ("lockhouse_http_refused_total", Counter, &["reason"], "HTTP requests and connections that were turned away at the door"),
    ("lockhouse_process_resident_bytes", Gauge, &[], "Memory of the supervisor"),
];

/// Values of labels that are known before anything happens: whoever watches for the first one sees it come.
#[rustfmt::skip]
const KNOWN: [(&str, &str, &[&str]); 7] = [
    ("lockhouse_kills_total", "reason", &["timeout", "cpu", "memory", "amount", "violation", "cancelled", "died"]),
    ("lockhouse_decisions_total", "decision", &["allow", "ask", "deny"]),
    ("lockhouse_rate_limited_total", "by", &["policy", "client"]),
    ("lockhouse_catalogue_lookups_total", "result", &["hit", "miss"]),
    ("lockhouse_configuration_reloads_total", "outcome", &["taken", "refused"]),
    ("lockhouse_http_refused_total", "reason", &["rate", "quota", "connections", "body", "host", "origin", "timeout", "draining", "head", "evicted"]),
    ("lockhouse_http_requests_total", "status", &["200", "401", "503"]),
];

/// Tells the recorder, and begins what counts at zero.
pub(super) fn describe() {
    for (name, kind, labels, words) in FIGURES {
        let unit = unit(name);
        match kind {
            Counter => describe_counter!(name, unit, words),
            Gauge => describe_gauge!(name, unit, words),
            Histogram => describe_histogram!(name, unit, words),
        }
        match kind {
            Counter if labels.is_empty() => counter!(name).absolute(0),
            Gauge if labels.is_empty() => gauge!(name).set(0.0),
            _ => {}
        }
    }
    for (name, label, values) in KNOWN {
        values.iter().for_each(|value| counter!(name, label => *value).absolute(0));
    }
}

/// Prometheus has it in the name.
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
        let row = |(name, kind, labels, words): Figure| {
            let kind = format!("{kind:?}").to_lowercase();
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{name}` | {kind} | {} | {words} |", labels.join(", ")).replace("|  |", "| |")
        };
        let listed: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `lockhouse_")).collect();
        let figures: Vec<String> = FIGURES.into_iter().map(row).collect();
        assert_eq!(listed, figures, "\n{}", figures.join("\n"));
    }

    #[test]
    fn known_values_are_of_labels_that_there_are() {
        for (name, label, _) in KNOWN {
            assert!(FIGURES.iter().any(|(of, _, labels, _)| *of == name && *labels == [label]), "{name}");
        }
    }
}
