//! Replaces values in arguments by another form of the same value, where the schema permits only that form.
//!
//! - The worker decodes the text of a tool's result if it is JSON, so a program that reads a JSON file gets a value. If
//!   the program passes this value to a tool that takes the contents of a file as a string, the tool receives exactly the
//!   text that was read.
//! - Answers show integers beyond ±(2^53 - 1) as text, and some servers use text where others use integers. A text of the
//!   digits of such an integer is sent as an integer, or an integer as text, if the schema permits nothing else.

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use lockhouse_base::language::Language;
use lockhouse_catalog::Tool;
use lockhouse_protocol::DecodedArgument;
use lockhouse_protocol::json_text::is_large_integer;
use serde_json::{Number, Value};

use super::budgeted_json::{BudgetedJson, BudgetedValue};
use super::validation_budget::{BudgetExceeded, ValidationMeter};
use super::{BACKGROUND_BUDGET, is_valid};

/// 2^53: from here on, a float may stand for several integers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The error for an argument that must be a string, but is a result that was decoded from JSON text and then
/// changed by the program. Its original text can no longer be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChangedResult {
    /// The JSON pointer of the argument.
    pointer: String,
}

impl ChangedResult {
    pub(super) fn message(&self, tool: &Tool, language: Language) -> String {
        let function = match language {
            Language::Python => "json.dumps(value)",
            Language::Typescript => "JSON.stringify(value)",
        };
        let place = super::error_message::truncate(&self.pointer);
        format!(
            "{}: {place} must be a string, and is a result that was decoded from JSON text and then changed: pass {function}",
            tool.name
        )
    }
}

/// Replaces each decoded result that does not match the schema by the text from which it was decoded, and large integers
/// by text or the reverse, and returns the arguments. Returns `None` if nothing can be replaced, or if the arguments do
/// not match the schema even so. Returns an error if the arguments match the schema only with the text of a result that
/// the program has changed, because the original text can no longer be used.
pub(super) fn with_other_forms(
    validator: &Validator<BudgetedJson>,
    mut arguments: Value,
    decoded: Vec<DecodedArgument>,
) -> Option<Result<Value, ChangedResult>> {
    if decoded.is_empty() && !has_large_integer(&arguments) {
        return None;
    }
    let misfits = misfits(validator, &arguments).ok()?;
    for misfit in &misfits {
        if let Some(value) = arguments.pointer_mut(misfit) {
            exchange_large_integers(value);
        }
    }
    let mut changed = None;
    for DecodedArgument { pointer, text } in decoded {
        if !misfits.iter().any(|misfit| contains(misfit, &pointer)) {
            continue;
        }
        let value = arguments.pointer_mut(&pointer)?;
        let text = text.unwrap_or_else(|| {
            changed.get_or_insert(ChangedResult { pointer });
            value.to_string()
        });
        *value = Value::String(text);
    }
    let fits = is_valid(validator, &arguments, BACKGROUND_BUDGET) == Ok(true);
    fits.then(|| changed.map_or(Ok(arguments), Err))
}

/// Whether a value has an integer beyond ±(2^53 - 1), or a text of the digits of one.
pub(super) fn has_large_integer(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_large_integer),
        Value::Object(members) => members.values().any(has_large_integer),
        leaf => large_integer(leaf).is_some(),
    }
}

/// Replaces each large integer in a value by the text of its digits, and each text of digits by the integer.
fn exchange_large_integers(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(exchange_large_integers),
        Value::Object(members) => members.values_mut().for_each(exchange_large_integers),
        leaf => {
            if let Some(other) = large_integer(leaf) {
                *leaf = other;
            }
        }
    }
}

/// Returns the other form of a large integer: the text of its digits, or the integer that a text shows. `None` for other
/// values, and for text whose integer has more than 64 bits.
fn large_integer(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) if !number.is_f64() => {
            Some(number.to_string()).filter(|digits| is_large_integer(digits)).map(Value::String)
        }
        Value::String(text) if is_large_integer(text) => {
            let unsigned = text.parse::<u64>().map(Number::from);
            unsigned.or_else(|_| text.parse::<i64>().map(Number::from)).ok().map(Value::Number)
        }
        _ => None,
    }
}

