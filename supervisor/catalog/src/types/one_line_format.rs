//! Formats types on one line for models. Long types are formatted with less detail.

use lockhouse_protocol::Language;
use serde_json::Value;

use super::{Object, ParsedSchema, Type, quoted};
use crate::identifiers::is_identifier;

/// A level of detail for a type: the maximum numbers of nested levels, of fields of an object, of options of a union
/// and of values of a literal type that are shown.
#[derive(Clone, Copy)]
struct Detail {
    depth: usize,
    fields: usize,
    options: usize,
    values: usize,
}

/// The levels of detail in which a type is formatted, from the most detailed one to one that shows only
/// the outer type. The first level whose text is short enough is used.
const DETAILS: [Detail; 4] = [
    Detail { depth: 3, fields: 12, options: 12, values: 12 },
    Detail { depth: 1, fields: 12, options: 6, values: 12 },
    Detail { depth: 0, fields: 0, options: 4, values: 6 },
    Detail { depth: 0, fields: 0, options: 2, values: 2 },
];
/// Maximum number of parts of a type that are formatted. Further parts are shown as `Any` or `any`.
const PARTS_MAX: usize = 400;
const VALUE_CHARS_MAX: usize = 60;

/// Formats the types of one schema on one line, in one language.
pub(crate) struct OneLineFormat<'a> {
    pub language: Language,
    pub parsed: &'a ParsedSchema,
}

impl OneLineFormat<'_> {
    /// Formats a type in at most `chars_max` characters. A type that is longer at every level of detail is shown as
    /// `Any` or `any`.
    pub(crate) fn format(&self, kind: &Type, chars_max: usize) -> String {
        let texts = DETAILS.iter().map(|detail| {
            let mut parts = PARTS_MAX;
            self.format_type(kind, *detail, detail.depth, &mut parts)
        });
        texts
            .into_iter()
            .find(|text| text.chars().count() <= chars_max)
            .unwrap_or_else(|| any_name(self.language).into())
    }

    fn format_type(&self, kind: &Type, detail: Detail, depth: usize, parts: &mut usize) -> String {
        let language = self.language;
        let Some(left) = parts.checked_sub(1) else { return any_name(language).into() };
        *parts = left;
        match kind {
            Type::Named(_) => match self.parsed.resolve(kind) {
                // A recursive type ends at the depth limit for objects.
                resolved @ (Type::Object(_) | Type::List(_) | Type::Tuple { .. } | Type::Union(_))
                    if depth == 0 =>
                {
                    self.outer_type(resolved)
                }
                resolved => self.format_type(resolved, detail, depth.saturating_sub(1), parts),
            },
            Type::List(items) => {
                let items = self.format_type(items, detail, depth, parts);
                match language {
                    Language::Python => format!("list[{items}]"),
                    Language::Typescript => array_of(&items),
                }
            }
            Type::Tuple { items, .. } if items.len() <= detail.options => {
                let texts: Vec<String> =
                    items.iter().map(|item| self.format_type(item, detail, depth, parts)).collect();
                match language {
                    Language::Python => format!("list[{}]", union_text(texts.into_iter())),
                    Language::Typescript => format!("[{}]", texts.join(", ")),
                }
            }
            Type::Object(object) => self.object(object, detail, depth, parts),
            Type::Literal(values) => literal(language, values, detail.values),
            Type::Union(options) if options.len() <= detail.options => {
                union_text(options.iter().map(|option| self.format_type(option, detail, depth, parts)))
            }
            simple => self.outer_type(simple),
        }
    }

    /// Formats a type without its item and field types, such as `list` or `dict`.
    fn outer_type(&self, kind: &Type) -> String {
        let text = match (self.language, kind) {
            (_, Type::Any | Type::Union(_) | Type::Named(_)) => any_name(self.language),
            (Language::Python, Type::Never) => "NoReturn",
            (Language::Typescript, Type::Never) => "never",
            (Language::Python, Type::Null) => "None",
            (Language::Typescript, Type::Null) => "null",
            (Language::Python, Type::Bool) => "bool",
            (Language::Typescript, Type::Bool) => "boolean",
            (Language::Python, Type::Int) => "int",
            (Language::Python, Type::Float) => "float",
            (Language::Typescript, Type::Int | Type::Float) => "number",
            (Language::Python, Type::Str) => "str",
            (Language::Typescript, Type::Str) => "string",
            (Language::Python, Type::List(_) | Type::Tuple { .. }) => "list",
            (Language::Typescript, Type::List(_) | Type::Tuple { .. }) => "any[]",
            (Language::Python, Type::Object(_)) => "dict",
            (Language::Typescript, Type::Object(_)) => "object",
            (language, Type::Literal(values)) => return literal(language, values, 2),
        };
        text.into()
    }

    fn object(&self, object: &Object, detail: Detail, depth: usize, parts: &mut usize) -> String {
        if object.fields.is_empty() {
            return match (&object.rest, self.language) {
                (Some(rest), Language::Python) if **rest != Type::Any && depth > 0 => {
                    format!("dict[str, {}]", self.format_type(rest, detail, depth - 1, parts))
                }
                (Some(rest), Language::Typescript) if **rest != Type::Any && depth > 0 => {
                    format!("Record<string, {}>", self.format_type(rest, detail, depth - 1, parts))
                }
                (_, Language::Python) => "dict".into(),
                (_, Language::Typescript) => "object".into(),
            };
        }
        if depth == 0 || object.fields.len() > detail.fields {
            return self.outer_type(&Type::Object(Object::default()));
        }
        let mut fields: Vec<String> = Vec::new();
        for field in &object.fields {
            let kind = self.format_type(&field.kind, detail, depth - 1, parts);
            fields.push(format!(
                "{}{}: {kind}",
                property_name(&field.name, self.language),
                if field.required { "" } else { "?" }
            ));
        }
        format!("{{ {} }}", fields.join(", "))
    }
}

