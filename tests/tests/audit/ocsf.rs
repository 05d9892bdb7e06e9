//! Tests that exported audit records are valid events of the Open Cybersecurity Schema Framework (OCSF).

use lockhouse_tests::{Table, ensure, equal};
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

/// The classes of administrative records, as [`SCHEMA`], with the profile `host` and without the attributes that no event has.
const ADMINISTRATION: &str = include_str!("ocsf_administration.schemas.json");

#[test]
fn every_kind_of_record_is_exported_in_a_class_whose_schema_accepts_it() {
    let of_call = r#""execution":"e","call":"c","server":"s","tool":"t","digest":"d","outcome":"once""#;
    let act = r#""host":"pc1","uid":1000,"pid":7,"login_uid":1001"#;
    let rows: &[(&str, String, &str, u64)] = &[
        ("an approval", format!(r#""event":"approval",{of_call}"#), "6003 99", 1),
        ("a question", r#""event":"question","execution":"e","server":"s","outcome":"decline""#.into(), "6003 99", 1),
        ("a rejected run", r#""event":"refusal","execution":"e","outcome":"Busy","reason":"r""#.into(), "6003 99", 3),
        ("a policy", format!(r#""event":"change","target":"policy","file":"/p","action":"allow a.b","outcome":"changed","severity":"warning",{act}"#), "3004 3", 3),
        ("a new policy", format!(r#""event":"change","target":"policy","file":"/p","action":"init","outcome":"changed",{act}"#), "3004 1", 3),
        ("requirements", format!(r#""event":"change","target":"requirements","file":"/r","action":"removed","outcome":"changed",{act}"#), "3004 4", 4),
        ("a change that failed", format!(r#""event":"change","target":"client","file":"/c","action":"init","outcome":"failed","reason":"r",{act}"#), "3004 1", 1),
        ("packages", format!(r#""event":"change","target":"packages","file":"/l","action":"add pandas","outcome":"changed",{act}"#), "6002 1", 3),
        ("removed packages", format!(r#""event":"change","target":"packages","file":"/l","action":"remove pandas","outcome":"changed",{act}"#), "6002 2", 3),
        ("a reload of an earlier version", r#""event":"reload","cause":"signal","outcome":"accepted""#.into(), "6002 8", 1),
        ("a reload that failed", format!(r#""event":"reload","cause":"operator","outcome":"refused","reason":"r",{act}"#), "6002 8", 3),
        ("a token", format!(r#""event":"token","token":"desk","outcome":"created",{act}"#), "3001 1", 3),
        ("a revoked token", format!(r#""event":"token","token":"desk","outcome":"revoked",{act}"#), "3001 5", 3),
        ("a login", format!(r#""event":"login","server":"s","outcome":"granted",{act}"#), "3002 1", 3),
        ("a logout", format!(r#""event":"login","server":"s","outcome":"logged out",{act}"#), "3002 2", 1),
        ("a refused credential", format!(r#""event":"authentication","through":"http","outcome":"refused","reason":"r","left_out":3,{act}"#), "3002 1", 3),
        ("a login at the page", format!(r#""event":"authentication","through":"page","client":"ann","outcome":"accepted",{act}"#), "3002 1", 1),
        ("definitions", format!(r#""event":"definition","server":"s","outcome":"accepted","digest":"d",{act}"#), "3004 3", 3),
        ("an ended run", format!(r#""event":"termination","target":"run","execution":"e","through":"operator","outcome":"ended",{act}"#), "6003 4", 3),
        ("a stopped process", format!(r#""event":"termination","target":"process","through":"administrator","outcome":"ended",{act}"#), "6002 4", 4),
        ("a server", format!(r#""event":"server","server":"s","outcome":"started",{act}"#), "6002 3", 1),
        ("a server that is lost", format!(r#""event":"server","server":"s","outcome":"lost","exit_status":1,{act}"#), "6002 4", 3),
        ("a process", format!(r#""event":"process","command":"serve","outcome":"started",{act}"#), "6002 3", 1),
        ("its end", format!(r#""event":"process","command":"serve","outcome":"stopped","reason":"a signal",{act}"#), "6002 4", 1),
        ("a host that is drained", format!(r#""event":"process","command":"serve","through":"operator","outcome":"draining",{act}"#), "6002 7", 1),
        ("a host that serves again", format!(r#""event":"process","command":"serve","through":"operator","outcome":"serving",{act}"#), "6002 6", 1),
        ("an action", format!(r#""event":"action","action":"reload","client":"ann","through":"page","outcome":"requested",{act}"#), "6003 99", 1),
        ("a gap", r#""event":"gap","since":"2026-01-31T12:00:00Z","records":2,"reason":"r""#.into(), "1008 99", 4),
        ("a clock", r#""event":"clock","from":"2026-01-31T12:00:00Z","to":"2026-01-31T13:00:00Z","difference_s":3600.0"#.into(), "1008 99", 3),
    ];
    let lockhouse = lockhouse_tests::Lockhouse::new();
    let records: String = rows
        .iter()
        .enumerate()
        .map(|(seq, (_, members, ..))| {
            format!(
                "{{\"seq\":{seq},\"prev\":\"0\",\"time\":\"2026-01-31T12:00:{seq:02}.000000Z\",{members}}}\n"
            )
        })
        .collect();
    let segment = "state/lockhouse/audit/2026-01-31-019c1350000070008000000000000000.jsonl";
    lockhouse.file(segment, records);
    let exported = lockhouse.run(&["audit", "export", "--format", "ocsf"]);
    let events: Vec<Value> =
        exported.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut table = Table::new("kinds of records as events of OCSF");
    table.row("each has one event", equal(events.len(), rows.len()));
    let mut schemas: Vec<Value> = serde_json::from_str(ADMINISTRATION).unwrap();
    schemas.push(serde_json::from_str(SCHEMA).unwrap());
    for ((what, _, class, severity), event) in rows.iter().zip(&events) {
        let of_class =
            |schema: &&Value| schema.pointer("/properties/class_uid/const") == Some(&event["class_uid"]);
        let schema = schemas.iter().find(of_class).unwrap_or(&Value::Bool(false));
        let validator = jsonschema::validator_for(schema).unwrap();
        let faults: Vec<String> = validator.iter_errors(event).map(|fault| fault.to_string()).collect();
        table.row(format!("{what}: accepted by the schema"), ensure(faults.is_empty(), (faults, event)));
        let found = format!("{} {}", event["class_uid"], event["activity_id"]);
        table.row(format!("{what}: class and activity"), equal(found.as_str(), *class));
        table.row(format!("{what}: severity"), equal(event["severity_id"].as_u64(), Some(*severity)));
        let hosts = ["/device/hostname", "/src_endpoint/hostname"];
        let has_host = hosts.iter().any(|pointer| event.pointer(pointer).is_some_and(|host| host == "pc1"));
        let is_act = event["unmapped"]["login_uid"] == 1001;
        table.row(format!("{what}: host and user"), ensure(has_host == is_act, event));
    }
    let mut without = events[3].clone();
    without.as_object_mut().unwrap().remove("entity");
    let of_change = schemas.iter().find(|schema| schema["properties"]["class_uid"]["const"] == 3004).unwrap();
    let validator = jsonschema::validator_for(of_change).unwrap();
    table.row("control: not without its entity", ensure(!validator.is_valid(&without), without));
    let queried = lockhouse.run(&["audit", "query", "--event", "change", "--json"]);
    table.row("query finds a kind", equal(queried.stdout.lines().count(), 6));
    let tail = lockhouse.run(&["audit", "tail", "-n", "100"]);
    for words in [
        "changed by user 1000 (logged in as 1001), allow a.b, /p",
        "lost by user 1000",
        "through administrator",
    ] {
        table.row(format!("tail shows {words}"), ensure(tail.stdout.contains(words), &tail.stdout));
    }
    table.finish();
}
