//! Formats the signatures of tools on one line, for models.

use std::borrow::Cow;

use lockhouse_protocol::Language;

use super::types::{Field, Object, OneLineFormat, ParsedSchema, Type, one_line_format};

const PARAMETERS_MAX: usize = 40;
const TYPE_CHARS_MAX: usize = 240;
const RETURNS_CHARS_MAX: usize = 400;
const DEFAULT_CHARS_MAX: usize = 60;
/// Maximum length of a parameter type in a short signature, in characters.
const SHORT_TYPE_CHARS_MAX: usize = 60;
const SHORT_RETURNS_CHARS_MAX: usize = 100;
/// Maximum length of the parameter list of a signature, in bytes. Optional parameters beyond this length are replaced
/// by one `...`.
const SIGNATURE_CHARS_MAX: usize = 1_600;

/// The parts of a tool from which its one-line signature is formatted.
pub(super) struct Signature<'a> {
    pub(super) identifier: &'a str,
    pub(super) input: &'a ParsedSchema,
    pub(super) arguments: &'a Object,
    /// The names of the parameters in Python, in the order of `arguments`.
    pub(super) keywords: &'a [String],
    pub(super) output: Option<&'a ParsedSchema>,
}

impl Signature<'_> {
    /// Formats the Python signature, such as `list_issues(owner: str, repo: str, state: str = "open")`.
    pub(super) fn python(&self) -> String {
        let types = OneLineFormat { language: Language::Python, parsed: self.input };
        let fields = self.arguments.fields.iter().zip(self.keywords);
        let parameters = fields.map(|(field, keyword)| {
            let kind = types.format(&shown_type(field), TYPE_CHARS_MAX);
            let default = field.default.as_ref().map(|value| one_line_format::value(value, Language::Python));
            let default = default.filter(|text| text.chars().count() <= DEFAULT_CHARS_MAX);
            let text = match (field.required, default) {
                (true, _) => format!("{keyword}: {kind}"),
                (false, default) => format!("{keyword}: {kind} = {}", default.as_deref().unwrap_or("...")),
            };
            (field.required, text)
        });
        let returns = self.returns(Language::Python).map(|kind| format!(" -> {kind}")).unwrap_or_default();
        format!("{}({}){returns}", self.identifier, join_parameters(parameters))
    }

    /// Formats the TypeScript signature, such as `list_issues({ owner: string, repo: string, state?: string })`.
    pub(super) fn typescript(&self) -> String {
        let types = OneLineFormat { language: Language::Typescript, parsed: self.input };
        let parameters = self.arguments.fields.iter().map(|field| {
            let name = one_line_format::property_name(&field.name, Language::Typescript);
            let kind = types.format(&shown_type(field), TYPE_CHARS_MAX);
            (field.required, format!("{name}{}: {kind}", if field.required { "" } else { "?" }))
        });
        let parameters = join_parameters(parameters);
        let parameters = if parameters.is_empty() { parameters } else { format!("{{ {parameters} }}") };
        let returns =
            self.returns(Language::Typescript).map(|kind| format!(": Promise<{kind}>")).unwrap_or_default();
        format!("{}({parameters}){returns}", self.identifier)
    }

    /// Formats the short Python signature with names and types only, such as `list_issues(owner: str, state?: str) ->
    /// list`.
    pub(super) fn short(&self) -> String {
        let types = OneLineFormat { language: Language::Python, parsed: self.input };
        let fields = self.arguments.fields.iter().zip(self.keywords);
        let parameters = fields.map(|(field, keyword)| {
            let optional = if field.required { "" } else { "?" };
            let kind = types.format(&shown_type(field), SHORT_TYPE_CHARS_MAX);
            (field.required, format!("{keyword}{optional}: {kind}"))
        });
        let returns = self.output.map(|parsed| {
            let types = OneLineFormat { language: Language::Python, parsed };
            format!(" -> {}", types.format(&parsed.kind, SHORT_RETURNS_CHARS_MAX))
        });
        format!("{}({}){}", self.identifier, join_parameters(parameters), returns.unwrap_or_default())
    }

    /// Formats the result type of the tool's output schema. Returns `None` if the tool has no output schema
    /// or the schema describes only text.
    fn returns(&self, language: Language) -> Option<String> {
        let parsed = self.output?;
        Some(OneLineFormat { language, parsed }.format(&parsed.kind, RETURNS_CHARS_MAX))
    }
}

/// Formats the type of results that the JSON Schema `schema` describes: first in Python, then in
/// TypeScript.
pub(super) fn result_types(schema: &serde_json::Value) -> [String; 2] {
    let parsed = super::types::parse_schema(schema);
    [Language::Python, Language::Typescript]
        .map(|language| OneLineFormat { language, parsed: &parsed }.format(&parsed.kind, RETURNS_CHARS_MAX))
}