/// Returns the JSON pointer and the value of the first float beyond ±2^53 in arguments that match the schema, where the schema
/// requires an integer. Such a float may have lost digits, so it may name another object than the program means.
pub(super) fn rounded_integer(
    validator: &Validator<BudgetedJson>,
    arguments: &Value,
) -> Option<(String, f64)> {
    let mut floats = Vec::new();
    collect_large_floats(arguments, String::new(), &mut floats);
    if floats.is_empty() {
        return None;
    }
    let mut fractions = arguments.clone();
    for (pointer, _) in &floats {
        if let Some(value) = fractions.pointer_mut(pointer) {
            *value = Value::from(0.5);
        }
    }
    let of_type = ValidationMeter::run(BACKGROUND_BUDGET, |meter| {
        let errors = validator.iter_errors(BudgetedValue::new(&fractions, meter));
        let about_type = errors.filter(|error| {
            matches!(error.kind(), Kind::Type { .. } | Kind::AnyOf { .. } | Kind::OneOfNotValid { .. })
        });
        about_type.map(|error| error.instance_path().as_str().to_owned()).collect::<Vec<_>>()
    });
    let misfits = of_type.ok()?;
    floats.into_iter().find(|(pointer, _)| misfits.iter().any(|misfit| contains(misfit, pointer)))
}

