//! Types for Python and TypeScript, parsed from JSON Schema.
//!
//! Drafts 7 and 2020-12 of JSON Schema are read in the same way. Schemas are read as servers mean them, not as
//! validators must: an object has only the listed properties unless the schema says more. Anything unknown is
//! [`Type::Any`]. A recursive schema refers to named definitions.

mod escaping;
mod intersection;
pub(crate) mod one_line_format;
mod schema_parser;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub(crate) use escaping::{comment_lines, quoted};
pub(crate) use one_line_format::OneLineFormat;
pub(crate) use schema_parser::parse_schema;
#[cfg(test)]
pub(crate) use tests::schemas;

/// The type of the values that a schema permits, as far as both Python and TypeScript can express it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Any,
    Never,
    Null,
    Bool,
    Int,
    Float,
    Str,
    /// One of these values, which are strings, numbers, booleans or null.
    Literal(Vec<Value>),
    List(Box<Type>),
    /// A list with a type for each position. The first `required` items are always present. Items after `items` have
    /// the type `rest`.
    Tuple {
        items: Vec<Type>,
        required: usize,
        rest: Box<Type>,
    },
    Object(Object),
    Union(Vec<Type>),
    /// A named type of the schema, given by its index in [`ParsedSchema::definitions`].
    Named(usize),
}

/// An object type with its fields, in the schema's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    pub fields: Vec<Field>,
    /// The type of properties other than `fields`; `None` if the object has no other properties.
    pub rest: Option<Box<Type>>,
}

/// A property of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub kind: Type,
    pub required: bool,
    pub description: String,
    pub default: Option<Value>,
}

/// A part of a schema to which a `$ref` refers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// The last part of the path in the `$ref`. Generated stubs may use another name if this one is already
    /// in use.
    pub name: String,
    pub kind: Type,
    pub description: String,
}

/// A parsed JSON Schema: its type, and the definitions to which the type refers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedSchema {
    pub kind: Type,
    pub definitions: Vec<Definition>,
}

/// Maximum number of references that are followed from one type.
const REFERENCE_STEPS_MAX: usize = 8;

impl ParsedSchema {
    /// Follows references until the type is not a reference. Returns [`Type::Any`] after `REFERENCE_STEPS_MAX`
    /// references.
    pub(crate) fn resolve<'a>(&'a self, mut kind: &'a Type) -> &'a Type {
        for _ in 0..REFERENCE_STEPS_MAX {
            let Type::Named(index) = kind else { return kind };
            kind = &self.definitions[*index].kind;
        }
        &Type::Any
    }

    /// Returns whether a value is of the type `kind`. The contents of objects and tuples are not checked.
    pub(crate) fn admits(&self, kind: &Type, value: &Value) -> bool {
        match self.resolve(kind) {
            Type::Any => true,
            Type::Never | Type::Named(_) => false,
            Type::Null => value.is_null(),
            Type::Bool => value.is_boolean(),
            Type::Int => value.is_i64() || value.is_u64(),
            Type::Float => value.is_number(),
            Type::Str => value.is_string(),
            Type::Literal(values) => values.contains(value),
            Type::List(items) => {
                value.as_array().is_some_and(|all| all.iter().all(|item| self.admits(items, item)))
            }
            Type::Tuple { .. } => value.is_array(),
            Type::Object(_) => value.is_object(),
            Type::Union(options) => options.iter().any(|option| self.admits(option, value)),
        }
    }

    /// Returns the arguments of a tool as one object type, required fields first. If the schema has alternatives, the
    /// object has the fields of all of them.
    pub(crate) fn arguments(&self) -> Object {
        let mut object = self.flatten(&self.kind, 0);
        object.fields.sort_by_key(|field| !field.required);
        object
    }

    fn flatten(&self, kind: &Type, depth: usize) -> Object {
        match self.resolve(kind) {
            Type::Object(object) => object.clone(),
            Type::Union(options) if depth < REFERENCE_STEPS_MAX => {
                let objects = options.iter().filter(|option| **option != Type::Null);
                objects
                    .map(|option| self.flatten(option, depth + 1))
                    .reduce(intersection::union_objects)
                    .unwrap_or_else(Object::anything)
            }
            _ => Object::anything(),
        }
    }
}

impl Object {
    /// Returns an object type with arbitrary properties.
    fn anything() -> Self {
        Self { fields: Vec::new(), rest: Some(Box::new(Type::Any)) }
    }
}
