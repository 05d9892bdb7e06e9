//! `make bench-parts`: the time to check and truncate JSON of an upstream server.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a table")]

#[path = "../../../tests/bench/measure.rs"]
mod measure;

use lockhouse_base::json;
use measure::measure;
use serde_json::{Value, json};

fn main() {
    measure::print_header();
    let item =
        |number| json!({"id": number, "title": "A title", "labels": ["a", "b"], "body": "x".repeat(200)});
    for (name, items) in [("3 KB", 10), ("300 KB", 1_000), ("3 MB", 10_000)] {
        let text = Value::from_iter((0..items).map(item)).to_string();
        let bytes = text.as_bytes();
        measure(&format!("count the values of {name}"), || json::count(bytes, usize::MAX));
        measure(&format!("parse {name} within bounds"), || json::parse_bounded(bytes, usize::MAX));
        measure(&format!("truncate {name} to 2 KB"), || json::truncate(&text, 2_000));
    }
}
