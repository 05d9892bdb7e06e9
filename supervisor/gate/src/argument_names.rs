//! Replaces the argument names of a call by the names of the tool's parameters, and rejects unknown names.
//!
//! Many upstream servers ignore unknown arguments, so that a misspelled name would silently change the result. This
//! module therefore rejects unknown names, unless the tool's schema explicitly permits additional properties. Values
//! are validated in [`schema`](super::schema).

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use lockhouse_base::json::{self, DEPTH_MAX, JsonFault};
use lockhouse_catalog::{Tool, normalized as normalized_name};
use lockhouse_policies::{most_similar_name, quoted};
use lockhouse_protocol::json_text::integer_beyond_64_bits;
use lockhouse_protocol::{DecodedArgument, Failure, FileSource, Language, PromptName, WorkerRequest};
use serde_json::{Map, Value, json};

use super::failures::invalid_arguments;
use super::text_of_arguments;

/// Maximum number of JSON values in the arguments of one call. The number is limited because a value that has two
/// bytes as JSON text takes far more memory when it is parsed.
/// Bound: calls and arguments.
const NODES_MAX: usize = 50_000;
/// Maximum number of values in the arguments of one call that are results of earlier calls, decoded from JSON
/// text.
const DECODED_MAX: usize = 64;
/// Maximum number of characters of an argument name that an error message quotes.
const NAME_CHARS_MAX: usize = 80;

/// The unparsed JSON arguments and the timeout of a call, as sent by a worker or AI client.
#[derive(Debug, Default)]
pub(super) struct RawArguments {
    pub(super) arguments: Vec<u8>,
    /// The parts of the arguments that are results of earlier calls, which the worker decoded from JSON text.
    /// Each has a JSON pointer to its place in `arguments`.
    pub(super) decoded: Vec<DecodedArgument>,
    /// The timeout that the program requests; `None` if it requests none.
    pub(super) timeout: Option<Duration>,
}

/// The arguments of a call, by the names of the tool's parameters.
#[derive(Debug, Default)]
pub(super) struct NamedArguments {
    pub(super) values: Map<String, Value>,
    /// The values that are results of earlier calls, decoded from JSON text. Each has a JSON pointer to its place
    /// in `values`.
    pub(super) decoded: Vec<DecodedArgument>,
}

impl RawArguments {
    /// Returns the arguments of a worker's request; empty for requests without arguments.
    pub(super) fn from_request(request: WorkerRequest) -> Self {
        match request {
            WorkerRequest::Call { arguments, decoded, timeout_ms, .. } => {
                let timeout = timeout_ms.map(|millis| Duration::from_millis(millis.into()));
                Self { arguments, decoded, timeout }
            }
            WorkerRequest::GetPrompt { arguments, .. } => Self { arguments, ..Self::default() },
            WorkerRequest::OpenFile { source: FileSource::Host(path), .. } => Self::of_path(&path),
            _ => Self::default(),
        }
    }

    /// Returns the arguments of a call of the server `files` that names only a path.
    pub(super) fn of_path(path: &str) -> Self {
        Self { arguments: json!({"path": path}).to_string().into_bytes(), ..Self::default() }
    }
}

/// Parses the arguments of an MCP prompt, which must be a JSON object of strings.
pub(super) fn parse_prompt_arguments(
    prompt: &PromptName,
    arguments: &[u8],
) -> Result<Map<String, Value>, Failure> {
    check_values(arguments)?;
    let named: BTreeMap<String, String> = serde_json::from_slice(arguments).map_err(|error| {
        invalid_arguments(format!("the arguments of prompt {prompt} must be an object of strings: {error}"))
    })?;
    Ok(named.into_iter().map(|(name, text)| (name, Value::String(text))).collect())
}

/// Parses the arguments of a tool, which must be a JSON object, without changing argument names.
pub(super) fn parse_object(arguments: &[u8]) -> Result<Map<String, Value>, Failure> {
    check_values(arguments)?;
    serde_json::from_slice(arguments)
        .map_err(|error| invalid_arguments(format!("the arguments must be an object: {error}")))
}

