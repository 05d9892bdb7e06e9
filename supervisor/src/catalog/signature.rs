//! JSON Schema as the one-line signature that a model reads. Bounded: a hostile schema costs no more than its place.

use serde_json::Value;

const DEPTH_MAX: usize = 3;
const PARAMETERS_MAX: usize = 40;
const ENUM_MAX: usize = 12;
const TYPE_CHARS_MAX: usize = 240;
const RETURNS_CHARS_MAX: usize = 400;

/// What a signature is made from.
pub(super) struct Shape<'a> {
    pub(super) identifier: &'a str,
    pub(super) parameters: &'a [String],
    pub(super) required: usize,
    pub(super) schema: &'a Value,
    pub(super) output: Option<&'a Value>,
}

#[derive(Clone, Copy)]
enum Language {
    Python,
    TypeScript,
}

impl Shape<'_> {
    /// `list_issues(owner: str, repo: str, state: str = "open")`
    pub(super) fn python(&self) -> String {
        let parameters =
            self.each(Language::Python, |name, kind, required, default| match (required, default) {
                (true, _) => format!("{name}: {kind}"),
                (false, Some(default)) => format!("{name}: {kind} = {}", python_literal(default)),
                (false, None) => format!("{name}: {kind} = ..."),
            });
        let returns = self.returns(Language::Python).map(|kind| format!(" -> {kind}")).unwrap_or_default();
        format!("{}({parameters}){returns}", self.identifier)
    }

    /// `list_issues({ owner: string, repo: string, state?: string })`
    pub(super) fn typescript(&self) -> String {
        let parameters = self.each(Language::TypeScript, |name, kind, required, _| {
            let optional = if required { "" } else { "?" };
            format!("{name}{optional}: {kind}")
        });
        let parameters = if parameters.is_empty() { parameters } else { format!("{{ {parameters} }}") };
        let returns =
            self.returns(Language::TypeScript).map(|kind| format!(": Promise<{kind}>")).unwrap_or_default();
        format!("{}({parameters}){returns}", self.identifier)
    }

    /// What a call gives, where the server says so.
    fn returns(&self, language: Language) -> Option<String> {
        let schema = self.output?;
        let kind = language.object(schema, schema, 0);
        Some(kind.chars().filter(|c| !c.is_control()).take(RETURNS_CHARS_MAX).collect())
    }

    fn each(&self, language: Language, write: impl Fn(&str, &str, bool, Option<&Value>) -> String) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (index, name) in self.parameters.iter().take(PARAMETERS_MAX).enumerate() {
            let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
            let schema = self.schema.get("properties").and_then(|all| all.get(&name)).unwrap_or(&Value::Null);
            let kind = language.type_of(schema, self.schema, 0);
            let kind: String = kind.chars().filter(|c| !c.is_control()).take(TYPE_CHARS_MAX).collect();
            parts.push(write(&name, &kind, index < self.required, schema.get("default")));
        }
        if self.parameters.len() > PARAMETERS_MAX {
            parts.push("...".into());
        }
        parts.join(", ")
    }
}

/// The type of results that have this schema, in Python and TypeScript.
pub(super) fn of_results(schema: &Value) -> [String; 2] {
    [Language::Python, Language::TypeScript].map(|language| {
        let kind = match schema.get("properties") {
            Some(_) => language.object(schema, schema, 0),
            None => language.type_of(schema, schema, 0),
        };
        kind.chars().filter(|c| !c.is_control()).take(RETURNS_CHARS_MAX).collect()
    })
}

fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        other => other.to_string().chars().take(60).collect(),
    }
}

impl Language {
    fn type_of(self, schema: &Value, root: &Value, depth: usize) -> String {
        if depth > DEPTH_MAX {
            return self.any().into();
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return target.map_or(self.any().into(), |target| self.type_of(target, root, depth + 1));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(values);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(options) = schema.get(key).and_then(Value::as_array) {
                let types = options.iter().take(ENUM_MAX).map(|option| self.type_of(option, root, depth + 1));
                return union(types);
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, root, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().take(ENUM_MAX).filter_map(Value::as_str);
                union(names.map(|name| self.named(name, schema, root, depth)))
            }
            _ => self.any().into(),
        }
    }

    fn named(self, name: &str, schema: &Value, root: &Value, depth: usize) -> String {
        let simple = match (self, name) {
            (Self::Python, "string") => "str",
            (Self::Python, "integer") => "int",
            (Self::Python, "number") => "float",
            (Self::Python, "boolean") => "bool",
            (Self::Python, "null") => "None",
            (Self::Python, "object") => "dict",
            (Self::TypeScript, "string") => "string",
            (Self::TypeScript, "integer" | "number") => "number",
            (Self::TypeScript, "boolean") => "boolean",
            (Self::TypeScript, "null") => "null",
            (Self::TypeScript, "object") => return self.object(schema, root, depth),
            (_, "array") => {
                let items = schema.get("items").map(|items| self.type_of(items, root, depth + 1));
                let items = items.unwrap_or_else(|| self.any().into());
                return match self {
                    Self::Python => format!("list[{items}]"),
                    Self::TypeScript if items.contains([' ', '|']) => format!("Array<{items}>"),
                    Self::TypeScript => format!("{items}[]"),
                };
            }
            _ => self.any(),
        };
        simple.into()
    }

    fn object(self, schema: &Value, root: &Value, depth: usize) -> String {
        let plain = if matches!(self, Self::Python) { "dict" } else { "object" };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return plain.into();
        };
        if depth >= DEPTH_MAX || properties.len() > ENUM_MAX {
            return plain.into();
        }
        let required = schema.get("required").and_then(Value::as_array);
        let field = |(name, schema): (&String, &Value)| {
            let optional = !required.is_some_and(|names| names.iter().any(|other| other == name));
            format!("{name}{}: {}", if optional { "?" } else { "" }, self.type_of(schema, root, depth + 1))
        };
        format!("{{ {} }}", properties.iter().map(field).collect::<Vec<_>>().join(", "))
    }

    fn one_of(self, values: &[Value]) -> String {
        let mut names: Vec<String> = values.iter().take(ENUM_MAX).map(Value::to_string).collect();
        if values.len() > ENUM_MAX {
            names.push("...".into());
        }
        match self {
            Self::Python => format!("Literal[{}]", names.join(", ")),
            Self::TypeScript => names.join(" | "),
        }
    }

    fn any(self) -> &'static str {
        match self {
            Self::Python => "Any",
            Self::TypeScript => "any",
        }
    }
}

fn union(types: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for kind in types {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    distinct.join(" | ")
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

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let tool = Tool::from_json(
            &json!({
                "name": "loop",
                "inputSchema": {"properties": {"a": {"$ref": "#/properties/a"}}},
            })
            .to_string(),
        );
        assert_eq!(tool.map(|tool| tool.python), Some("loop(a: Any = ...)".into()));
    }
}
