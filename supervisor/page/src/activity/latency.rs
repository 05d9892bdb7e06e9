//! How long the latest calls of each upstream server took.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::text;

/// Maximum number of upstream servers whose latency is stored.
const SERVERS_MAX: usize = 256;
/// Maximum number of calls of one server that are stored: the latest ones.
const CALLS_MAX: usize = 500;

/// Outcomes of calls that were not sent, which say nothing about the server.
const NOT_SENT: [&str; 2] = ["not_sent", "denied"];

#[derive(Debug, Default)]
pub(super) struct Latencies(BTreeMap<String, ServerCalls>);

#[derive(Debug, Default)]
struct ServerCalls {
    /// The duration in milliseconds of each call, and whether it failed.
    latest: VecDeque<(f64, bool)>,
    last: String,
}

impl Latencies {
    pub(super) fn add(&mut self, time: &str, server: &str, ms: f64, outcome: &str) {
        let server = text::name(server);
        let is_full = self.0.len() >= SERVERS_MAX && !self.0.contains_key(&server);
        if is_full || NOT_SENT.contains(&outcome) {
            return;
        }
        let calls = self.0.entry(server).or_default();
        if calls.latest.len() == CALLS_MAX {
            calls.latest.pop_front();
        }
        calls.latest.push_back((ms, outcome != "ok"));
        if *time > *calls.last {
            calls.last = time.to_owned();
        }
    }

    /// Returns the names of the servers that were called.
    pub(super) fn servers(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns the latency of a server's calls, and when it was last called; `null` if it was not called.
    pub(super) fn to_json(&self, server: &str) -> (Value, Value) {
        let Some(calls) = self.0.get(server) else { return (Value::Null, Value::Null) };
        let mut durations: Vec<f64> = calls.latest.iter().map(|(ms, _)| *ms).collect();
        durations.sort_by(f64::total_cmp);
        let percentile = |share: f64| durations[((durations.len() - 1) as f64 * share).round() as usize];
        let errors = calls.latest.iter().filter(|(_, failed)| *failed).count();
        let latency = json!({
            "calls": durations.len(), "errors": errors, "p50_ms": percentile(0.5), "p95_ms": percentile(0.95),
        });
        (latency, calls.last.clone().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_is_that_of_the_latest_calls() {
        let mut latencies = Latencies::default();
        for ms in 0..=CALLS_MAX {
            latencies.add("t1", "shop", ms as f64, if ms % 100 == 0 { "tool_failed" } else { "ok" });
        }
        latencies.add("t2", "shop", 9e9, "not_sent");
        let (latency, last) = latencies.to_json("shop");
        assert_eq!(latency, json!({"calls": 500, "errors": 5, "p50_ms": 251.0, "p95_ms": 475.0}));
        assert_eq!((last, latencies.to_json("other")), ("t1".into(), (Value::Null, Value::Null)));
    }
}
