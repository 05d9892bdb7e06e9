//! A call's arguments: by name, and fitting what the tool says it takes, as far as names go.
//!
//! Many servers ignore a name they do not know, and then answer another question than the one that was asked. So names
//! are checked here, whatever the schema permits; the values are checked against it in [`schema`](super::schema).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use lockhouse_base::json::{self, DEPTH_MAX, JsonFault};
use lockhouse_base::language::Language;
use lockhouse_catalog::{Tool, folded};
use lockhouse_policies::{nearest, quoted};
use lockhouse_protocol::{Failure, PromptName, Request};
use serde_json::{Map, Value};

use super::failures::invalid;

/// Values in the arguments of one call. Each costs far more here than the two bytes that it takes to send.
const NODES_MAX: usize = 50_000;
/// Characters of a name that a message repeats.
const NAME_CHARS_MAX: usize = 80;

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
    check(arguments)?;
    let named: BTreeMap<String, String> = serde_json::from_slice(arguments).map_err(|error| {
        invalid(format!("the arguments of prompt {prompt} must be an object of strings: {error}"))
    })?;
    Ok(named.into_iter().map(|(name, text)| (name, Value::String(text))).collect())
}

/// The arguments of a tool, by the names that it has for them.
pub(super) fn as_written(arguments: &[u8]) -> Result<Map<String, Value>, Failure> {
    check(arguments)?;
    serde_json::from_slice(arguments)
        .map_err(|error| invalid(format!("the arguments must be an object: {error}")))
}

/// Whether a tree may be made of them. What is no JSON is told by whoever parses it.
fn check(arguments: &[u8]) -> Result<(), Failure> {
    Err(invalid(match json::count(arguments, NODES_MAX).fault {
        None | Some(JsonFault::Invalid) => return Ok(()),
        Some(JsonFault::TooManyValues) => format!("the arguments have more than {NODES_MAX} values"),
        Some(JsonFault::TooDeep) => {
            format!("the arguments have more than {DEPTH_MAX} levels of lists and objects in each other")
        }
        Some(JsonFault::ReservedKey) => {
            "the arguments have the key `$serde_json::private::RawValue`, which is not taken".into()
        }
    }))
}

/// The arguments by name. An array is in the order of the tool's parameters; a single object in it is the arguments
/// themselves, unless the first parameter may be an object. What is wrong is told with the tool's signature in the `language`.
pub(super) fn named(
    tool: &Tool,
    arguments: &[u8],
    language: Language,
) -> Result<Map<String, Value>, Failure> {
    check(arguments)?;
    let count = tool.parameters.len();
    let takes_object = tool.accepted.first().is_some_and(|first| first.object);
    let given: Map<String, Value> = match serde_json::from_slice(arguments) {
        Ok(Value::Object(named)) => named,
        Ok(Value::Array(values)) if is_one_object(&values) && !takes_object => {
            values.into_iter().next().and_then(object_of).unwrap_or_default()
        }
        Ok(Value::Array(values)) if values.len() <= count => {
            tool.parameters.iter().cloned().zip(values).collect()
        }
        Ok(Value::Array(values)) => {
            let given = values.len();
            return Err(invalid(format!(
                "{given} arguments were given, {} takes {count}: {}",
                tool.name,
                tool.signature(language)
            )));
        }
        Ok(_) => {
            return Err(invalid(
                "the arguments must be an object, or an array in the order of the parameters".into(),
            ));
        }
        Err(error) => return Err(invalid(format!("the arguments are not JSON: {error}"))),
    };
    let mut named = exactly_named(tool, given)?;
    if let Some(unknown) = named.keys().find(|name| tool.closed && !tool.parameters.contains(name)) {
        return Err(invalid(unknown_name(tool, unknown)));
    }
    // Who gives nothing for what need not be given has left it out.
    let optional = tool.parameters.iter().zip(&tool.accepted).skip(tool.required);
    for (name, _) in optional.filter(|(_, accepted)| !accepted.null) {
        if named.get(name) == Some(&Value::Null) {
            named.shift_remove(name);
        }
    }
    let missing = tool.parameters[..tool.required].iter().find(|name| !named.contains_key(*name));
    match missing {
        Some(name) => {
            let signature = tool.signature(language);
            Err(invalid(format!("{} needs the argument {name}: {signature}", tool.name)))
        }
        None => Ok(named),
    }
}

fn is_one_object(values: &[Value]) -> bool {
    matches!(values, [Value::Object(_)])
}

fn object_of(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(named) => Some(named),
        _ => None,
    }
}

/// With the names that the tool has for its parameters, where they were written in another form: as Python needs them, or
/// in camelCase, if that can be one parameter alone.
fn exactly_named(tool: &Tool, given: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
    if given.keys().all(|name| tool.parameters.contains(name)) {
        return Ok(given);
    }
    let mut forms: HashMap<String, Option<&str>> = HashMap::new();
    for name in &tool.parameters {
        forms.entry(folded(name)).and_modify(|one| *one = None).or_insert(Some(name));
    }
    // What Python needs is never another parameter's.
    for (name, accepted) in tool.parameters.iter().zip(&tool.accepted) {
        if let Some(keyword) = &accepted.keyword {
            forms.insert(keyword.to_string(), Some(name));
        }
    }
    let exact: HashSet<&str> = tool.parameters.iter().map(String::as_str).collect();
    let mut named = Map::with_capacity(given.len());
    for (name, value) in given {
        let meant = if exact.contains(name.as_str()) {
            Some(name.as_str())
        } else {
            forms.get(&name).or_else(|| forms.get(&folded(&name))).copied().flatten()
        };
        let name = meant.map_or_else(|| name.clone(), str::to_owned);
        if named.contains_key(&name) {
            return Err(invalid(format!("{} got {name} twice", tool.name)));
        }
        named.insert(name, value);
    }
    Ok(named)
}

