//! Tests of the events in the audit log, and of the fields of their records.

use lockhouse_tests::{LANGUAGES, Lockhouse, Table, ensure};
use serde_json::{Value, json};

use crate::audit::{ADD, POLICY, assert_verified};

fn records_of_event<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["event"] == event).collect()
}

fn has(record: &Value, names: &[&str]) -> Result<(), String> {
    let missing: Vec<&&str> = names.iter().filter(|name| record.get(**name).is_none()).collect();
    ensure(missing.is_empty(), (missing, record))
}

#[test]
fn an_execution_is_recorded_from_start_to_end() {
    let programs = [
        "from mcp_tools import call_tool, ToolError\nfrom mcp_tools.fixture import add\nx = add(a=1, b=2)['sum']\n\
         try: call_tool('fixture', 'delete_everything', {})\nexcept ToolError: pass\nx",
        "const x = (await fixture.add({a: 1, b: 2})).sum\n\
         try { await callTool('fixture', 'delete_everything', {}) } catch (e) {}\nx",
    ];
    let mut table = Table::new("the records of one execution");
    for (language, code) in LANGUAGES.into_iter().zip(programs) {
        let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
        let answer = lockhouse.answer(language, code);
        assert_eq!(answer["value"], 3, "{answer}");
        let records = lockhouse.records();
        let events: Vec<&str> = records.iter().filter_map(|record| record["event"].as_str()).collect();
        let expected = ["open", "execution", "call", "outcome", "denial", "end", "close"];
        table.row(format!("{language}: in this order"), ensure(events == expected, &events));
        let chain = ["seq", "prev", "time"];
        for record in &records {
            table.row(format!("{language}: {} is in the chain", record["event"]), has(record, &chain));
        }
        let [call] = records_of_event(&records, "call")[..] else { panic!("one call: {records:?}") };
        let about = ["execution", "call", "server", "tool"];
        let of_call = ["arguments", "arguments_hash", "arguments_bytes", "decision", "rule"];
        table.row(format!("{language}: call"), has(call, &[&about[..], &of_call].concat()));
        let shape = json!({"a": "integer", "b": "integer"});
        table.row(format!("{language}: shape"), ensure(call["arguments"] == shape, call));
        let outcome = records_of_event(&records, "outcome")[0];
        let of_outcome = ["outcome", "ms", "result_bytes"];
        table.row(format!("{language}: outcome"), has(outcome, &[&about[..], &of_outcome].concat()));
        table.row(
            format!("{language}: call and outcome have the same id"),
            ensure(call["call"] == outcome["call"], outcome),
        );
        let denial = records_of_event(&records, "denial")[0];
        table.row(format!("{language}: denial"), has(denial, &[&about[..], &["reason", "rule"]].concat()));
        let rule = denial["rule"].as_str().unwrap_or_default();
        table.row(format!("{language}: the rule's place"), ensure(rule.ends_with("policy.toml:4"), denial));
        let execution = records_of_event(&records, "execution")[0];
        let of_execution = ["execution", "language", "servers", "code", "code_bytes"];
        table.row(format!("{language}: execution"), has(execution, &of_execution));
        let end = records_of_event(&records, "end")[0];
        let ended = end["status"] == "ok" && end["calls"] == 2 && end["wall_ms"].is_f64();
        table.row(format!("{language}: end"), ensure(ended, end));
        for record in [call, outcome, denial, execution, end] {
            let same = record["execution"] == answer["execution"];
            table.row(format!("{language}: {} is of the execution", record["event"]), ensure(same, record));
        }
        assert_verified(&lockhouse);
    }
    table.finish();
}

#[test]
fn execution_identifiers_are_ordered_by_time() {
    let lockhouse = Lockhouse::with_fixture();
    let code = "from mcp_tools.fixture import add\nfor i in range(5): add(a=i, b=1)";
    let _ = lockhouse.answer("python", code);
    let records = lockhouse.records();
    let calls: Vec<&str> =
        records_of_event(&records, "call").iter().filter_map(|call| call["call"].as_str()).collect();
    assert!(calls.is_sorted() && calls.len() == 5, "{calls:?}");
    assert!(calls.iter().all(|id| id.len() == 36 && &id[14..15] == "7"), "version 7: {calls:?}");
}

#[tokio::test]
async fn the_client_of_an_execution_is_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3);
    assert_eq!(session.close().await.status, Some(0));
    let records = lockhouse.records();
    for event in ["execution", "call", "outcome"] {
        assert_eq!(records_of_event(&records, event)[0]["client"], "lockhouse-tests", "{records:?}");
    }
    assert_verified(&lockhouse);
}

#[test]
fn a_command_without_an_execution_creates_no_segment() {
    let lockhouse = Lockhouse::with_fixture();
    assert_eq!(lockhouse.run(&["tools", "list"]).status, Some(0));
    assert!(lockhouse.segments().is_empty(), "{:?}", lockhouse.segments());
    let _ = lockhouse.answer("python", "1");
    assert_eq!(lockhouse.segments().len(), 1, "control");
}

#[test]
fn code_is_stored_once_by_hash_unless_disabled() {
    let kept = |lockhouse: &Lockhouse| {
        let entries = std::fs::read_dir(lockhouse.audit_directory().join("code")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let lockhouse = Lockhouse::with_fixture();
    for _ in 0..2 {
        let _ = lockhouse.answer("python", ADD);
    }
    let _ = lockhouse.answer("typescript", "1 + 1");
    let files = kept(&lockhouse);
    assert_eq!(files.len(), 2, "{files:?}");
    let python = files.iter().find(|path| path.extension().is_some_and(|ending| ending == "py")).unwrap();
    assert_eq!(std::fs::read_to_string(python).unwrap(), ADD);
    let records = lockhouse.records();
    assert_eq!(
        records_of_event(&records, "execution")[0]["code"],
        python.file_stem().unwrap().to_str().unwrap()
    );
    let without = Lockhouse::with_fixture().config("[audit]\ncode = false\n");
    let _ = without.answer("python", ADD);
    assert!(kept(&without).is_empty() && !without.records().is_empty());
}
