use serde_json::json;

use super::compile::{REFERENCE_DEPTH_MAX, reference_count_and_depth};
use super::*;

fn tool(schema: &Value) -> Tool {
    Tool::from_json(&json!({"name": "log", "inputSchema": schema}).to_string()).expect("a tool")
}

fn check_outcome(schema: &Value, arguments: &Value) -> String {
    check_outcome_and_stall(schema, arguments).0
}

/// Validates arguments. Returns `fits` or the error message, and the longest time for which the validation blocked
/// the async thread.
fn check_outcome_and_stall(schema: &Value, arguments: &Value) -> (String, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (schemas, slot) = (SchemaCache::default(), BlockingSlot::default());
    let server = ServerName::new("git").expect("a name");
    let bytes = arguments.to_string().len();
    let arguments = arguments.as_object().cloned().expect("an object");
    let tool = tool(schema);
    let checked = schemas.check_arguments(
        &server,
        &tool,
        NamedArguments { values: arguments.clone(), ..NamedArguments::default() },
        bytes,
        &slot,
        Language::Python,
    );
    let mut longest = Duration::ZERO;
    let beside = async {
        loop {
            let began = std::time::Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            longest = longest.max(began.elapsed());
        }
    };
    let checked = runtime.block_on(async {
        tokio::select! {
            checked = checked => checked,
            () = beside => unreachable!("it goes on"),
        }
    });
    let words = match checked {
        Ok(same) => {
            assert_eq!(same, arguments);
            "fits".into()
        }
        Err(failure) => failure.message,
    };
    // A validation may still be running on a blocking thread.
    runtime.shutdown_background();
    (words, longest)
}

#[test]
fn nullable_values_accept_null_as_their_signature_says() {
    let schema = json!({"properties": {
        "a": {"type": "string", "nullable": true},
        "b": {"enum": ["x"], "nullable": true},
        "c": {"type": "array", "items": {"$ref": "#/$defs/n"}},
        "nullable": {"type": "boolean"},
        "default": {"type": "object", "nullable": true, "properties": {"nullable": true}},
    }, "$defs": {"n": {"type": "integer", "nullable": true}}});
    let fits = json!({"a": null, "b": null, "c": [1, null], "nullable": true, "default": null});
    assert_eq!(check_outcome(&schema, &fits), "fits");
    let message = check_outcome(&schema, &json!({"a": 5}));
    assert!(message.starts_with("log: /a must be null or string, and is 5"), "{message}");
    assert_ne!(check_outcome(&schema, &json!({"nullable": null})), "fits");
}

fn filter() -> Value {
    json!({
        "type": "object",
        "properties": {
            "count": {"type": "integer", "maximum": 10, "default": 3},
            "state": {"enum": ["open", "closed"]},
            "filter": {
                "type": "object", "properties": {"owner": {"type": "string"}, "repo": {"type": ["string", "null"]}},
                "required": ["owner"], "additionalProperties": false,
            },
            "when": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "block": {"oneOf": [{"$ref": "#/$defs/text"}, {"type": "null"}]},
            "id": {"type": "string", "pattern": "^[a-z]+$"},
            "mail": {"type": "string", "format": "email"},
        },
        "$defs": {"text": {
            "type": "object", "properties": {"kind": {"const": "text"}, "body": {"type": "string"}}, "required": ["kind"],
        }},
    })
}