/// Rejects arguments that have more than [`NODES_MAX`] values, are nested too deeply, use a reserved key or have an integer
/// of more than 64 bits, which the parser would round. Accepts invalid JSON, which the parser will reject.
fn check_values(arguments: &[u8]) -> Result<(), Failure> {
    let large = std::str::from_utf8(arguments).ok().and_then(integer_beyond_64_bits);
    if let Some(integer) = large {
        let digits: String = integer.chars().take(NAME_CHARS_MAX).collect();
        return Err(invalid_arguments(format!(
            "the arguments have an integer of more than 64 bits, which a number would round: pass it as text, \"{digits}\""
        )));
    }
    Err(invalid_arguments(match json::count(arguments, NODES_MAX).fault {
        None | Some(JsonFault::Invalid) => return Ok(()),
        Some(JsonFault::TooManyValues) => format!("the arguments have more than {NODES_MAX} values"),
        Some(JsonFault::TooDeep) => {
            format!("the arguments have more than {DEPTH_MAX} levels of lists and objects in each other")
        }
        Some(JsonFault::ReservedKey) => {
            "the arguments have the key `$serde_json::private::RawValue`, which is reserved".into()
        }
    }))
}

/// Assigns the arguments of a call to the parameters of its tool. Fails if a name is unknown and the schema does not
/// explicitly permit additional properties. `language` is the language in which errors quote the tool's signature.
///
/// A JSON array lists the arguments in the order of the parameters. An array of one object is taken as named
/// arguments, with two exceptions: the first parameter accepts objects, or the object is a decoded result of
/// an earlier call. The names in such a result come from an upstream server, not from the program. For the same reason,
/// JSON text never names arguments: [`text_of_arguments`].
pub(super) fn normalize(
    tool: &Tool,
    raw: RawArguments,
    language: Language,
) -> Result<NamedArguments, Failure> {
    let RawArguments { arguments, decoded, .. } = raw;
    check_values(&arguments)?;
    if decoded.len() > DECODED_MAX {
        return Err(invalid_arguments(format!("the arguments have more than {DECODED_MAX} decoded results")));
    }
    let count = tool.parameters.len();
    let takes_object = tool.accepted_values.first().is_some_and(|first| first.object);
    let is_decoded_alone = decoded.iter().any(|part| part.pointer == "/0");
    let names_arguments = |values: &[Value]| is_one_object(values) && !takes_object && !is_decoded_alone;
    let mut prefix = "";
    let given: Map<String, Value> = match serde_json::from_slice(&arguments) {
        Ok(Value::Object(named)) => named,
        Ok(Value::Array(values)) if names_arguments(&values) => {
            prefix = "/0";
            values.into_iter().next().and_then(into_object).unwrap_or_default()
        }
        Ok(Value::Array(values)) if values.len() <= count => {
            let forms = OnceCell::new();
            text_of_arguments::refuse(tool, &values, language, |name| {
                forms.get_or_init(|| ParameterForms::new(tool)).parameter(name)
            })?;
            let values = tool.parameters.iter().cloned().zip(values).collect();
            return complete(tool, NamedArguments { values, decoded: by_position(tool, decoded) }, language);
        }
        Ok(Value::Array(values)) => {
            let given = values.len();
            return Err(invalid_arguments(format!(
                "{given} arguments were given, {} takes {count}: {}",
                tool.name,
                tool.signature(language)
            )));
        }
        Ok(_) => {
            return Err(invalid_arguments(
                "the arguments must be an object, or an array in the order of the parameters".into(),
            ));
        }
        Err(error) => return Err(invalid_arguments(format!("the arguments are not JSON: {error}"))),
    };
    if given.keys().all(|name| tool.parameters.contains(name)) {
        let decoded = rename_pointers(decoded, prefix, |name| Some(name.to_owned()));
        return complete(tool, NamedArguments { values: given, decoded }, language);
    }
    let forms = ParameterForms::new(tool);
    let decoded =
        rename_pointers(decoded, prefix, |name| Some(forms.parameter(name).unwrap_or(name).to_owned()));
    complete(tool, NamedArguments { values: forms.restore_names(given)?, decoded }, language)
}

/// Replaces the array index at the beginning of each JSON pointer by the name of the parameter with this
/// index.
fn by_position(tool: &Tool, decoded: Vec<DecodedArgument>) -> Vec<DecodedArgument> {
    rename_pointers(decoded, "", |position| tool.parameters.get(position.parse::<usize>().ok()?).cloned())
}

