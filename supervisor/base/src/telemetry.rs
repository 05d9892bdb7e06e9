//! Metrics of this process for Prometheus. docs/metrics.md lists them.
//!
//! Other modules record an event by calling the function for that event, and do not use names of metrics. Recording
//! costs nothing unless metrics are enabled. Label values are fixed words and the names of configured upstream servers.
//! Text from AI clients, workers or upstream servers never becomes a label.

pub mod log;
mod metric_list;
pub mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the histogram buckets, in seconds. The smallest suits the write of an audit record, and the largest
/// a long run.
const BUCKETS: [f64; 14] =
    [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];
/// Interval at which recorded values are moved into the histogram buckets. Until then, each value takes eight bytes of
/// memory.
const UPKEEP_EVERY: Duration = Duration::from_secs(2);

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// A stage of a run or a call whose duration is recorded.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// The run waits for a worker (a sandboxed process).
    Lease,
    /// The run executes in its worker, including its calls of upstream servers.
    Run,
    /// The gate checks a call against the policy. Not counted is the time in which the gate waits for approvers, for
    /// upstream servers that are busy or start, or for the audit log.
    Gate,
    /// A record of the audit log is written.
    Audit,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Run => "run",
            Self::Gate => "gate",
            Self::Audit => "audit",
        }
    }
}

/// Enables metrics. Only the first call in a process has an effect.
pub fn install() {
    let Ok(builder) = PrometheusBuilder::new().set_buckets(&BUCKETS) else { return };
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() || RECORDER.set(handle.clone()).is_err() {
        return;
    }
    metric_list::describe_all();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP_EVERY).await;
            handle.run_upkeep();
        }
    });
}

/// Returns all metrics in the Prometheus text format. Before that, calls `set_gauges`, which updates the gauges that
/// are computed on demand. Returns `None` if metrics are not enabled.
pub fn render(set_gauges: impl FnOnce()) -> Option<String> {
    let handle = RECORDER.get()?;
    set_gauges();
    Some(handle.render())
}

pub fn record_stage(stage: Stage, time: Duration) {
    histogram!("lockhouse_stage_seconds", "stage" => stage.as_str()).record(time);
}

/// Counts a run whose request was answered. `status` is the status of the result, or `refused`.
pub fn count_execution(language: &'static str, status: &'static str) {
    counter!("lockhouse_executions_total", "language" => language, "status" => status).increment(1);
}

/// Counts a worker process that was killed or crashed, by reason.
pub fn count_kill(reason: &'static str) {
    counter!("lockhouse_kills_total", "reason" => reason).increment(1);
}

/// Counts a request that was passed on to another host of the cluster. `outcome` is `answered`, `unreachable` or `lost`.
pub fn count_passed_on(outcome: &'static str) {
    counter!("lockhouse_cluster_passed_on_total", "outcome" => outcome).increment(1);
}

/// Counts bytes of tool results that were not shown to a model.
pub fn count_withheld_bytes(bytes: u64) {
    counter!("lockhouse_kept_out_bytes_total").increment(bytes);
}

/// Counts a call by submitted code that was answered. `server` is the upstream server; `None` if the code named one
/// that is not configured.
pub fn count_call(server: Option<&str>, outcome: &'static str) {
    let server = server.unwrap_or("unknown").to_owned();
    counter!("lockhouse_calls_total", "server" => server, "outcome" => outcome).increment(1);
}

/// Counts a decision of the policy: `allow`, `ask` or `deny`.
pub fn count_decision(decision: &'static str) {
    counter!("lockhouse_decisions_total", "decision" => decision).increment(1);
}

/// Counts a call that exceeded a rate limit of the policy.
pub fn count_policy_rate_limit() {
    counter!("lockhouse_rate_limited_total", "by" => "policy").increment(1);
}

/// Counts a lookup of an upstream server's tools by submitted code. `from_cache` is whether the list of tools
/// was cached.
pub fn count_tool_list_lookup(from_cache: bool) {
    let result = if from_cache { "hit" } else { "miss" };
    counter!("lockhouse_catalogue_lookups_total", "result" => result).increment(1);
}

/// Records how long a request to an upstream server took, and whether it failed.
pub fn record_upstream_request(server: &str, time: Duration, failed: bool) {
    histogram!("lockhouse_upstream_call_seconds", "server" => server.to_owned()).record(time);
    if failed {
        counter!("lockhouse_upstream_failures_total", "server" => server.to_owned()).increment(1);
    }
}