fn unknown_name(tool: &Tool, unknown: &str) -> String {
    let unknown: String = unknown.chars().take(NAME_CHARS_MAX).collect();
    let meant = match nearest(&unknown, tool.parameters.iter().map(String::as_str)) {
        Some(name) => format!("; did you mean {name}?"),
        None => ".".to_owned(),
    };
    let takes =
        if tool.parameters.is_empty() { "no arguments".to_owned() } else { tool.parameters.join(", ") };
    format!("{} has no argument {}{meant} It takes {takes}", tool.name, quoted(&unknown, NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(arguments: &str) -> Result<String, String> {
        let tool = r#"{"name": "log", "inputSchema": {"properties": {"max_count": {}, "repo": {}}, "required": ["repo"]}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let named =
            named(&tool, arguments.as_bytes(), Language::Python).map_err(|failure| failure.message)?;
        Ok(Value::Object(named).to_string())
    }

    #[test]
    fn positions_become_names_in_the_order_of_the_signature() {
        assert_eq!(told(r#"["x", 3]"#), Ok(r#"{"repo":"x","max_count":3}"#.into()));
    }

    #[test]
    fn names_in_another_form_are_the_parameters() {
        for form in ["max_count", "maxCount", "MaxCount", "max-count"] {
            let told = told(&format!(r#"{{"repo": "x", "{form}": 3}}"#));
            assert_eq!(told, Ok(r#"{"repo":"x","max_count":3}"#.into()), "{form}");
        }
        let twice = Err("log got max_count twice".into());
        assert_eq!(told(r#"{"repo": "x", "max_count": 1, "maxCount": 3}"#), twice);
        let tool = r#"{"name": "t", "inputSchema": {"properties": {"class": {}, "per-page": {}, "per_page": {}, "aB": {}, "ab": {}}}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let named = |arguments: &str| named(&tool, arguments.as_bytes(), Language::Python);
        let given = r#"{"class_":1,"per_page_2":2,"per_page":3,"AB":4}"#;
        assert!(named(given).expect_err("two alike").message.contains("no argument \"AB\""));
        let meant = named(r#"{"class_":1,"per_page_2":2,"per_page":3}"#).expect("names");
        assert_eq!(Value::Object(meant).to_string(), r#"{"class":1,"per-page":2,"per_page":3}"#);
    }

    #[test]
    fn an_object_alone_is_the_arguments_unless_it_may_be_the_first_of_them() {
        let tool = |kind: &str| {
            let tool =
                format!(r#"{{"name": "t", "inputSchema": {{"properties": {{"a": {{"type": "{kind}"}}}}}}}}"#);
            Tool::from_json(&tool).expect("a valid tool")
        };
        let told = |kind| {
            let named = named(&tool(kind), br#"[{"a": {}}]"#, Language::Python);
            named.map(Value::Object).map(|named| named.to_string())
        };
        assert_eq!(told("string").ok().as_deref(), Some(r#"{"a":{}}"#));
        assert_eq!(told("object").ok().as_deref(), Some(r#"{"a":{"a":{}}}"#));
    }

    #[test]
    fn nothing_given_for_what_is_optional_is_left_out() {
        let tool = r#"{"name": "t", "inputSchema": {"required": ["a"], "properties": {"a": {"type": "string"},
            "b": {"type": "string"}, "c": {"type": ["string", "null"]}, "d": {"type": "string", "nullable": true}}}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let given = br#"{"a": null, "b": null, "c": null, "d": null}"#;
        let named = named(&tool, given, Language::Python).expect("names");
        assert_eq!(Value::Object(named).to_string(), r#"{"a":null,"c":null}"#);
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

    #[test]
    fn what_would_become_too_large_a_tree_is_refused_before_it_is_one() {
        let list = |values: usize| format!(r#"{{"repo": [0{}]}}"#, ",0".repeat(values - 1));
        let nested = |levels: usize| format!(r#"{{"repo": {}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let (reserved, escaped) = ("$serde_json::private::RawValue", "\\u0024serde_json::private::RawValue");
        let hidden = |key: &str| format!(r#"{{"repo": {{"{key}": "[0,[0]]"}}}}"#);
        // Where counting ends at the depth, there may be any number of values after it.
        let deep_first = format!(r#"{{"repo": [{}{}, {}]}}"#, "[".repeat(100), "]".repeat(100), list(60_000));
        for (arguments, expected) in [
            (list(1_000), None),
            (list(60_000), Some("values")),
            (nested(90), None),
            (nested(100), Some("levels")),
            (deep_first, Some("levels")),
            (hidden(reserved), Some("RawValue")),
            (hidden(escaped), Some("RawValue")),
        ] {
            let refused = told(&arguments).err();
            let shown: String = arguments.chars().take(60).collect();
            match expected {
                None => assert_eq!(refused, None, "{shown}"),
                Some(word) => {
                    assert!(refused.as_ref().is_some_and(|told| told.contains(word)), "{shown}: {refused:?}")
                }
            }
            let prompt = PromptName::new("p").expect("a name");
            assert!(of_prompt(&prompt, arguments.as_bytes()).is_err(), "a prompt takes strings");
        }
    }
}
