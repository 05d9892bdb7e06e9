//! A tool's schema, made ready to check arguments: bounded before it is compiled, without anything from the network.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::metered::Metered;
use super::told;

/// Bytes of a definition whose schema is compiled. Those of well-known servers have 12 KiB at most.
const DEFINITION_BYTES_MAX: usize = 64 * 1024;
/// References times nesting: how deep the compiler could come to stand. Well-known servers stay below 300.
pub(super) const STEPS_MAX: usize = 1_024;
/// Bytes of one compiled pattern, and of what its engine remembers.
const PATTERN_BYTES_MAX: usize = 64 * 1024;
const PATTERN_MEMORY_BYTES: usize = 1024 * 1024;

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("is part of a definition of more than {DEFINITION_BYTES_MAX} bytes")]
    TooLong,
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    #[error("has {references} references and {depth} levels, which are too many")]
    TooManySteps { references: usize, depth: usize },
    /// The fault in words, without values of the schema.
    #[error("is not usable at {place:?}: {fault}")]
    Invalid { place: String, fault: String },
    #[error("compiling it takes too long")]
    TooSlow,
}

/// Compiles a tool's schema; `None` when it has none.
pub(super) fn compile(definition: &str) -> Result<Option<Validator<Metered>>, Unusable> {
    if definition.len() > DEFINITION_BYTES_MAX {
        return Err(Unusable::TooLong);
    }
    let mut definition: Value = serde_json::from_str(definition)?;
    let schema = match definition.get_mut("inputSchema").map(Value::take) {
        None | Some(Value::Null) => return Ok(None),
        Some(schema) => schema,
    };
    let (references, depth) = extent(&schema);
    if (references + 1) * depth > STEPS_MAX {
        return Err(Unusable::TooManySteps { references, depth });
    }
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_MEMORY_BYTES);
    let options = jsonschema::options_for::<Metered>().with_pattern_options(patterns).offline();
    // What a format means is an annotation in the dialect that MCP has by default.
    let built = options.should_validate_formats(false).build(&schema);
    built.map(Some).map_err(|error| {
        let fault = error.masked_with("what stands there").to_string();
        Unusable::Invalid {
            place: told::beginning(error.instance_path().as_str()),
            fault: told::beginning(&fault),
        }
    })
}

/// References, and levels of nesting.
pub(super) fn extent(schema: &Value) -> (usize, usize) {
    let parts: Vec<(usize, usize)> = match schema {
        Value::Object(members) => members.values().map(extent).collect(),
        Value::Array(elements) => elements.iter().map(extent).collect(),
        _ => Vec::new(),
    };
    let own =
        ["$ref", "$dynamicRef", "$recursiveRef"].iter().filter(|name| schema.get(**name).is_some()).count();
    let below = parts.iter().map(|part| part.1).max().unwrap_or(0);
    (own + parts.iter().map(|part| part.0).sum::<usize>(), below + 1)
}