/// Returns the name of the type that includes every value: `Any` in Python, `any` in TypeScript.
fn any_name(language: Language) -> &'static str {
    match language {
        Language::Python => "Any",
        Language::Typescript => "any",
    }
}

/// Formats a property name, quoted if it is not an identifier.
pub(crate) fn property_name(name: &str, language: Language) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name, language) }
}

/// Returns the TypeScript type of a list whose items have the type `items`: `T[]`, or `Array<T>` if `T` contains
/// operators.
pub(crate) fn array_of(items: &str) -> String {
    if items.contains([' ', '|', '?']) { format!("Array<{items}>") } else { format!("{items}[]") }
}

/// Formats a JSON value as a literal in the language.
pub(crate) fn value(value: &Value, language: Language) -> String {
    match (value, language) {
        (Value::Null, Language::Python) => "None".into(),
        (Value::Bool(true), Language::Python) => "True".into(),
        (Value::Bool(false), Language::Python) => "False".into(),
        (Value::String(text), _) => quoted(text, language),
        (Value::Array(items), _) => {
            format!(
                "[{}]",
                items.iter().map(|item| self::value(item, language)).collect::<Vec<_>>().join(", ")
            )
        }
        (Value::Object(fields), _) => {
            let field = |(name, item): (&String, &Value)| {
                format!("{}: {}", quoted(name, language), self::value(item, language))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        (other, _) => other.to_string(),
    }
}

fn literal(language: Language, values: &[Value], max: usize) -> String {
    let mut texts: Vec<String> = values.iter().take(max).map(|value| self::value(value, language)).collect();
    let is_long = |text: &String| text.chars().count() > VALUE_CHARS_MAX;
    let is_cut = values.len() > max || texts.iter().any(is_long);
    texts.retain(|text| !is_long(text));
    if is_cut {
        texts.push("...".into());
    }
    match language {
        Language::Python => format!("Literal[{}]", texts.join(", ")),
        Language::Typescript => texts.join(" | "),
    }
}

fn union_text(types: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for kind in types {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    distinct.join(" | ")
}