#[test]
fn a_validation_error_names_the_place_the_expectation_and_a_suggestion() {
    let validation_error = |arguments: Value| {
        let line = check_outcome(&filter(), &arguments);
        line.split_once(": log(").map_or(line.clone(), |(beginning, _)| beginning.to_owned())
    };
    let rows = [
        (json!({}), "fits"),
        (json!({"count": 3, "filter": {"owner": "x", "repo": null}, "when": 3, "mail": "none"}), "fits"),
        (json!({"count": "three"}), r#"log: /count must be integer, and is "three""#),
        (json!({"count": 11}), "log: /count is not valid: it is greater than the maximum of 10"),
        (
            json!({"state": "opne"}),
            r#"log: /state must be one of "open", "closed", and is "opne"; did you mean open?"#,
        ),
        (json!({"filter": {"repo": "x"}}), "log: /filter needs owner; it takes owner, repo"),
        (
            json!({"filter": {"owner": "x", "rep": "y"}}),
            r#"log: /filter has no "rep"; did you mean repo?; it takes owner, repo"#,
        ),
        (json!({"filter": {"owner": 3}}), "log: /filter/owner must be string, and is 3"),
        (json!({"when": []}), "log: /when must be string or integer, and is an array"),
        (json!({"block": {"kind": "text", "body": 3}}), "log: /block/body must be string, and is 3"),
        (json!({"id": "A"}), r#"log: /id must match the pattern ^[a-z]+$, and is "A""#),
    ];
    for (arguments, expected) in rows {
        assert_eq!(validation_error(arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn error_messages_are_short() {
    let long = "é\n\u{202e}".repeat(2_000);
    let schema = json!({"properties": {"x": {"enum": [long, ["b"]]}, "y": {"pattern": "a".repeat(1_000)}}});
    for arguments in [json!({"x": format!("{long}x")}), json!({"y": long}), json!({"x": vec![1; 1_000]})] {
        let line = check_outcome(&schema, &arguments);
        assert!(line.chars().count() < 1_500 && !line.contains(['\n', '\u{202e}']), "{line}");
        assert!(line.starts_with("log: /"), "{line}");
    }
}

#[test]
fn with_an_unusable_schema_only_names_are_checked() {
    let rows = [
        ("invalid", json!({"properties": {"x": {"type": "sting"}}})),
        (
            "of another dialect",
            json!({"$schema": "https://example.com/mine", "properties": {"x": {"type": "string"}}}),
        ),
        (
            "with a remote reference",
            json!({"properties": {"x": {"$ref": "https://example.com/schema.json"}}}),
        ),
        ("with a file's reference", json!({"properties": {"x": {"$ref": "file:///etc/passwd"}}})),
        ("with a reference to nothing", json!({"properties": {"x": {"$ref": "#/$defs/none"}}})),
        ("with a pattern that needs backtracking", json!({"properties": {"x": {"pattern": "^(?!a).*$"}}})),
        ("with a pattern that is too large", json!({"properties": {"x": {"pattern": "(.{1,500}){1,500}"}}})),
        (
            "that is too large",
            json!({"properties": {"x": {"type": "string"}}, "description": "x".repeat(70_000)}),
        ),
        ("that is too deep", chain(2_000)),
        ("none", Value::Null),
    ];
    for (which, schema) in rows {
        assert_eq!(check_outcome(&schema, &json!({"x": 3})), "fits", "a schema {which}");
    }
}

#[test]
fn dialects_differ() {
    // A tuple is `items` in draft-07, and `prefixItems` since 2020-12.
    let schema = |dialect: &str| json!({"$schema": dialect, "properties": {"x": {"items": [{"type": "string"}], "prefixItems": [{"type": "null"}]}}});
    let first = |dialect: &str| check_outcome(&schema(dialect), &json!({"x": ["a"]}));
    assert_eq!(first("http://json-schema.org/draft-07/schema#"), "fits");
    let current = json!({"properties": {"x": {"prefixItems": [{"type": "null"}]}}});
    assert!(check_outcome(&current, &json!({"x": ["a"]})).contains("/x/0 must be null"));
}

fn chain(length: usize) -> Value {
    let mut definitions = Map::new();
    for n in 0..length {
        definitions.insert(format!("a{n}"), json!({"$ref": format!("#/$defs/a{}", n + 1)}));
    }
    definitions.insert(format!("a{length}"), json!({"type": "string"}));
    json!({"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/a0"}}})
}

/// Returns a schema with a chain of `references` references. Each reference is nested in `levels` schemas, each of
/// which has the keyword `keyword`.
fn deep(keyword: &str, references: usize, levels: usize) -> Value {
    let nested = |inner: Value| {
        (0..levels).fold(inner, |inner, _| match keyword {
            "properties" => json!({"properties": {"c": inner}}),
            "anyOf" => json!({"anyOf": [inner, false]}),
            keyword => json!({keyword: inner}),
        })
    };
    let mut definitions = Map::new();
    for n in 0..references {
        definitions.insert(format!("a{n}"), nested(json!({"$ref": format!("#/$defs/a{}", n + 1)})));
    }
    definitions.insert(format!("a{references}"), json!({"type": "string"}));
    json!({"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/a0"}}})
}

#[test]
fn the_deepest_accepted_schemas_fit_the_stack() {
    let mut value = json!("s");
    for _ in 0..100 {
        value = json!({"c": value});
    }
    for (keyword, references, levels) in
        [("not", 30, 28), ("items", 30, 28), ("anyOf", 30, 13), ("properties", 30, 13), ("not", 1_000, 0)]
    {
        let schema = deep(keyword, references, levels);
        let (references, depth) = reference_count_and_depth(&schema);
        let compiled = (references + 1) * depth <= REFERENCE_DEPTH_MAX;
        check_outcome(&schema, &json!({"x": value}));
        assert!(compiled || references > 900, "{keyword}: {references} references, {depth} levels");
    }
}

/// Returns a schema in which each of `depth` levels has two alternatives, so that a value can match in
/// 2^`depth` ways.
fn doubled(keyword: &str, depth: usize) -> Value {
    let mut definitions = Map::new();
    for n in 0..depth {
        let next = format!("#/$defs/a{}", n + 1);
        definitions.insert(format!("a{n}"), json!({keyword: [{"$ref": next}, {"$ref": next}]}));
    }
    definitions.insert(format!("a{depth}"), json!({"type": "string"}));
    json!({"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/a0"}}})
}