/// Removes `prefix` from each JSON pointer to a decoded result, and replaces the name after it by the result
/// of `rename`. Drops a decoded result whose pointer does not begin with `prefix`, or for whose name `rename`
/// returns `None`.
fn rename_pointers(
    decoded: Vec<DecodedArgument>,
    prefix: &str,
    rename: impl Fn(&str) -> Option<String>,
) -> Vec<DecodedArgument> {
    let renamed = |DecodedArgument { pointer, text }: DecodedArgument| {
        let path = pointer.strip_prefix(prefix)?.strip_prefix('/')?;
        let (first, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        let name = rename(&first.replace("~1", "/").replace("~0", "~"))?;
        let pointer = format!("/{}{rest}", name.replace('~', "~0").replace('/', "~1"));
        Some(DecodedArgument { pointer, text })
    };
    decoded.into_iter().filter_map(renamed).collect()
}

/// Rejects unknown argument names, unless the schema explicitly permits additional properties. Removes `null` from
/// optional parameters that do not accept `null`, and checks that all required parameters are present.
fn complete(tool: &Tool, arguments: NamedArguments, language: Language) -> Result<NamedArguments, Failure> {
    let NamedArguments { values: mut named, decoded } = arguments;
    if let Some(unknown) = named.keys().find(|name| tool.is_closed && !tool.parameters.contains(name)) {
        return Err(invalid_arguments(unknown_name_message(tool, unknown)));
    }
    // An optional parameter with the value `null` counts as omitted if it does not accept `null`.
    let optional = tool.parameters.iter().zip(&tool.accepted_values).skip(tool.required);
    for (name, _) in optional.filter(|(_, accepted)| !accepted.null) {
        if named.get(name) == Some(&Value::Null) {
            named.shift_remove(name);
        }
    }
    let missing = tool.parameters[..tool.required].iter().find(|name| !named.contains_key(*name));
    match missing {
        Some(name) => {
            let signature = tool.signature(language);
            Err(invalid_arguments(format!("{} needs the argument {name}: {signature}", tool.name)))
        }
        None => Ok(NamedArguments { values: named, decoded }),
    }
}

fn is_one_object(values: &[Value]) -> bool {
    matches!(values, [Value::Object(_)])
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(named) => Some(named),
        _ => None,
    }
}

/// The spellings in which a program may write the parameter names of a tool.
struct ParameterForms<'t> {
    tool: &'t Tool,
    /// The names of the parameters as the tool declares them.
    exact: HashSet<&'t str>,
    /// The parameters by their other spellings: the Python keyword argument, if it differs from the name, and the
    /// normalized name. The value is `None` if several parameters have the same normalized name.
    others: HashMap<String, Option<&'t str>>,
}

impl<'t> ParameterForms<'t> {
    fn new(tool: &'t Tool) -> Self {
        let mut others: HashMap<String, Option<&str>> = HashMap::new();
        for name in &tool.parameters {
            others.entry(normalized_name(name)).and_modify(|one| *one = None).or_insert(Some(name));
        }
        // A Python keyword argument never equals the name of another parameter.
        for (name, accepted) in tool.parameters.iter().zip(&tool.accepted_values) {
            if let Some(keyword) = &accepted.keyword {
                others.insert(keyword.to_string(), Some(name));
            }
        }
        Self { tool, exact: tool.parameters.iter().map(String::as_str).collect(), others }
    }

    /// Returns the parameter to which an argument name in the program refers; `None` if the name matches no
    /// parameter, or several parameters.
    fn parameter(&self, name: &str) -> Option<&'t str> {
        let other =
            || self.others.get(name).or_else(|| self.others.get(&normalized_name(name))).copied().flatten();
        self.exact.get(name).copied().or_else(other)
    }

    /// Replaces the argument names in the program by the declared names of the parameters. Unknown names stay. Fails
    /// if two names refer to the same parameter.
    fn restore_names(&self, given: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        let mut named = Map::with_capacity(given.len());
        for (name, value) in given {
            let name = self.parameter(&name).map_or(name, str::to_owned);
            if named.contains_key(&name) {
                return Err(invalid_arguments(format!("{} got {name} twice", self.tool.name)));
            }
            named.insert(name, value);
        }
        Ok(named)
    }
}

