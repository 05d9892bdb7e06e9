//! How many bytes of tool results did not reach the context of a model, for each day and AI client.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::log_reader::DAYS_MAX;
use super::run_record::RunRecord;

/// How many bytes of JSON and text count as one token. An estimate: words of English have four to five bytes, and JSON
/// has more tokens for the same number of bytes.
const BYTES_PER_TOKEN: u64 = 4;
/// Maximum number of AI clients of one day that are counted separately.
const CLIENTS_MAX: usize = 20;

/// The runs of each day, by the day of their start.
#[derive(Debug, Default)]
pub(super) struct Savings(BTreeMap<String, BTreeMap<Client, Saving>>);

/// Whose runs are counted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Client {
    /// The AI client of this name; `None` for `lockhouse run`, and for clients without a name.
    Named(Option<String>),
    /// All clients that are not counted separately.
    Others,
}

#[derive(Debug, Default)]
struct Saving {
    runs: u64,
    calls: u64,
    cpu_ms: f64,
    result_bytes: u64,
    answer_bytes: u64,
    kept_out_bytes: u64,
}

impl Savings {
    /// Adds a run that has ended.
    pub(super) fn add(&mut self, run: &RunRecord) {
        let Some(day) = run.started.get(..10) else { return };
        let clients = self.0.entry(day.to_owned()).or_default();
        let client = Client::Named(run.client.clone());
        let is_full = clients.len() >= CLIENTS_MAX && !clients.contains_key(&client);
        let saving = clients.entry(if is_full { Client::Others } else { client }).or_default();
        saving.runs += 1;
        saving.calls += run.call_count;
        saving.cpu_ms += run.cpu_ms.unwrap_or(0.0);
        saving.result_bytes = saving.result_bytes.saturating_add(run.result_bytes);
        saving.answer_bytes = saving.answer_bytes.saturating_add(run.answer_bytes.unwrap_or(0));
        saving.kept_out_bytes = saving.kept_out_bytes.saturating_add(run.kept_out_bytes().unwrap_or(0));
        while self.0.len() > DAYS_MAX as usize {
            self.0.pop_first();
        }
    }

    /// Returns the section of savings, the latest day first.
    pub(super) fn to_json(&self, definitions_bytes: Option<u64>) -> Value {
        let row = |(client, saving): (&Client, &Saving)| {
            let name = match client {
                Client::Named(name) => name.as_deref(),
                Client::Others => Some("(others)"),
            };
            json!({
                "client": name, "others": *client == Client::Others, "runs": saving.runs, "calls": saving.calls, "cpu_ms": saving.cpu_ms,
                "result_bytes": saving.result_bytes, "answer_bytes": saving.answer_bytes,
                "kept_out_bytes": saving.kept_out_bytes,
                "kept_out_tokens": saving.kept_out_bytes / BYTES_PER_TOKEN,
            })
        };
        let day = |(day, clients): (&String, &BTreeMap<Client, Saving>)| json!({"day": day, "clients": clients.iter().map(row).collect::<Value>()});
        json!({
            "bytes_per_token": BYTES_PER_TOKEN, "definitions_bytes": definitions_bytes,
            "days": self.0.iter().rev().map(day).collect::<Value>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn savings_are_counted_by_day_and_client() {
        let mut savings = Savings::default();
        let run = |day: &str, client: Option<&str>, result_bytes, answer_bytes| RunRecord {
            started: format!("{day}T12:00:00Z"),
            client: client.map(str::to_owned),
            result_bytes,
            answer_bytes,
            call_count: 2,
            cpu_ms: Some(1.5),
            ..RunRecord::default()
        };
        savings.add(&run("2026-01-01", Some("a"), 1_000, Some(200)));
        savings.add(&run("2026-01-01", Some("a"), 100, Some(200)));
        savings.add(&run("2026-01-01", Some("a"), 5_000, None));
        savings.add(&run("2026-01-02", None, 41, Some(1)));
        let json = savings.to_json(Some(7));
        assert_eq!(json["days"][0]["clients"][0]["kept_out_tokens"], 10);
        assert_eq!(
            json["days"][1]["clients"],
            json!([{
                "client": "a", "others": false, "runs": 3, "calls": 6, "cpu_ms": 4.5, "result_bytes": 6_100, "answer_bytes": 400,
                "kept_out_bytes": 800, "kept_out_tokens": 200,
            }])
        );
        for number in 0..40 {
            savings.add(&run("2026-01-02", Some(&number.to_string()), 1, Some(0)));
            savings.add(&run(&format!("2026-03-{:02}", number + 1), None, 1, Some(0)));
        }
        assert_eq!(savings.0.len(), DAYS_MAX as usize);
        assert!(savings.0.values().all(|clients| clients.len() <= CLIENTS_MAX + 1));
    }
}