#[test]
fn hostile_schemas_and_arguments_cost_a_bounded_time() {
    let many = json!({"x": (0..40_000).map(|n| json!([n])).collect::<Vec<_>>()});
    let choices = json!({"properties": {"x": {"items": {"enum": (0..5_000).map(|n| json!([-n])).collect::<Vec<_>>()}}}});
    let mut deep = json!({});
    for _ in 0..120 {
        deep = json!({"c": deep});
    }
    let branch = |name: &str| json!({"properties": {"c": {"$ref": "#/$defs/n"}}, "required": [name]});
    let tree = json!({
        "$defs": {"n": {"anyOf": [branch("y"), branch("z")]}}, "properties": {"x": {"$ref": "#/$defs/n"}},
    });
    // As floating-point numbers, all are 2^64.
    let alike: Vec<Value> =
        (0..40_000_u64).map(|n| json!([u64::MAX - n / 1_000, u64::MAX - n % 1_000])).collect();
    let rows = [
        ("anyOf", doubled("anyOf", 12), json!({"x": 3})),
        (
            "uniqueItems with comparisons without an end",
            json!({"properties": {"x": {"uniqueItems": true}}}),
            json!({"x": alike}),
        ),
        ("anyOf without an end", doubled("anyOf", 60), json!({"x": 3})),
        ("allOf without an end", doubled("allOf", 60), json!({"x": "s"})),
        ("oneOf without an end", doubled("oneOf", 60), json!({"x": 3})),
        ("tree", tree, json!({"x": deep})),
        ("enum", choices, many),
        (
            "pattern",
            json!({"properties": {"x": {"pattern": "[a-z]{1,500}z"}}}),
            json!({"x": "a".repeat(900_000)}),
        ),
    ];
    for (which, schema, arguments) in rows {
        let started = std::time::Instant::now();
        let (line, longest) = check_outcome_and_stall(&schema, &arguments);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(10), "{which} took {took:?}: {line}");
        assert!(longest < Duration::from_secs(1), "{which}: nothing else went on for {longest:?}");
        assert_eq!(line.contains("takes too long"), which.ends_with("without an end"), "{which}: {line}");
        println!("{which}: {took:?}, {longest:?} of it in place: {}", error_message::truncate(&line));
    }
}
