//! Figures about what this process does, for the people who watch it. docs/metrics.md lists them.
//!
//! The rest of the program tells what happened, by a function for each thing, and knows of no names. Where nobody has asked
//! for figures, telling costs nothing. Labels are words of ours and names of configured servers; nothing that a client, a
//! worker or a server has made up becomes one.

mod catalogue;
pub mod log;
pub mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Seconds, from what a record of the log takes to what a long run does.
const BUCKETS: [f64; 14] =
    [0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0];
/// How often what was measured is put into the buckets. Until then each measurement takes eight bytes.
const UPKEEP_EVERY: Duration = Duration::from_secs(2);

static FIGURES: OnceLock<PrometheusHandle> = OnceLock::new();

/// Where the time of a run goes.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// Until there is a sealed worker.
    Lease,
    /// In the worker, calls and all.
    Run,
    /// A call in the gate, without what others take: a person, a server that is busy or starts, the log.
    Gate,
    /// A record of the audit log.
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

/// Keeps figures from now on. Only once in a process.
pub fn install() {
    let Ok(builder) = PrometheusBuilder::new().set_buckets(&BUCKETS) else { return };
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() || FIGURES.set(handle.clone()).is_err() {
        return;
    }
    catalogue::describe();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP_EVERY).await;
            handle.run_upkeep();
        }
    });
}

/// The figures, as Prometheus reads them, once `set_gauges` has set those that are looked up. None where none are kept.
pub fn render(set_gauges: impl FnOnce()) -> Option<String> {
    let handle = FIGURES.get()?;
    set_gauges();
    Some(handle.render())
}

pub fn took(stage: Stage, time: Duration) {
    histogram!("lockhouse_stage_seconds", "stage" => stage.as_str()).record(time);
}

/// A run has its answer. The status is of ours, or `refused`.
pub fn answered(language: &'static str, status: &'static str) {
    counter!("lockhouse_executions_total", "language" => language, "status" => status).increment(1);
}

/// A worker was ended before its time, or died.
pub fn killed(reason: &'static str) {
    counter!("lockhouse_kills_total", "reason" => reason).increment(1);
}

/// What tools answered and no model was shown.
pub fn kept_out(bytes: u64) {
    counter!("lockhouse_kept_out_bytes_total").increment(bytes);
}

/// Code has the answer to a call. None where no such server is configured.
pub fn called(server: Option<&str>, outcome: &'static str) {
    let server = server.unwrap_or("unknown").to_owned();
    counter!("lockhouse_calls_total", "server" => server, "outcome" => outcome).increment(1);
}

/// The policy has decided: `allow`, `ask` or `deny`.
pub fn decided(decision: &'static str) {
    counter!("lockhouse_decisions_total", "decision" => decision).increment(1);
}

/// A call was one too many for a limit of the policy.
pub fn limited_by_policy() {
    counter!("lockhouse_rate_limited_total", "by" => "policy").increment(1);
}

/// A list of tools was asked for by code.
pub fn listed(from_cache: bool) {
    let result = if from_cache { "hit" } else { "miss" };
    counter!("lockhouse_catalogue_lookups_total", "result" => result).increment(1);
}

/// A server has answered, or has not.
pub fn exchanged(server: &str, time: Duration, failed: bool) {
    histogram!("lockhouse_upstream_call_seconds", "server" => server.to_owned()).record(time);
    if failed {
        counter!("lockhouse_upstream_failures_total", "server" => server.to_owned()).increment(1);
    }
}

/// A zygote is started: the `first`, since one was `worn`, since a worker of it `crashed`, or since it `ended`.
pub fn zygote_started(language: &'static str, reason: &'static str) {
    counter!("lockhouse_zygote_starts_total", "language" => language, "reason" => reason).increment(1);
}

/// Workers are forked.
pub fn forked(language: &'static str, count: usize) {
    counter!("lockhouse_pool_forks_total", "language" => language).increment(count as u64);
}

/// A record could not be written.
pub fn unrecorded() {
    counter!("lockhouse_audit_failures_total").increment(1);
}

/// The configuration was read again: whether it was taken.
pub fn reloaded(taken: bool) {
    let outcome = if taken { "taken" } else { "refused" };
    counter!("lockhouse_configuration_reloads_total", "outcome" => outcome).increment(1);
}

/// An HTTP request has its answer.
pub fn http_answered(status: u16) {
    // Every one that there is has three digits.
    let status = if (100..1_000).contains(&status) { status } else { 0 };
    counter!("lockhouse_http_requests_total", "status" => status.to_string()).increment(1);
}

/// Somebody did not prove who they are.
pub fn auth_failed() {
    counter!("lockhouse_http_authentication_failures_total").increment(1);
}

/// A request or a connection was turned away at the door.
pub fn refused(why: &'static str) {
    if why == "rate" {
        counter!("lockhouse_rate_limited_total", "by" => "client").increment(1);
    }
    counter!("lockhouse_http_refused_total", "reason" => why).increment(1);
}

/// Counts a connection that is open, until this is dropped.
#[derive(Debug)]
pub struct Connected(());

pub fn connection() -> Connected {
    counter!("lockhouse_http_connections_total").increment(1);
    gauge!("lockhouse_http_connections").increment(1.0);
    Connected(())
}

impl Drop for Connected {
    fn drop(&mut self) {
        gauge!("lockhouse_http_connections").decrement(1.0);
    }
}
