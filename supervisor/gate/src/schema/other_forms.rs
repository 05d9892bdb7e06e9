//! Replaces values in arguments by another form of the same value, where the schema permits only that form.
//!
//! - The worker decodes the text of a tool's result if it is JSON, so a program that reads a JSON file gets a value. If
//!   the program passes this value to a tool that takes the contents of a file as a string, the tool receives exactly the
//!   text that was read.
//! - Answers show integers beyond ±(2^53 - 1) as text, and some servers use text where others use integers. A text of the
//!   digits of such an integer is sent as an integer, or an integer as text, if the schema permits nothing else.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use lockhouse_catalog::Tool;
use lockhouse_protocol::json_text::is_large_integer;
use lockhouse_protocol::{DecodedArgument, Language};
use serde_json::{Number, Value};

use super::budgeted_json::{BudgetedJson, BudgetedValue};
use super::validation_budget::{BudgetExceeded, ValidationMeter};
use super::{BACKGROUND_BUDGET, is_valid};

/// Maximum number of bytes of the JSON pointers of all values in the arguments for which errors are listed. Each error
/// contains the pointer of its value.
const PATH_BYTES_MAX: usize = 4 * 1024 * 1024;
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
    let misfits = misfits(validator, &arguments).ok()??;
    for Misfit { pointer, .. } in misfits.iter().filter(|misfit| misfit.is_about_type) {
        let value = arguments.pointer_mut(pointer);
        if let Some((value, other)) = value.and_then(|value| large_integer(value).map(|other| (value, other)))
        {
            *value = other;
        }
    }
    let mut changed = None;
    for DecodedArgument { pointer, text } in decoded {
        if !misfits.iter().any(|misfit| contains(&misfit.pointer, &pointer)) {
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
    has_leaf(value, &|leaf| large_integer(leaf).is_some())
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

/// Returns the JSON pointer and the value of a float beyond ±2^53 in arguments that match the schema, where the schema
/// requires an integer. Such a float may have lost digits, so it may name another object than the program means. The
/// pointer is empty if the place is not known. Costs one validation, or two.
pub(super) fn rounded_integer(
    validator: &Validator<BudgetedJson>,
    arguments: &Value,
) -> Option<(String, Option<f64>)> {
    let mut fractions = arguments.clone();
    replace_large_floats(&mut fractions);
    if is_valid(validator, &fractions, BACKGROUND_BUDGET) == Ok(true) {
        return None;
    }
    let Ok(Some(misfits)) = misfits(validator, &fractions) else { return Some((String::new(), None)) };
    let large = |misfit: &Misfit| arguments.pointer(&misfit.pointer).and_then(large_float);
    let mut of_integers = misfits.into_iter().filter(|misfit| misfit.requires_integer);
    of_integers.find_map(|misfit| large(&misfit).map(|float| (misfit.pointer, Some(float))))
}

/// Whether a value has a float beyond ±2^53.
pub(super) fn has_large_float(value: &Value) -> bool {
    has_leaf(value, &|leaf| large_float(leaf).is_some())
}

/// Whether a value has a leaf, which is neither an array nor an object, that meets a condition.
fn has_leaf(value: &Value, condition: &impl Fn(&Value) -> bool) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(|element| has_leaf(element, condition)),
        Value::Object(members) => members.values().any(|member| has_leaf(member, condition)),
        leaf => condition(leaf),
    }
}

/// Replaces each float beyond ±2^53 by a fraction, which no schema takes for an integer.
fn replace_large_floats(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(replace_large_floats),
        Value::Object(members) => members.values_mut().for_each(replace_large_floats),
        leaf => {
            if large_float(leaf).is_some() {
                *leaf = Value::from(0.5);
            }
        }
    }
}

fn large_float(value: &Value) -> Option<f64> {
    let number = value.as_number().filter(|number| number.is_f64())?;
    number.as_f64().filter(|float| float.abs() >= EXACT_MAX)
}

