//! Runs program fragments of the documents of earlier products exactly as they stand there (`tests/predecessors/`), against servers of the
//! same names, and compares the whole answers. docs/code.md says of each that fails what it lacks here.
//!
//! With `INSTA_UPDATE=always` the test writes the answers that it gets.

use std::path::PathBuf;

use lockhouse_tests::{EARLIER_PRODUCTS_SERVERS, Lockhouse, Table, equal};
use serde_json::{Value, json};

const FILES: [&str; 3] = ["coordinator", "execution_system", "code_executor"];

fn path(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/predecessors")).join(format!("{file}.json"))
}

/// Returns what an AI client reads of an answer: without ids, times and sizes.
fn shown(answer: &Value) -> Value {
    let parts = ["status", "value", "note", "stdout", "stderr", "error"].into_iter();
    let mut shown: Value = parts
        .filter_map(|part| Some((part.to_owned(), answer.get(part)?.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let calls = answer["calls"].as_array().into_iter().flatten();
    let text = |call: &Value, part: &str| call[part].as_str().unwrap_or_default().to_owned();
    let call = |call| format!("{}.{} {}", text(call, "server"), text(call, "tool"), text(call, "outcome"));
    shown["calls"] = calls.map(call).collect();
    if shown["value"]["timestamp"].is_string() {
        shown["value"]["timestamp"] = json!("[the time]");
    }
    shown
}

#[test]
fn fragments_of_earlier_products_have_these_answers() {
    let mut table = Table::new("fragments of earlier products");
    for file in FILES {
        let mut fragments: Vec<Value> =
            serde_json::from_str(&std::fs::read_to_string(path(file)).unwrap()).unwrap();
        for fragment in &mut fragments {
            // New servers for each fragment: what an earlier one did changes nothing.
            let lockhouse = Lockhouse::with_canned(&EARLIER_PRODUCTS_SERVERS, "any");
            let lines = fragment["code"].as_array().unwrap().iter();
            let code: String = lines.map(|line| format!("{}\n", line.as_str().unwrap())).collect();
            let answer = shown(&lockhouse.answer(fragment["language"].as_str().unwrap(), &code));
            table.row(format!("{file}: {}", fragment["name"]), equal(&answer, &fragment["answer"]));
            fragment["answer"] = answer;
        }
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(path(file), format!("{:#}\n", json!(fragments))).unwrap();
        }
    }
    table.finish();
}
