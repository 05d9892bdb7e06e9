//! What a JSON Schema says of values, as a type that both languages can write.
//!
//! Drafts 7 and 2020-12 alike, and what servers mean rather than what a validator may accept: a list of properties is the whole
//! list, unless the schema says more. What is not understood is [`Type::Any`]; a schema that refers to itself gets names.

pub(crate) mod inline;
mod meet;
mod schema;
mod text;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub(crate) use inline::Inline;
pub(crate) use schema::read;
#[cfg(test)]
pub(crate) use tests::schemas;
pub(crate) use text::{comment_lines, quoted};

/// What values a schema permits, as far as types can say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Any,
    Never,
    Null,
    Bool,
    Int,
    Float,
    Str,
    /// One of these: strings, numbers, booleans and null.
    Literal(Vec<Value>),
    List(Box<Type>),
    /// Items by their place, of which the first `required` are always there, and what follows them.
    Tuple {
        items: Vec<Type>,
        required: usize,
        rest: Box<Type>,
    },
    Object(Object),
    Union(Vec<Type>),
    /// An entry of the definitions, by its index.
    Named(usize),
}

/// Fields by name, in the schema's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object {
    pub fields: Vec<Field>,
    /// What other names may hold; without it there are none.
    pub rest: Option<Box<Type>>,
}

/// One property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub kind: Type,
    pub required: bool,
    pub description: String,
    pub default: Option<Value>,
}

/// What a `$ref` stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// The last part of its address: no more than a wish for a name.
    pub name: String,
    pub kind: Type,
    pub description: String,
}

/// A schema that has been read: its type, and the definitions that it names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub kind: Type,
    pub definitions: Vec<Definition>,
}

/// Definitions that are followed one after the other.
const STEPS_MAX: usize = 8;

impl Shape {
    /// The type itself, where it has a name.
    pub(crate) fn resolved<'a>(&'a self, mut kind: &'a Type) -> &'a Type {
        for _ in 0..STEPS_MAX {
            let Type::Named(index) = kind else { return kind };
            kind = &self.definitions[*index].kind;
        }
        &Type::Any
    }

    /// Whether a value is of the type. Fields are not looked into.
    pub(crate) fn admits(&self, kind: &Type, value: &Value) -> bool {
        match self.resolved(kind) {
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

    /// The arguments of a tool: one object, whatever the schema makes of it. Of several variants it has the fields of all.
    pub(crate) fn arguments(&self) -> Object {
        let mut object = self.flat(&self.kind, 0);
        object.fields.sort_by_key(|field| !field.required);
        object
    }

    fn flat(&self, kind: &Type, depth: usize) -> Object {
        match self.resolved(kind) {
            Type::Object(object) => object.clone(),
            Type::Union(options) if depth < STEPS_MAX => {
                let objects = options.iter().filter(|option| **option != Type::Null);
                objects
                    .map(|option| self.flat(option, depth + 1))
                    .reduce(meet::either)
                    .unwrap_or_else(Object::anything)
            }
            _ => Object::anything(),
        }
    }
}

impl Object {
    /// Any names with any values.
    fn anything() -> Self {
        Self { fields: Vec::new(), rest: Some(Box::new(Type::Any)) }
    }
}
