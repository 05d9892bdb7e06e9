//! Replaces values in arguments by the texts from which they were decoded, where the schema permits only a
//! string.
//!
//! The worker decodes the text of a tool's result if it is JSON, so a program that reads a JSON file gets a
//! value. If the program passes this value to a tool that takes the contents of a file as a string, the tool
//! receives exactly the text that was read.

use jsonschema::Validator;
use lockhouse_base::language::Language;
use lockhouse_catalog::Tool;
use lockhouse_protocol::DecodedArgument;
use serde_json::Value;

use super::budgeted_json::{BudgetedJson, BudgetedValue};
use super::validation_budget::{BudgetExceeded, ValidationMeter};
use super::{BACKGROUND_BUDGET, is_valid};

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

/// Replaces each decoded result that does not match the schema by the text from which it was decoded, and returns
/// the arguments. Returns `None` if nothing was decoded, or if the arguments do not match the schema even with the
/// texts. Returns an error if the arguments match the schema only with the text of a result that the program has
/// changed, because the original text can no longer be used.
pub(super) fn with_texts(
    validator: &Validator<BudgetedJson>,
    mut arguments: Value,
    decoded: Vec<DecodedArgument>,
) -> Option<Result<Value, ChangedResult>> {
    if decoded.is_empty() {
        return None;
    }
    let misfits = misfits(validator, &arguments).ok()?;
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
        with_texts(&validator, arguments, decoded.collect())
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
