//! Validates the arguments of calls against the input schema that each tool of the example server advertises, so that
//! validation and schema cannot disagree.

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use thiserror::Error;

/// Why an argument of a tool call is invalid. The model reads the message and tries again, so the message says what to
/// do.
#[derive(Debug, Error)]
pub(super) enum ArgumentError {
    #[error("{tool} has no argument `{name}`; it takes {known}")]
    Unknown { tool: String, name: String, known: String },
    #[error("{tool} needs the argument `{name}`: {description}")]
    Missing { tool: String, name: String, description: String },
    #[error("`{name}` must be {expected}, not {given}")]
    Type { name: String, expected: String, given: Value },
    #[error("`{name}` must be one of {choices}, not {given}")]
    Choice { name: String, choices: String, given: Value },
    #[error("`{name}` must be between {minimum} and {maximum}, not {given}")]
    Range { name: String, minimum: u64, maximum: u64, given: u64 },
    #[error("`{name}` must be a date such as 2026-09-01, not {given}")]
    Date { name: String, given: Value },
    #[error("`{name}` must have between {minimum} and {maximum} characters; it has {given}")]
    Length { name: String, minimum: u64, maximum: u64, given: u64 },
}

/// Validates the arguments of a tool call and adds the defaults of omitted arguments. A null argument counts as
/// omitted.
pub(super) fn validate(tool: &Tool, mut given: JsonObject) -> Result<JsonObject, ArgumentError> {
    given.retain(|_, value| !value.is_null());
    let empty = JsonObject::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if let Some(name) = given.keys().find(|name| !properties.contains_key(*name)) {
        let known = properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(ArgumentError::Unknown { tool: tool.name.to_string(), name: name.clone(), known });
    }
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !given.contains_key(name) {
            let description = properties[name]["description"].as_str().unwrap_or_default().to_owned();
            return Err(ArgumentError::Missing {
                tool: tool.name.to_string(),
                name: name.into(),
                description,
            });
        }
    }
    for (name, schema) in properties {
        match (given.get(name), schema.get("default")) {
            (Some(value), _) => validate_value(name, schema, value)?,
            (None, Some(default)) => drop(given.insert(name.clone(), default.clone())),
            (None, None) => {}
        }
    }
    Ok(given)
}

/// Validates one argument against its JSON schema. Supports only the JSON Schema keywords that the tools of the example
/// server use.
fn validate_value(name: &str, schema: &Value, given: &Value) -> Result<(), ArgumentError> {
    let name = || name.to_owned();
    let bound = |key: &str, otherwise| schema[key].as_u64().unwrap_or(otherwise);
    if schema["type"] == "integer" {
        let Some(number) = given.as_u64() else {
            return Err(ArgumentError::Type {
                name: name(),
                expected: "a whole number".into(),
                given: given.clone(),
            });
        };
        let (minimum, maximum) = (bound("minimum", 0), bound("maximum", u64::MAX));
        if !(minimum..=maximum).contains(&number) {
            return Err(ArgumentError::Range { name: name(), minimum, maximum, given: number });
        }
        return Ok(());
    }
    let Some(text) = given.as_str() else {
        return Err(ArgumentError::Type { name: name(), expected: "a string".into(), given: given.clone() });
    };
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(given)
    {
        let choices = choices.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        return Err(ArgumentError::Choice { name: name(), choices, given: given.clone() });
    }
    if schema["format"] == "date" && !is_date(text) {
        return Err(ArgumentError::Date { name: name(), given: given.clone() });
    }
    let (minimum, maximum) = (bound("minLength", 0), bound("maxLength", u64::MAX));
    let length = text.chars().count() as u64;
    if !(minimum..=maximum).contains(&length) {
        return Err(ArgumentError::Length { name: name(), minimum, maximum, given: length });
    }
    Ok(())
}

/// Whether `text` has the form YYYY-MM-DD. Days that do not exist, such as 2026-02-30, are accepted: comparing them
/// with other dates as text still works.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
