use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::ResultShapes;
use super::shape::Shape;
use super::store::parse_shape;
use crate::Tool;

/// Returns the schema that is inferred from these results of a tool, which was called without arguments.
fn observed(results: &[Value]) -> Value {
    let mut shape = Shape::default();
    for result in results {
        let envelope = json!({"structured": result}).to_string();
        shape.merge(parse_shape(envelope.as_bytes(), b"{}").expect("a shape"));
    }
    shape.confirmed().schema()
}

#[test]
fn fields_are_typed_and_optional_if_sometimes_absent() {
    let issues = json!({"total": 2, "issues": [
        {"number": 1, "title": "One", "labels": ["bug"], "closed_at": null, "score": 1},
        {"number": 2, "title": "Two", "labels": [], "closed_at": "2026", "score": 1.5, "draft": true},
    ]});
    assert_eq!(
        observed(&[issues.clone(), issues]),
        json!({"type": "object", "required": ["total", "issues"], "properties": {
            "total": {"type": "integer"},
            "issues": {"type": "array", "items": {
                "type": "object", "required": ["number", "title", "labels", "closed_at", "score"], "properties": {
                    "number": {"type": "integer"}, "title": {"type": "string"},
                    "labels": {"type": "array", "items": {"type": "string"}},
                    "closed_at": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "score": {"type": "number"}, "draft": {"type": "boolean"},
                },
            }},
        }})
    );
}

#[test]
fn a_field_seen_once_is_not_shown() {
    assert_eq!(observed(&[json!({"anna": "here", "total": 1})]), json!({"type": "object"}));
    let twice = observed(&[json!({"anna": "here", "total": true}), json!({"bert": "there", "total": false})]);
    assert_eq!(twice["properties"], json!({"total": {"type": "boolean"}}));
}

#[test]
fn keys_that_are_data_are_never_shown() {
    let map = |values: Value| json!({"type": "object", "additionalProperties": values});
    for (why, result, values) in [
        ("addresses", json!({"anna@example.com": 1, "total": 2}), json!({"type": "integer"})),
        ("days", json!({"2026-11-21": "x"}), json!({"type": "string"})),
        ("numbers of accounts", json!({"acct_10293": true}), json!({"type": "boolean"})),
        ("counts of people", json!({"anna": 1, "bert": 2, "carl": 3}), json!({"type": "integer"})),
        ("a record for each", json!({"anna": {}, "bert": {}}), json!({"type": "object"})),
        ("one that is a value elsewhere", json!({"anna": "x", "owner": "Anna"}), json!({"type": "string"})),
    ] {
        assert_eq!(observed(&[result.clone(), result]), map(values), "{why}");
    }
    let different = [json!({"anna": "x"}), json!({"bert": "y"}), json!({"anna": "x"})];
    assert_eq!(observed(&different), map(json!({"type": "string"})), "no name in common");
    let letters = || ('a'..='z').chain('A'..='Z').chain('a'..='z');
    let many: serde_json::Map<String, Value> =
        letters().zip(letters().skip(7)).map(|(one, other)| (format!("k{one}{other}"), json!("x"))).collect();
    assert_eq!(observed(&[many.clone().into(), many.into()]), map(json!({"type": "string"})), "many names");
}

