//! Tests that exported audit records are valid events of the Open Cybersecurity Schema Framework (OCSF).

use lockhouse_tests::{Table, ensure};
use serde_json::Value;

use crate::audit::commands::example_log;

/// The class API Activity of OCSF 1.5.0 with the profile `security_control` as JSON Schema, without titles and
/// descriptions. The Python package `ocsf-json-schema` 1.2.0 generated it from the published schema.
const SCHEMA: &str = include_str!("ocsf_api_activity.schema.json");

#[test]
fn the_ocsf_export_conforms_to_the_api_activity_schema() {
    let (lockhouse, answers) = example_log();
    let exported = lockhouse.run(&["audit", "export", "--format", "ocsf"]);
    assert_eq!(exported.status, Some(0), "{exported:?}");
    let events: Vec<Value> =
        exported.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut table = Table::new("events of OCSF");
    let schema = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (position, event) in events.iter().enumerate() {
        let faults: Vec<String> = validator.iter_errors(event).map(|fault| fault.to_string()).collect();
        table.row(format!("{position}: accepted by the schema"), ensure(faults.is_empty(), faults));
        let number = |name: &str| event[name].as_u64().unwrap();
        let is_typed = number("type_uid") == 6003 * 100 + number("activity_id");
        table.row(format!("{position}: its type"), ensure(is_typed, event));
        let of_2024 = 1_700_000_000_000;
        table.row(format!("{position}: milliseconds"), ensure(number("time") > of_2024, event));
    }
    let mut without = events[0].clone();
    without.as_object_mut().unwrap().remove("src_endpoint");
    table.row("control: not without a source", ensure(!validator.is_valid(&without), without));
    let reported: Vec<(&str, &str, &str)> = events
        .iter()
        .map(|event| {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (text("/api/operation"), text("/action"), text("/status_code"))
        })
        .collect();
    let expected = [
        ("add", "Allowed", "ok"),
        ("fail", "Allowed", "tool_failed"),
        ("delete_everything", "Denied", "denied"),
        ("run_code", "Allowed", "ok"),
        ("text", "Allowed", "ok"),
        ("run_code", "Allowed", "ok"),
    ];
    table.row("one for each call and execution", ensure(reported == expected, &reported));
    let of_one = &answers[1]["execution"];
    table.row("by execution", ensure(&events[4]["metadata"]["correlation_uid"] == of_one, &events[4]));
    let has_shape = events[0].pointer("/api/request/data/shape/a").is_some_and(|kind| kind == "integer");
    table.row("with the arguments' shape", ensure(has_shape, &events[0]));
    table.finish();
}