/// Returns the type of a parameter for display in a signature. `null` is left out of the type of an
/// optional parameter, because it means the same as no argument.
fn shown_type(field: &Field) -> Cow<'_, Type> {
    match &field.kind {
        Type::Union(options) if !field.required && options.contains(&Type::Null) => {
            let mut others: Vec<Type> =
                options.iter().filter(|option| **option != Type::Null).cloned().collect();
            Cow::Owned(if others.len() == 1 { others.remove(0) } else { Type::Union(others) })
        }
        kind => Cow::Borrowed(kind),
    }
}

/// Joins parameters with commas. Each item of `parameters` tells whether the parameter is required, and its text; the
/// required ones must come first. Parameters beyond the maximum number, and optional parameters beyond the maximum
/// length, are replaced by one `...`.
fn join_parameters(parameters: impl Iterator<Item = (bool, String)>) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for (required, parameter) in parameters {
        let is_full =
            count >= PARAMETERS_MAX || (!required && text.len() + parameter.len() > SIGNATURE_CHARS_MAX);
        if count > 0 {
            text.push_str(", ");
        }
        if is_full {
            text.push_str("...");
            break;
        }
        text.push_str(&parameter);
        count += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Tool;

    #[test]
    fn signatures_use_each_languages_syntax() {
        let tool = Tool::from_json(
            &json!({
                "name": "list_issues",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "state": {"type": "string", "enum": ["open", "closed"], "default": "open"},
                        "owner": {"type": "string"},
                        "labels": {"type": "array", "items": {"type": "string"}},
                        "page": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    },
                    "required": ["owner"],
                },
            })
            .to_string(),
        )
        .expect("a valid tool");
        assert_eq!(
            tool.python_signature,
            r#"list_issues(owner: str, state: Literal["open", "closed"] = "open", labels: list[str] = ..., page: int = ...)"#
        );
        assert_eq!(
            tool.typescript_signature,
            r#"list_issues({ owner: string, state?: "open" | "closed", labels?: string[], page?: number })"#
        );
    }

    fn signatures(tool: serde_json::Value) -> [String; 2] {
        let tool = Tool::from_json(&tool.to_string()).expect("a valid tool");
        [tool.python_signature, tool.typescript_signature]
    }

    #[test]
    fn recursive_schemas_terminate() {
        let alone = json!({"name": "loop", "inputSchema": {"properties": {"a": {"$ref": "#/properties/a"}}}});
        assert_eq!(signatures(alone), ["loop(a: Any = ...)", "loop({ a?: any })"]);
        let tree = json!({"name": "grow", "inputSchema": {
            "properties": {"tree": {"$ref": "#/$defs/Tree"}},
            "$defs": {"Tree": {"properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}},
        }});
        let [python, typescript] = signatures(tree);
        assert_eq!(python, "grow(tree: { of?: list[dict] } = ...)");
        assert_eq!(typescript, "grow({ tree?: { of?: object[] } })");
    }

    #[test]
    fn names_that_are_not_identifiers_are_converted() {
        let tool = json!({"name": "class", "inputSchema": {
            "properties": {"from": {"type": "string"}, "retry-delay": {"type": "integer"}},
            "required": ["from"],
        }});
        let expected = [
            "class_(from_: str, retry_delay: int = ...)",
            r#"class_({ from: string, "retry-delay"?: number })"#,
        ];
        assert_eq!(signatures(tool), expected);
    }

    #[test]
    fn large_types_are_shortened() {
        let fields = |count: usize| (0..count).map(|n| (format!("field_{n}"), json!({"type": "string"})));
        let wide: serde_json::Map<_, _> = fields(30).collect();
        let nested = json!({"type": "object", "properties": wide});
        let values: Vec<String> = (0..50).map(|n| format!("value {n}")).collect();
        let tool = json!({"name": "wide", "inputSchema": {
            "properties": {"o": nested, "l": {"type": "array", "items": nested}, "e": {"enum": values}},
        }});
        let [python, _] = signatures(tool);
        let twelve: Vec<String> = values[..12].iter().map(|value| format!("{value:?}")).collect();
        assert_eq!(
            python,
            format!("wide(o: dict = ..., l: list[dict] = ..., e: Literal[{}, ...] = ...)", twelve.join(", "))
        );
        let many: serde_json::Map<_, _> = fields(500).collect();
        let [python, typescript] = signatures(json!({"name": "many", "inputSchema": {"properties": many}}));
        assert!(python.ends_with(", ...)") && python.len() < 2_000, "{python}");
        assert!(typescript.ends_with(", ... })") && typescript.len() < 2_000, "{typescript}");
    }
}