#[test]
fn keys_that_equal_an_argument_make_a_map() {
    let envelope = br#"{"structured": {"anna": "x", "state": "y"}}"#;
    let mut shape = parse_shape(envelope, br#"{"users": ["Anna"]}"#).expect("a shape");
    shape.merge(parse_shape(envelope, br#"{"users": ["Anna"]}"#).expect("a shape"));
    assert_eq!(
        shape.confirmed().schema(),
        json!({"type": "object", "additionalProperties": {"type": "string"}})
    );
}

#[test]
fn text_results_are_strings_and_other_content_is_ignored() {
    let of = |envelope: &str| parse_shape(envelope.as_bytes(), b"{}").map(|shape| shape.schema());
    assert_eq!(of(r#"{"text": "{\"a\": 1}"}"#), Some(json!({"type": "string"})));
    assert_eq!(of(r#"{"content": [{"type": "image"}]}"#), None);
    assert_eq!(of(r#"{"content": []}"#), None);
    assert_eq!(of("nothing"), None);
}

#[test]
fn text_that_is_decoded_has_the_shape_of_its_value() {
    let of =
        |envelope: Value| parse_shape(envelope.to_string().as_bytes(), b"{}").map(|shape| shape.schema());
    let list = json!({"type": "array", "items": {"type": "integer"}});
    assert_eq!(of(json!({"text": " [1, 2]\n", "decode": true})), Some(list.clone()));
    assert_eq!(of(json!({"text": "null", "decode": true})), Some(json!({"type": "null"})));
    for text in ["1", "\"a\"", "[1", "no [1]", ""] {
        assert_eq!(of(json!({"text": text, "decode": true})), Some(json!({"type": "string"})), "{text:?}");
    }
    let two = json!([{"type": "text", "text": "[1]"}, {"type": "text", "text": "[2]"}]);
    assert_eq!(of(json!({"content": two, "decode": true})), Some(json!({"type": "array", "items": list})));
    let texts = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(of(json!({"content": two})), Some(texts));
    assert_eq!(
        of(json!({"text": "[1]", "decode": true, "list": true})),
        Some(json!({"type": "array", "items": list}))
    );
}

fn tool(description: &str) -> Tool {
    Tool::from_json(&json!({"name": "look", "description": description}).to_string()).expect("a tool")
}

fn record_result(shapes: &Arc<ResultShapes>, tool: &Tool, result: &Value) {
    let observation = shapes.observe(tool, b"{}").expect("an observation");
    observation.record_now(json!({"structured": result}).to_string().as_bytes());
}

#[test]
fn shapes_are_kept_until_the_definition_changes_or_they_are_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shapes.json");
    let open = |is_enabled| Arc::new(ResultShapes::new(Some(path.clone()), is_enabled, None));
    let (one, result) = (tool("one"), json!({"id": 1, "owner": "anna-secret"}));
    let shapes = open(true);
    assert_eq!(shapes.observed_schema(&one), None);
    record_result(&shapes, &one, &result);
    assert!(!path.exists() || !std::fs::read_to_string(&path).expect("text").contains("owner"));
    record_result(&shapes, &one, &result);
    let again = open(true);
    let observed = again.observed_schema(&one).expect("a shape");
    assert_eq!(observed["properties"]["owner"], json!({"type": "string"}));
    assert_eq!(again.result_count(&one), 2);
    assert!(!std::fs::read_to_string(&path).expect("text").contains("secret"));
    assert_eq!(again.observed_schema(&tool("another")), None, "another definition");
    assert_eq!(open(false).observed_schema(&one), None, "switched off");
    assert!(open(false).observe(&one, b"{}").is_none());
    assert_eq!(again.forget(None).expect("a file"), 1);
    assert_eq!(open(true).observed_schema(&one), None);
    for broken in [
        "",
        "[",
        r#"{"version":2,"tools":{}}"#,
        r#"{"version":1,"tools":{"look":{"definition":"x","results":1,"shape":{"object":{"record":{"seen":2,"fields":[{"name":"anna@x.org","seen":2,"shape":{}}]}}}}}}"#,
    ] {
        std::fs::write(&path, broken).expect("a file");
        assert_eq!(open(true).result_count(&one), 0, "{broken}");
    }
}

#[test]
fn a_file_that_another_process_has_replaced_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shapes.json");
    let open = || Arc::new(ResultShapes::new(Some(path.clone()), true, None));
    let (one, other, tool) = (open(), open(), tool("one"));
    let fields = |shapes: &Arc<ResultShapes>| {
        let schema = shapes.observed_schema(&tool).expect("a shape");
        schema["properties"].as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>())
    };
    // Each sees each field once before the other one replaces the file, and again after it.
    for result in [json!({"id": 1, "a": 1}), json!({"id": 1, "b": "x"})].iter().cycle().take(4) {
        record_result(&one, &tool, result);
        record_result(&other, &tool, result);
    }
    let expected = Some(["id", "a", "b"].map(str::to_owned).to_vec());
    assert_eq!(fields(&one).map(sorted), expected.map(sorted));
    assert_eq!(one.observed_schema(&tool), other.observed_schema(&tool));
    assert_eq!(one.observed_schema(&tool), open().observed_schema(&tool));
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn tools_with_an_output_schema_are_not_observed() {
    let definition = json!({"name": "look", "outputSchema": {"type": "object"}}).to_string();
    let declared = Tool::from_json(&definition).expect("a tool");
    assert!(Arc::new(ResultShapes::new(None, true, None)).observe(&declared, b"{}").is_none());
}

#[test]
fn few_of_many_results_are_observed() {
    let (shapes, tool) = (Arc::new(ResultShapes::new(None, true, None)), tool(""));
    let count = (0..10_000).filter(|_| shapes.observe(&tool, b"{}").is_some()).count();
    assert!((16..40).contains(&count), "{count}");
}

/// Generates text that looks like personal data, as it occurs in keys and values.
fn datum() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z][a-z]{2,8}",
        "[a-z]{3,8}@[a-z]{3,8}\\.org",
        "[A-Z][a-z]{2,8} [A-Z][a-z]{2,8}",
        "\\+[0-9]{9,12}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "[a-z]{2,6}[0-9]{3,9}",
        "[0-9a-f]{8}-[0-9a-f]{4}",
    ]
}

fn result(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        datum().prop_map(Value::from)
    ];
    leaf.prop_recursive(depth, 60, 6, |inner| {
        let key = prop_oneof![datum(), "f_[a-z]{1,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Adds all property names in a schema to `found`.
fn names(schema: &Value, found: &mut HashSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        found.extend(properties.keys().cloned());
        properties.values().for_each(|property| names(property, found));
    }
    for below in ["items", "additionalProperties"] {
        schema.get(below).into_iter().for_each(|below| names(below, found));
    }
    schema.get("anyOf").and_then(Value::as_array).into_iter().flatten().for_each(|one| names(one, found));
}

fn values(value: &Value, found: &mut HashSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.to_ascii_lowercase())),
        Value::Array(elements) => elements.iter().for_each(|element| values(element, found)),
        Value::Object(members) => members.values().for_each(|member| values(member, found)),
        _ => {}
    }
}

proptest! {
    #[test]
    fn no_value_and_no_key_that_is_data_is_ever_shown(result in result(4), times in 1..4_usize) {
        let shape = observed(&vec![result.clone(); times]);
        let (mut shown_names, mut written) = (HashSet::new(), HashSet::new());
        names(&shape, &mut shown_names);
        values(&result, &mut written);
        for name in shown_names {
            prop_assert!(super::field_names::is_field_name(&name), "{name}: {shape}");
            prop_assert!(!written.contains(&name.to_ascii_lowercase()), "{name}: {shape}");
        }
        let text = shape.to_string();
        for value in written.iter().filter(|value| value.len() > 7 && value.contains(['@', '+', '-', ' '])) {
            prop_assert!(!text.to_ascii_lowercase().contains(value.as_str()), "{value}: {text}");
        }
    }

    #[test]
    fn merged_shapes_stay_small_in_any_order(results in prop::collection::vec(result(4), 0..12)) {
        let schema = observed(&results);
        prop_assert!(schema.to_string().len() < 100_000);
    }
}

/// Measures the time that the observation of a result of 50 kB takes. Run by `make bench-shapes`.
#[test]
#[ignore = "a measure, of a release build"]
fn cost_of_observing_fifty_kilobytes() {
    let (shapes, tool) = (Arc::new(ResultShapes::new(None, true, None)), tool(""));
    let row = json!({"id": 1, "title": "A title of some length", "state": "open", "labels": ["a", "b"], "user": {"login": "x"}});
    let rows: Vec<Value> = (0..400).map(|_| row.clone()).collect();
    let reply = json!({"structured": {"total": 400, "items": rows}}).to_string().into_bytes();
    let each = |times: u32, mut work: Box<dyn FnMut() + '_>| {
        let started = std::time::Instant::now();
        (0..times).for_each(|_| work());
        started.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    };
    let observed = each(100_000, Box::new(|| drop(shapes.observe(&tool, b"{}"))));
    let copied = each(10_000, Box::new(|| drop(std::hint::black_box(reply.clone()))));
    let recorded = each(200, Box::new(|| drop(parse_shape(&reply, b"{}"))));
    println!(
        "{} bytes: observed {observed:.2} us, copied {copied:.2} us, looked at elsewhere {recorded:.0} us",
        reply.len()
    );
}
