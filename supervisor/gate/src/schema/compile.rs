//! Compiles the JSON Schema of a tool into a validator, with limits and without network access.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::budgeted_json::BudgetedJson;
use super::error_message;

/// Maximum length in bytes of a tool definition whose schema is compiled. Definitions of well-known servers have at
/// most 12 KiB.
/// Bound: calls and arguments.
const DEFINITION_BYTES_MAX: usize = 64 * 1024;
/// Maximum of (number of references + 1) × nesting depth in a schema. This limits the recursion of the schema
/// compiler. The products for the schemas of well-known servers stay below 300.
/// Bound: calls and arguments.
pub(super) const REFERENCE_DEPTH_MAX: usize = 1_024;
/// Maximum size in bytes of one compiled pattern (regular expression).
/// Bound: calls and arguments.
const PATTERN_BYTES_MAX: usize = 64 * 1024;
/// Maximum size, in bytes, of the cache that the matcher of one pattern (regular expression) uses.
const PATTERN_MEMORY_BYTES: usize = 1024 * 1024;

/// Why the schema of a tool cannot be used. Each error message completes a sentence that begins with "its
/// schema".
#[derive(Debug, thiserror::Error)]
pub(super) enum SchemaError {
    #[error("is part of a definition of more than {DEFINITION_BYTES_MAX} bytes")]
    TooLong,
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    #[error("has {references} references and {depth} levels, which are too many")]
    TooDeeplyReferenced { references: usize, depth: usize },
    /// The schema is not valid. The fields tell where and why, without quoting values of the schema.
    #[error("is not usable at {place:?}: {fault}")]
    Invalid { place: String, fault: String },
    #[error("compiling it takes too long")]
    TooSlow,
}

/// Compiles the schema in a tool definition. Returns `None` if the definition has no schema.
pub(super) fn compile(definition: &str) -> Result<Option<Validator<BudgetedJson>>, SchemaError> {
    if definition.len() > DEFINITION_BYTES_MAX {
        return Err(SchemaError::TooLong);
    }
    let mut definition: Value = serde_json::from_str(definition)?;
    let mut schema = match definition.get_mut("inputSchema").map(Value::take) {
        None | Some(Value::Null) => return Ok(None),
        Some(schema) => schema,
    };
    if let Value::Object(members) = &mut schema {
        accept_nullable_inside(members);
    }
    let (references, depth) = reference_count_and_depth(&schema);
    if (references + 1) * depth > REFERENCE_DEPTH_MAX {
        return Err(SchemaError::TooDeeplyReferenced { references, depth });
    }
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_MEMORY_BYTES);
    let options = jsonschema::options_for::<BudgetedJson>().with_pattern_options(patterns).offline();
    // In MCP's default dialect of JSON Schema, `format` is an annotation, so it is not validated.
    let built = options.should_validate_formats(false).build(&schema);
    built.map(Some).map_err(|error| {
        let fault = error.masked_with("the value").to_string();
        SchemaError::Invalid {
            place: error_message::truncate(error.instance_path().as_str()),
            fault: error_message::truncate(&fault),
        }
    })
}

/// Keywords whose values are data and not schemas.
const DATA_KEYWORDS: [&str; 4] = ["const", "default", "enum", "examples"];
/// Keywords whose values are maps from names to schemas.
const MAP_KEYWORDS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Makes each schema with OpenAPI's `nullable: true` accept `null`, as the signature of its tool says. JSON Schema
/// validators ignore this keyword.
fn accept_nullable(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(accept_nullable),
        Value::Object(members) => {
            accept_nullable_inside(members);
            if members.remove("nullable") == Some(Value::Bool(true)) {
                accept_null(members);
            }
        }
        _ => {}
    }
}

/// Makes each nullable schema inside of a schema accept `null`.
fn accept_nullable_inside(members: &mut Map<String, Value>) {
    for (keyword, part) in members.iter_mut() {
        match part {
            Value::Object(schemas) if MAP_KEYWORDS.contains(&keyword.as_str()) => {
                schemas.values_mut().for_each(accept_nullable);
            }
            _ if DATA_KEYWORDS.contains(&keyword.as_str()) => {}
            part => accept_nullable(part),
        }
    }
}

/// Makes a schema accept `null`. A schema with a type stays where it is, so that references into it stay valid.
fn accept_null(members: &mut Map<String, Value>) {
    let is_open = ["enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref"]
        .iter()
        .all(|name| !members.contains_key(*name));
    match members.get_mut("type") {
        Some(Value::String(kind)) if is_open => {
            let kinds = json!([kind, "null"]);
            members.insert("type".into(), kinds);
        }
        Some(Value::Array(kinds)) if is_open => kinds.push("null".into()),
        _ => {
            let inner = std::mem::take(members);
            members.insert("anyOf".into(), json!([inner, {"type": "null"}]));
        }
    }
}

/// Returns two numbers: how many references a schema contains, and how deeply its JSON text is nested.
pub(super) fn reference_count_and_depth(schema: &Value) -> (usize, usize) {
    let parts: Vec<(usize, usize)> = match schema {
        Value::Object(members) => members.values().map(reference_count_and_depth).collect(),
        Value::Array(elements) => elements.iter().map(reference_count_and_depth).collect(),
        _ => Vec::new(),
    };
    let own =
        ["$ref", "$dynamicRef", "$recursiveRef"].iter().filter(|name| schema.get(**name).is_some()).count();
    let below = parts.iter().map(|part| part.1).max().unwrap_or(0);
    (own + parts.iter().map(|part| part.0).sum::<usize>(), below + 1)
}
