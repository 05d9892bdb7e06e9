//! A call's arguments: by name, and fitting what the tool says it takes, as far as names go.
//!
//! Many servers ignore a name they do not know, and then answer another question than the one that was asked. So names
//! are checked here, whatever the schema permits; the values are checked against it in [`schema`](super::schema).

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_protocol::{Failure, FailureCode, PromptName, Request};
use serde_json::{Map, Value};

use crate::catalog::Tool;
use crate::json;

/// Values in the arguments of one call. Each costs far more here than the two bytes that it takes to send.
const NODES_MAX: usize = 50_000;
/// From here on a name is taken for a slip of another one.
const SIMILAR: f64 = 0.7;

/// What comes with a request, as the worker sent it.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) arguments: Vec<u8>,
    /// How long it may take.
    pub(super) timeout: Option<Duration>,
}

impl Given {
    pub(super) fn of(request: Request) -> Self {
        match request {
            Request::Call { arguments, timeout_ms, .. } => {
                let timeout = timeout_ms.map(|millis| Duration::from_millis(millis.into()));
                Self { arguments, timeout }
            }
            Request::GetPrompt { arguments, .. } => Self { arguments, ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// The arguments of a prompt: strings by name.
pub(super) fn of_prompt(prompt: &PromptName, arguments: &[u8]) -> Result<Map<String, Value>, Failure> {
    let strings =
        (!too_many(arguments)).then(|| serde_json::from_slice::<BTreeMap<String, String>>(arguments));
    match strings {
        Some(Ok(named)) => Ok(named.into_iter().map(|(name, text)| (name, Value::String(text))).collect()),
        Some(Err(error)) => {
            Err(invalid(format!("the arguments of prompt {prompt} must be an object of strings: {error}")))
        }
        None => Err(invalid(format!("the arguments have more than {NODES_MAX} values"))),
    }
}

/// Every value takes a byte at least, so what is short need not be counted.
fn too_many(arguments: &[u8]) -> bool {
    arguments.len() > NODES_MAX && json::nodes(arguments).is_some_and(|nodes| nodes > NODES_MAX)
}

/// The arguments by name. An array is in the order of the tool's parameters.
pub(super) fn named(tool: &Tool, arguments: &[u8]) -> Result<Map<String, Value>, Failure> {
    if too_many(arguments) {
        return Err(invalid(format!("the arguments have more than {NODES_MAX} values")));
    }
    let count = tool.parameters.len();
    let named: Map<String, Value> = match serde_json::from_slice(arguments) {
        Ok(Value::Object(named)) => named,
        Ok(Value::Array(values)) if values.len() <= count => {
            tool.parameters.iter().cloned().zip(values).collect()
        }
        Ok(Value::Array(values)) => {
            let given = values.len();
            return Err(invalid(format!(
                "{given} arguments were given, {} takes {count}: {}",
                tool.name, tool.python
            )));
        }
        Ok(_) => {
            return Err(invalid(
                "the arguments must be an object, or an array in the order of the parameters".into(),
            ));
        }
        Err(error) => return Err(invalid(format!("the arguments are not JSON: {error}"))),
    };
    if let Some(unknown) = named.keys().find(|name| tool.closed && !tool.parameters.contains(name)) {
        return Err(invalid(unknown_name(tool, unknown)));
    }
    let missing = tool.parameters[..tool.required].iter().find(|name| !named.contains_key(*name));
    match missing {
        Some(name) => Err(invalid(format!("{} needs the argument {name}: {}", tool.name, tool.python))),
        None => Ok(named),
    }
}

fn unknown_name(tool: &Tool, unknown: &str) -> String {
    let unknown: String = unknown.chars().take(80).collect();
    let meant = match nearest(&unknown, tool.parameters.iter().map(String::as_str)) {
        Some(name) => format!("; did you mean {name}?"),
        None => ".".to_owned(),
    };
    let takes =
        if tool.parameters.is_empty() { "no arguments".to_owned() } else { tool.parameters.join(", ") };
    format!("{} has no argument {unknown:?}{meant} It takes {takes}", tool.name)
}

/// The name that is most like another one, if any is.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|name| (strsim::jaro_winkler(wanted, name), name));
    let best = scored.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(score, _)| *score >= SIMILAR).map(|(_, name)| name)
}

pub(super) fn invalid(message: String) -> Failure {
    Failure { code: FailureCode::InvalidArguments, message, server: None, tool: None, retryable: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(arguments: &str) -> Result<String, String> {
        let tool = r#"{"name": "log", "inputSchema": {"properties": {"max_count": {}, "repo": {}}, "required": ["repo"]}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let named = named(&tool, arguments.as_bytes()).map_err(|failure| failure.message)?;
        Ok(Value::Object(named).to_string())
    }

    #[test]
    fn positions_become_names_in_the_order_of_the_signature() {
        assert_eq!(told(r#"["x", 3]"#), Ok(r#"{"repo":"x","max_count":3}"#.into()));
    }

    #[test]
    fn names_that_do_not_fit_are_told_with_those_that_do() {
        let unknown = r#"log has no argument "max_cuont"; did you mean max_count? It takes repo, max_count"#;
        assert_eq!(told(r#"{"repo": "x", "max_cuont": 3}"#), Err(unknown.into()));
        let strange = r#"log has no argument "zzz". It takes repo, max_count"#;
        assert_eq!(told(r#"{"repo": "x", "zzz": 3}"#), Err(strange.into()));
        let missing = "log needs the argument repo: log(repo: Any, max_count: Any = ...)";
        assert_eq!(told(r#"{"max_count": 3}"#), Err(missing.into()));
        assert!(told("[1, 2, 3]").expect_err("too many").contains("takes 2"));
    }
}