/// A value in the arguments that does not match the schema.
struct Misfit {
    pointer: String,
    /// Whether the value has a wrong type, and no other rule of the schema is broken.
    is_about_type: bool,
    /// Whether an integer would have the right type.
    requires_integer: bool,
}

impl Misfit {
    fn new(error: &ValidationError<'_>) -> Self {
        let (is_about_type, requires_integer) = type_rule(error);
        Self { pointer: error.instance_path().as_str().to_owned(), is_about_type, requires_integer }
    }
}

/// Returns whether an error is about the type of a value alone, and whether an integer would have the right type. An error
/// of alternatives is, if that of each alternative is.
fn type_rule(error: &ValidationError<'_>) -> (bool, bool) {
    let is_integer = |kind: &JsonType| *kind == JsonType::Integer;
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => (true, is_integer(kind)),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => (true, kinds.iter().any(|kind| is_integer(&kind))),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let rules: Vec<(bool, bool)> =
                context.iter().map(|branch| branch.first().map_or((false, false), type_rule)).collect();
            let all = rules.iter().all(|(is_about_type, _)| *is_about_type);
            (all, all && rules.iter().any(|(_, integer)| *integer))
        }
        _ => (false, false),
    }
}

/// Returns the values in the arguments that do not match the schema. `None` if the paths of all values are so long together
/// that their errors would take much memory.
fn misfits(
    validator: &Validator<BudgetedJson>,
    arguments: &Value,
) -> Result<Option<Vec<Misfit>>, BudgetExceeded> {
    if path_bytes(arguments, 0) > PATH_BYTES_MAX {
        return Ok(None);
    }
    ValidationMeter::run(BACKGROUND_BUDGET, |meter| {
        let errors = validator.iter_errors(BudgetedValue::new(arguments, meter));
        Some(errors.map(|error| Misfit::new(&error)).collect())
    })
}

/// Returns about how many bytes the JSON pointers of a value and of all values in it have together. `path` is the length of
/// the value's own pointer.
fn path_bytes(value: &Value, path: usize) -> usize {
    let inner = match value {
        Value::Array(elements) => elements.iter().map(|element| path_bytes(element, path + 6)).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| path_bytes(member, path + 1 + name.len())).sum()
        }
        _ => 0_usize,
    };
    inner.saturating_add(path)
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
            // Another rule than that of the type is broken.
            (one(json!({"type": ["integer", "string"], "maximum": 5})), integer.clone(), None),
            (one(json!({"maxLength": 3})), json!(digits), None),
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
            (json!({"anyOf": [{"type": "number", "exclusiveMinimum": 1}, {"type": "null"}]}), json!(1e300)),
            (json!({}), json!(1e18)),
        ] {
            assert_eq!(rounded(schema.clone(), value), None, "{schema}");
        }
    }

    #[test]
    fn values_beside_a_wrong_one_stay() {
        let account = json!({"properties": {"number": {}, "id": {"type": "integer"}}, "required": ["id"]});
        let schema = json!({"properties": {"a": {"anyOf": [account, {"type": "null"}]}}});
        let digits = "7960607143101464577";
        assert_eq!(checked(schema, json!({"a": {"number": digits, "id": digits}}), &[]), None);
    }

    #[test]
    fn long_paths_are_not_listed() {
        let schema = json!({"additionalProperties": {"type": "array", "items": {"type": "string"}}});
        let numbers = vec![json!(9_007_199_254_740_993_u64); 1_000];
        let arguments = json!({"k".repeat(1_000_000): numbers});
        assert_eq!(path_bytes(&arguments, 0) / 1_000_000, 1_001);
        assert_eq!(checked(schema.clone(), arguments, &[]), None);
        let short = json!({"k": [9_007_199_254_740_993_u64]});
        assert_eq!(checked(schema, short, &[]), Some(Ok(json!({"k": ["9007199254740993"]}))));
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