/// Finds the floats beyond ±2^53, each with its JSON pointer.
fn collect_large_floats(value: &Value, pointer: String, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let large = number.as_f64().filter(|float| float.abs() >= EXACT_MAX);
            found.extend(large.map(|float| (pointer, float)));
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect_large_floats(element, format!("{pointer}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect_large_floats(member, format!("{pointer}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Returns the JSON pointers of the values in the arguments that do not match the schema.
fn misfits(validator: &Validator<BudgetedJson>, arguments: &Value) -> Result<Vec<String>, BudgetExceeded> {
    ValidationMeter::run(BACKGROUND_BUDGET, |meter| {
        let errors = validator.iter_errors(BudgetedValue::new(arguments, meter));
        errors.map(|error| error.instance_path().as_str().to_owned()).collect()
    })
}

/// Whether the value at the JSON pointer `inner` is the value at `outer` or a part of it.
fn contains(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::compile::compile;

    fn checked(
        schema: Value,
        arguments: Value,
        decoded: &[(&str, Option<&str>)],
    ) -> Option<Result<Value, String>> {
        let definition = json!({"name": "t", "inputSchema": schema}).to_string();
        let validator = compile(&definition).expect("usable").expect("a schema");
        let decoded = decoded.iter().map(|(pointer, text)| DecodedArgument {
            pointer: (*pointer).to_owned(),
            text: text.map(str::to_owned),
        });
        with_other_forms(&validator, arguments, decoded.collect())
            .map(|done| done.map_err(|changed| changed.pointer))
    }

    #[test]
    fn texts_are_put_where_only_a_string_fits() {
        let text = json!({"type": "string"});
        let object = json!({"type": "object"});
        let one = |kind: &Value| json!({"properties": {"a": kind}});
        let value = json!({"a": {"x": 1}});
        let sent = |schema, text| checked(schema, value.clone(), &[("/a", text)]);
        assert_eq!(sent(one(&text), Some("{\"x\": 1}")), Some(Ok(json!({"a": "{\"x\": 1}"}))));
        assert_eq!(sent(one(&text), None), Some(Err("/a".into())));
        assert_eq!(sent(one(&json!({"type": ["string", "null"]})), Some("t")), Some(Ok(json!({"a": "t"}))));
        assert_eq!(
            sent(one(&json!({"anyOf": [text, {"type": "null"}]})), Some("t")),
            Some(Ok(json!({"a": "t"})))
        );
        // What is wrong is not the value, or text would not fit either.
        assert_eq!(sent(json!({"properties": {"a": object}, "required": ["b"]}), Some("t")), None);
        assert_eq!(sent(one(&json!({"type": "integer"})), Some("t")), None);
        assert_eq!(sent(one(&json!({"type": "integer"})), None), None);
    }

    #[test]
    fn each_decoded_result_is_judged_by_its_own_place() {
        let schema = json!({"properties": {
            "files": {"type": "array", "items": {"properties": {"content": {"type": "string"}}}},
            "options": {"type": "object"},
        }});
        let arguments =
            json!({"files": [{"content": [1]}, {"content": "b"}, {"content": []}], "options": {}});
        let decoded = [
            ("/files/0/content", Some("[ 1 ]")),
            ("/files/2/content", Some("[]")),
            ("/options", Some("{ }")),
        ];
        let expected =
            json!({"files": [{"content": "[ 1 ]"}, {"content": "b"}, {"content": "[]"}], "options": {}});
        assert_eq!(checked(schema, arguments, &decoded), Some(Ok(expected)));
    }

    #[test]
    fn large_integers_are_sent_in_the_form_that_fits() {
        let digits = "7960607143101464577";
        let integer = json!(7_960_607_143_101_464_577_u64);
        let one = |kind: Value| json!({"properties": {"a": kind}});
        let list = one(json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}));
        for (schema, given, expected) in [
            (one(json!({"type": "integer"})), json!(digits), Some(integer.clone())),
            (one(json!({"type": "number"})), json!(digits), Some(integer.clone())),
            (one(json!({"type": "string"})), integer.clone(), Some(json!(digits))),
            (list, json!([1, digits, null]), Some(json!([1, integer, null]))),
            (one(json!({"type": "integer"})), json!("-9223372036854775808"), Some(json!(i64::MIN))),
            // Small integers, other texts and integers of more than 64 bits stay what they are, and do not fit.
            (one(json!({"type": "integer"})), json!("42"), None),
            (one(json!({"type": "string"})), json!(42), None),
            (one(json!({"type": "integer"})), json!("7960607143101464577x"), None),
            (one(json!({"type": "integer"})), json!("18446744073709551616"), None),
        ] {
            let got = checked(schema, json!({"a": given}), &[]);
            assert_eq!(got, expected.map(|expected| Ok(json!({"a": expected}))), "{given}");
        }
    }

    #[test]
    fn a_float_that_may_have_lost_digits_is_no_integer() {
        let rounded = |schema: Value, value: Value| {
            let definition = json!({"name": "t", "inputSchema": {"properties": {"a": schema}}}).to_string();
            let validator = compile(&definition).expect("usable").expect("a schema");
            rounded_integer(&validator, &json!({"a": value})).map(|(pointer, _)| pointer)
        };
        let integer = json!({"type": "integer"});
        let maybe = json!({"anyOf": [integer, {"type": "null"}]});
        let list = json!({"type": "array", "items": integer});
        assert_eq!(rounded(integer.clone(), json!(1e18)).as_deref(), Some("/a"));
        assert_eq!(rounded(maybe, json!(-1e18)).as_deref(), Some("/a"));
        assert_eq!(rounded(list, json!([1, 1e18])).as_deref(), Some("/a/1"));
        for (schema, value) in [
            (integer.clone(), json!(1_000_000_000_000_000_000_u64)),
            (integer, json!(4.0)),
            (json!({"type": "number", "minimum": 1}), json!(1e18)),
            (json!({}), json!(1e18)),
        ] {
            assert_eq!(rounded(schema.clone(), value), None, "{schema}");
        }
    }

    #[test]
    fn a_pointer_to_nothing_changes_nothing() {
        let schema = json!({"properties": {"a": {"type": "string"}}});
        for pointer in ["/b", "a", "/a/0", ""] {
            assert_eq!(
                checked(schema.clone(), json!({"a": 1}), &[(pointer, Some("t"))]),
                None,
                "{pointer:?}"
            );
        }
    }
}