/// Counts the start of a zygote by reason. The reason is `first` for the first zygote of a language. For each further
/// zygote, the reason tells why the previous zygote was replaced: `worn` (too old, or too many forks), `crashed` (one
/// of its workers crashed) or `ended`.
pub fn count_zygote_start(language: &'static str, reason: &'static str) {
    counter!("lockhouse_zygote_starts_total", "language" => language, "reason" => reason).increment(1);
}

/// Adds `count` to the number of worker processes that were forked.
pub fn count_forks(language: &'static str, count: usize) {
    counter!("lockhouse_pool_forks_total", "language" => language).increment(count as u64);
}

/// Counts an audit record that could not be written.
pub fn count_audit_failure() {
    counter!("lockhouse_audit_failures_total").increment(1);
}

/// Counts a failed attempt to deliver the audit log to a destination, as the configuration names it.
pub fn count_audit_forward_failure(destination: &str) {
    counter!("lockhouse_audit_forward_failures_total", "destination" => destination.to_owned()).increment(1);
}

/// Counts a reload of the configuration. `taken` is whether the new configuration was accepted.
pub fn count_reload(taken: bool) {
    let outcome = if taken { "taken" } else { "refused" };
    counter!("lockhouse_configuration_reloads_total", "outcome" => outcome).increment(1);
}

/// Adds to the number of HTTP responses to AI clients with a status code.
pub fn count_http_responses(status: u16, count: u64) {
    // Every status code that Lockhouse sends is one of these.
    let status = if (100..600).contains(&status) { status } else { 0 };
    counter!("lockhouse_http_requests_total", "status" => status.to_string()).increment(count);
}

/// Adds to the number of HTTP requests of AI clients whose authentication failed.
pub fn count_auth_failures(count: u64) {
    counter!("lockhouse_http_authentication_failures_total").increment(count);
}

/// Adds to the number of HTTP requests and connections of AI clients that were refused for a reason.
pub fn count_http_refusals(why: &'static str, count: u64) {
    if why == "rate" {
        counter!("lockhouse_rate_limited_total", "by" => "client").increment(count);
    }
    counter!("lockhouse_http_refused_total", "reason" => why).increment(count);
}

/// Adds to the number of HTTP connections of AI clients that were opened.
pub fn count_http_connections(count: u64) {
    counter!("lockhouse_http_connections_total").increment(count);
}

/// The HTTP connections of one front that are open. They count as closed when this value is dropped.
#[derive(Debug, Default)]
pub struct OpenConnections(u64);

impl OpenConnections {
    /// Records how many connections are open now.
    pub fn set(&mut self, count: u64) {
        let before = std::mem::replace(&mut self.0, count);
        if count != before {
            gauge!("lockhouse_http_connections").increment(count as f64 - before as f64);
        }
    }
}

impl Drop for OpenConnections {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_front_that_has_gone_are_closed() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let page = || recorder.handle().render();
        metrics::with_local_recorder(&recorder, || {
            let (mut one, mut other) = (OpenConnections::default(), OpenConnections::default());
            one.set(3);
            other.set(2);
            one.set(1);
            assert!(page().contains("lockhouse_http_connections 3\n"), "{}", page());
            drop(one);
            assert!(page().contains("lockhouse_http_connections 2\n"), "{}", page());
            drop(other);
            assert!(page().contains("lockhouse_http_connections 0\n"), "{}", page());
        });
    }

    #[test]
    fn counters_of_a_front_are_added_and_their_labels_are_bounded() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            (0..u16::MAX).for_each(|status| count_http_responses(status, 2));
            count_http_refusals("rate", 3);
        });
        let page = recorder.handle().render();
        let lines = page.lines().filter(|line| line.starts_with("lockhouse_http_requests_total{"));
        assert_eq!(lines.count(), 501, "100 to 599, and 0");
        for line in [
            "lockhouse_http_requests_total{status=\"200\"} 2",
            "lockhouse_http_refused_total{reason=\"rate\"} 3",
            "lockhouse_rate_limited_total{by=\"client\"} 3",
        ] {
            assert!(page.contains(line), "{line}");
        }
    }
}
