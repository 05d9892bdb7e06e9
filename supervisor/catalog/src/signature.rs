//! A tool on one line, as a model reads it.

use lockhouse_base::language::Language;

use super::types::{Inline, Object, Shape, inline};

const PARAMETERS_MAX: usize = 40;
const TYPE_CHARS_MAX: usize = 240;
const RETURNS_CHARS_MAX: usize = 400;
const DEFAULT_CHARS_MAX: usize = 60;
/// From here on optional parameters are left out.
const SIGNATURE_CHARS_MAX: usize = 1_600;

/// What a signature is made from.
pub(super) struct Signature<'a> {
    pub(super) identifier: &'a str,
    pub(super) input: &'a Shape,
    pub(super) arguments: &'a Object,
    /// The names of the arguments in Python.
    pub(super) keywords: &'a [String],
    pub(super) output: Option<&'a Shape>,
}

impl Signature<'_> {
    /// `list_issues(owner: str, repo: str, state: str = "open")`
    pub(super) fn python(&self) -> String {
        let types = Inline { language: Language::Python, shape: self.input };
        let fields = self.arguments.fields.iter().zip(self.keywords);
        let parameters = fields.map(|(field, keyword)| {
            let kind = types.text(&field.kind, TYPE_CHARS_MAX);
            let default = field.default.as_ref().map(|value| inline::value(value, Language::Python));
            let default = default.filter(|text| text.chars().count() <= DEFAULT_CHARS_MAX);
            let text = match (field.required, default) {
                (true, _) => format!("{keyword}: {kind}"),
                (false, default) => format!("{keyword}: {kind} = {}", default.as_deref().unwrap_or("...")),
            };
            (field.required, text)
        });
        let returns = self.returns(Language::Python).map(|kind| format!(" -> {kind}")).unwrap_or_default();
        format!("{}({}){returns}", self.identifier, folded(parameters))
    }

    /// `list_issues({ owner: string, repo: string, state?: string })`
    pub(super) fn typescript(&self) -> String {
        let types = Inline { language: Language::Typescript, shape: self.input };
        let parameters = self.arguments.fields.iter().map(|field| {
            let name = inline::key(&field.name, Language::Typescript);
            let kind = types.text(&field.kind, TYPE_CHARS_MAX);
            (field.required, format!("{name}{}: {kind}", if field.required { "" } else { "?" }))
        });
        let parameters = folded(parameters);
        let parameters = if parameters.is_empty() { parameters } else { format!("{{ {parameters} }}") };
        let returns =
            self.returns(Language::Typescript).map(|kind| format!(": Promise<{kind}>")).unwrap_or_default();
        format!("{}({parameters}){returns}", self.identifier)
    }

    /// What a call gives, where the server says so.
    fn returns(&self, language: Language) -> Option<String> {
        let shape = self.output?;
        Some(Inline { language, shape }.text(&shape.kind, RETURNS_CHARS_MAX))
    }
}

/// The type of results that have this schema, in Python and TypeScript.
pub(super) fn of_results(schema: &serde_json::Value) -> [String; 2] {
    let shape = super::types::read(schema);
    [Language::Python, Language::Typescript]
        .map(|language| Inline { language, shape: &shape }.text(&shape.kind, RETURNS_CHARS_MAX))
}

/// The parameters that there is room for: the required ones before all others.
fn folded(parameters: impl Iterator<Item = (bool, String)>) -> String {
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
    fn signatures_read_like_the_language() {
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
            tool.python,
            r#"list_issues(owner: str, state: Literal["open", "closed"] = "open", labels: list[str] = ..., page: int | None = ...)"#
        );
        assert_eq!(
            tool.typescript,
            r#"list_issues({ owner: string, state?: "open" | "closed", labels?: string[], page?: number | null })"#
        );
    }

    fn signatures(tool: serde_json::Value) -> [String; 2] {
        let tool = Tool::from_json(&tool.to_string()).expect("a valid tool");
        [tool.python, tool.typescript]
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
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
    fn names_that_the_languages_cannot_write_are_written_otherwise() {
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
    fn what_is_huge_is_folded() {
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
