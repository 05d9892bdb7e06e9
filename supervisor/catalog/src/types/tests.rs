//! Tests that schemas are parsed to the right types, and that hostile schemas cost little.

use lockhouse_protocol::Language;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{OneLineFormat, parse_schema};

fn typescript(schema: Value) -> String {
    let parsed = parse_schema(&schema);
    OneLineFormat { language: Language::Typescript, parsed: &parsed }.format(&parsed.kind, 400)
}

fn python(schema: Value) -> String {
    let parsed = parse_schema(&schema);
    OneLineFormat { language: Language::Python, parsed: &parsed }.format(&parsed.kind, 400)
}

#[test]
fn every_schema_keyword_is_parsed() {
    let rows = [
        (json!(true), "any"),
        (json!(false), "never"),
        (json!({"type": "string", "format": "date-time"}), "string"),
        (json!({"type": ["integer", "null"]}), "number | null"),
        (json!({"type": "string", "nullable": true}), "string | null"),
        (json!({"const": "a"}), r#""a""#),
        (json!({"enum": ["a", 1, null]}), r#""a" | 1 | null"#),
        (json!({"enum": [["a"], {"b": 1}]}), "any[] | object"),
        (json!({"type": "array"}), "any[]"),
        (json!({"items": {"type": ["string", "null"]}}), "Array<string | null>"),
        (json!({"prefixItems": [{"type": "string"}, {"type": "integer"}]}), "[string, number]"),
        (json!({"type": "array", "items": [{"type": "string"}]}), "[string]"),
        (json!({"type": "object"}), "object"),
        (json!({"additionalProperties": {"type": "integer"}}), "Record<string, number>"),
        (json!({"patternProperties": {"^x": {"type": "integer"}}}), "Record<string, number>"),
        (json!({"properties": {"a": {}}, "required": ["a", "b"]}), "{ a: any, b: any }"),
        (json!({"properties": {"a": {"type": "string"}, "no": false}}), "{ a?: string }"),
        (json!({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}), "string | null"),
        (json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), r#""a" | "b""#),
        (json!({"anyOf": [{"type": "string"}, {}]}), "any"),
        (json!({"type": "string", "anyOf": [{"pattern": "a"}, {"maxLength": 3}]}), "string"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "integer"}}}]}),
            "{ a?: string } | { b?: number, a?: string }",
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]},
                {"$ref": "#/$defs/B"}], "$defs": {"B": {"properties": {"a": {"type": "integer"}, "b": {}}}}}),
            "{ a: number, b?: any }",
        ),
        (json!({"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": {"type": "string"}}}), "string"),
        (json!({"$ref": "https://example.com/schema.json"}), "any"),
        (json!({"$ref": "#/nowhere"}), "any"),
        (json!({"$ref": "#"}), "any"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "any",
        ),
        (json!({"type": "string", "allOf": [{"type": "integer"}]}), "never"),
    ];
    let wrong: Vec<String> = rows
        .into_iter()
        .map(|(schema, expected)| (schema.to_string(), typescript(schema), expected))
        .filter(|(_, found, expected)| found != expected)
        .map(|(schema, found, expected)| format!("{schema}: {found}, not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn python_types_use_python_syntax() {
    assert_eq!(python(json!({"enum": ["a", true, null]})), r#"Literal["a", True, None]"#);
    assert_eq!(python(json!({"prefixItems": [{"type": "string"}, {"type": "integer"}]})), "list[str | int]");
    assert_eq!(python(json!({"additionalProperties": {"type": "boolean"}})), "dict[str, bool]");
    assert_eq!(python(json!({"properties": {"a-b": {"type": "null"}}})), r#"{ "a-b"?: None }"#);
}

#[test]
fn exponential_schemas_are_bounded() {
    let doubling: serde_json::Map<String, Value> = (0..60)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"properties": {"a": next, "b": next}, "allOf": [next, next]}))
        })
        .collect();
    let doubling = json!({"$ref": "#/$defs/d0", "$defs": doubling});
    let wide: serde_json::Map<String, Value> = (0..20_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let base = json!({"properties": (0..500).map(|n| (format!("p{n}"), json!({}))).collect::<serde_json::Map<_, _>>()});
    let laid = json!({"allOf": vec![json!({"$ref": "#/$defs/a"}); 60], "anyOf": vec![json!({"$ref": "#/$defs/a"}); 60],
        "properties": {"a": {"anyOf": vec![base.clone(); 60], "allOf": vec![base.clone(); 60]}}, "$defs": {"a": base}});
    let deep = (0..60).fold(json!({}), |inner, _| json!({"items": inner}));
    for schema in [doubling, json!({"properties": wide}), laid, deep] {
        let started = std::time::Instant::now();
        assert!(typescript(schema).len() <= 400);
        assert!(started.elapsed().as_secs() < 5);
    }
}

/// Generates JSON values that often look like a JSON Schema.
pub(crate) fn schemas() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "a",
        "b",
        "class",
        "a-b",
        "__c",
        "str",
        "list",
        "é",
        "\"",
        "a\nb",
        "constructor",
    ]);
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(Value::Null),
        prop::sample::select(vec![
            "string",
            "object",
            "array",
            "integer",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "*/",
            "\"\"\""
        ])
        .prop_map(Value::from),
    ];
    let key = prop_oneof![
        4 => prop::sample::select(vec![
            "type", "properties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "enum", "const", "required",
            "additionalProperties", "patternProperties", "prefixItems", "nullable", "description", "default", "minItems",
        ])
        .prop_map(str::to_owned),
        1 => name.prop_map(str::to_owned),
    ];
    scalar.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            4 => prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_formats_as_a_short_type(schema in schemas()) {
        let parsed = parse_schema(&schema);
        for language in [Language::Python, Language::Typescript] {
            let text = OneLineFormat { language, parsed: &parsed }.format(&parsed.kind, 240);
            prop_assert!(text.chars().count() <= 240);
            prop_assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