/// Returns the error message for an unknown argument name, with a similar name and the names of all parameters.
fn unknown_name_message(tool: &Tool, unknown: &str) -> String {
    let unknown: String = unknown.chars().take(NAME_CHARS_MAX).collect();
    let meant = match most_similar_name(&unknown, tool.parameters.iter().map(String::as_str)) {
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

    fn raw(arguments: &str) -> RawArguments {
        RawArguments { arguments: arguments.into(), ..RawArguments::default() }
    }

    fn normalized(arguments: &str) -> Result<String, String> {
        let tool = r#"{"name": "log", "inputSchema": {"properties": {"max_count": {}, "repo": {}}, "required": ["repo"]}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let named = normalize(&tool, raw(arguments), Language::Python).map_err(|failure| failure.message)?;
        Ok(Value::Object(named.values).to_string())
    }

    #[test]
    fn positional_arguments_get_names_in_signature_order() {
        assert_eq!(normalized(r#"["x", 3]"#), Ok(r#"{"repo":"x","max_count":3}"#.into()));
    }

    #[test]
    fn other_spellings_of_names_map_to_parameters() {
        for form in ["max_count", "maxCount", "MaxCount", "max-count"] {
            let result = normalized(&format!(r#"{{"repo": "x", "{form}": 3}}"#));
            assert_eq!(result, Ok(r#"{"repo":"x","max_count":3}"#.into()), "{form}");
        }
        let twice = Err("log got max_count twice".into());
        assert_eq!(normalized(r#"{"repo": "x", "max_count": 1, "maxCount": 3}"#), twice);
        let tool = r#"{"name": "t", "inputSchema": {"properties": {"class": {}, "per-page": {}, "per_page": {}, "aB": {}, "ab": {}}}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let named = |arguments: &str| normalize(&tool, raw(arguments), Language::Python);
        let given = r#"{"class_":1,"per_page_2":2,"per_page":3,"AB":4}"#;
        assert!(named(given).expect_err("two alike").message.contains("no argument \"AB\""));
        let meant = named(r#"{"class_":1,"per_page_2":2,"per_page":3}"#).expect("names");
        assert_eq!(Value::Object(meant.values).to_string(), r#"{"class":1,"per-page":2,"per_page":3}"#);
    }

    #[test]
    fn a_single_object_is_the_arguments_unless_the_first_parameter_accepts_objects() {
        let tool = |kind: &str| {
            let tool =
                format!(r#"{{"name": "t", "inputSchema": {{"properties": {{"a": {{"type": "{kind}"}}}}}}}}"#);
            Tool::from_json(&tool).expect("a valid tool")
        };
        let normalized_for = |kind| {
            let named = normalize(&tool(kind), raw(r#"[{"a": {}}]"#), Language::Python);
            named.map(|named| Value::Object(named.values).to_string())
        };
        assert_eq!(normalized_for("string").ok().as_deref(), Some(r#"{"a":{}}"#));
        assert_eq!(normalized_for("object").ok().as_deref(), Some(r#"{"a":{"a":{}}}"#));
    }

    #[test]
    fn a_decoded_result_names_no_arguments_and_keeps_its_place() {
        let tool =
            r#"{"name": "t", "inputSchema": {"properties": {"a/b": {"type": "string"}, "max_count": {}}}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let placed = |arguments: &str, pointer: &str| {
            let decoded = vec![DecodedArgument { pointer: pointer.into(), text: None }];
            let raw = RawArguments { arguments: arguments.into(), decoded, timeout: None };
            let named = normalize(&tool, raw, Language::Python).map_err(|failure| failure.message)?;
            let pointers: Vec<String> = named.decoded.into_iter().map(|part| part.pointer).collect();
            Ok::<_, String>(format!("{} {}", Value::Object(named.values), pointers.join(" ")))
        };
        for (arguments, pointer, expected) in [
            (r#"[{"max_count": 1}]"#, "/0", r#"{"a/b":{"max_count":1}} /a~1b"#),
            (r#"["x", [{}]]"#, "/1/0", r#"{"a/b":"x","max_count":[{}]} /max_count/0"#),
            (r#"[{"maxCount": {}}]"#, "/0/maxCount", r#"{"max_count":{}} /max_count"#),
            (r#"{"a/b": [{}]}"#, "/a~1b/0", r#"{"a/b":[{}]} /a~1b/0"#),
            (r#"{"a/b": {}}"#, "nowhere", r#"{"a/b":{}} "#),
        ] {
            assert_eq!(placed(arguments, pointer).as_deref(), Ok(expected), "{arguments} {pointer}");
        }
    }

    #[test]
    fn null_for_an_optional_parameter_is_omitted() {
        let tool = r#"{"name": "t", "inputSchema": {"required": ["a"], "properties": {"a": {"type": "string"},
            "b": {"type": "string"}, "c": {"type": ["string", "null"]}, "d": {"type": "string", "nullable": true}}}}"#;
        let tool = Tool::from_json(tool).expect("a valid tool");
        let given = r#"{"a": null, "b": null, "c": null, "d": null}"#;
        let named = normalize(&tool, raw(given), Language::Python).expect("names");
        assert_eq!(Value::Object(named.values).to_string(), r#"{"a":null,"c":null,"d":null}"#);
    }

    #[test]
    fn unknown_argument_names_are_reported_with_the_known_ones() {
        let unknown = r#"log has no argument "max_cuont"; did you mean max_count? It takes repo, max_count"#;
        assert_eq!(normalized(r#"{"repo": "x", "max_cuont": 3}"#), Err(unknown.into()));
        let strange = r#"log has no argument "zzz". It takes repo, max_count"#;
        assert_eq!(normalized(r#"{"repo": "x", "zzz": 3}"#), Err(strange.into()));
        let missing = "log needs the argument repo: log(repo: Any, max_count: Any = ...)";
        assert_eq!(normalized(r#"{"max_count": 3}"#), Err(missing.into()));
        assert!(normalized("[1, 2, 3]").expect_err("too many").contains("takes 2"));
    }

    #[test]
    fn text_of_arguments_is_neither_parsed_nor_the_first_parameter() {
        let text = |text: &str| normalized(&json!([text]).to_string());
        let refused = "log got its arguments as JSON text: pass them by name, log(repo=...). If the text itself is meant: \
                       log(repo=text)";
        for of_arguments in [
            r#"{"repo": "x"}"#,
            " {\"repo\": 1, \"maxCount\": 2}",
            r#"{"repo": "x", "other": 1}"#,
            r#"{"other": 1}"#,
            "{}",
        ] {
            assert_eq!(text(of_arguments), Err(refused.into()), "{of_arguments}");
        }
        for other in ["[]", "{\"repo\": ", "repo", "\"{}\""] {
            assert_eq!(text(other), Ok(json!({"repo": other}).to_string()), "{other}");
        }
        let by_name = r#"{"repo":"{\"repo\": 1}"}"#;
        assert_eq!(normalized(by_name), Ok(by_name.into()));
        let two = r#"["{\"repo\": 1}",2]"#;
        assert_eq!(normalized(two), Ok(r#"{"repo":"{\"repo\": 1}","max_count":2}"#.into()));
    }

    #[test]
    fn oversized_arguments_are_refused_before_parsing() {
        let list = |values: usize| format!(r#"{{"repo": [0{}]}}"#, ",0".repeat(values - 1));
        let nested = |levels: usize| format!(r#"{{"repo": {}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let (reserved, escaped) = ("$serde_json::private::RawValue", "\\u0024serde_json::private::RawValue");
        let hidden = |key: &str| format!(r#"{{"repo": {{"{key}": "[0,[0]]"}}}}"#);
        // Counting stops at the depth limit; any number of values may follow.
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
            let refused = normalized(&arguments).err();
            let shown: String = arguments.chars().take(60).collect();
            match expected {
                None => assert_eq!(refused, None, "{shown}"),
                Some(word) => {
                    assert!(
                        refused.as_ref().is_some_and(|error| error.contains(word)),
                        "{shown}: {refused:?}"
                    )
                }
            }
            let prompt = PromptName::new("p").expect("a name");
            assert!(parse_prompt_arguments(&prompt, arguments.as_bytes()).is_err(), "a prompt takes strings");
        }
    }
}
