//! JSON Schema as types. A hostile schema costs no more than its place.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::meet::{Meeting, join};
use super::{Definition, Field, Object, Shape, Type};

/// How deep a schema is read, and how many parts of it.
const DEPTH_MAX: usize = 24;
const PARTS_MAX: usize = 10_000;
/// Parts of types that are copied where schemas are laid over each other.
const COPIES_MAX: usize = 20_000;
/// Fields of an object, options of a union and values of an enumeration that are told apart.
const FIELDS_MAX: usize = 1_000;
const OPTIONS_MAX: usize = 64;
const VALUES_MAX: usize = 512;
const DEFINITIONS_MAX: usize = 1_000;
/// Bytes of a name, of a value in an enumeration and of a default that are told; characters of a description.
const NAME_BYTES_MAX: usize = 200;
const VALUE_BYTES_MAX: usize = 200;
const DEFAULT_BYTES_MAX: usize = 1_000;
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Reads a schema.
pub(crate) fn read(schema: &Value) -> Shape {
    let mut reader = Reader {
        root: schema,
        definitions: Vec::new(),
        places: HashMap::new(),
        under_way: Vec::new(),
        parts: 0,
        room: COPIES_MAX,
    };
    let kind = reader.read(schema, 0);
    Shape { kind, definitions: reader.definitions }
}

struct Reader<'s> {
    root: &'s Value,
    definitions: Vec<Definition>,
    /// Definitions by their address.
    places: HashMap<String, usize>,
    /// What is being read, from the outside in: a definition, or a value that holds others.
    under_way: Vec<Within>,
    parts: usize,
    room: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Within {
    Definition(usize),
    Container,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value, depth: usize) -> Type {
        self.parts += 1;
        if depth > DEPTH_MAX || self.parts > PARTS_MAX {
            return Type::Any;
        }
        let schema = match schema {
            Value::Bool(false) => return Type::Never,
            Value::Object(schema) => schema,
            _ => return Type::Any,
        };
        let mut kind = self.own(schema, depth);
        if let Some(address) =
            ["$ref", "$recursiveRef", "$dynamicRef"].iter().find_map(|key| schema.get(*key))
        {
            let referred = address.as_str().map_or(Type::Any, |address| self.referred(address, depth));
            kind = self.meet(kind, referred);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten().take(OPTIONS_MAX) {
            let part = self.read(part, depth + 1);
            kind = self.meet(kind, part);
        }
        for key in ["anyOf", "oneOf"] {
            let Some(options) = schema.get(key).and_then(Value::as_array) else { continue };
            if options.len() > OPTIONS_MAX {
                continue;
            }
            let options: Vec<Type> = options.iter().map(|option| self.read(option, depth + 1)).collect();
            // An option that says nothing of its own leaves an object as it is, and the others as they are.
            kind = match kind {
                Type::Object(_) => self.meeting().each(options, kind, 0),
                kind => self.meet(kind, join(options)),
            };
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) { join([kind, Type::Null]) } else { kind }
    }

    fn meet(&mut self, one: Type, other: Type) -> Type {
        self.meeting().meet(one, other, 0)
    }

    fn meeting(&mut self) -> Meeting<'_> {
        Meeting { definitions: &self.definitions, room: &mut self.room }
    }

    /// What the schema says itself, without what it refers to or combines.
    fn own(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        if let Some(value) = schema.get("const") {
            return of_values(std::slice::from_ref(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            self.parts += values.len().min(VALUES_MAX);
            return of_values(values);
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.of_type(name, schema, depth),
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().take(8).filter_map(Value::as_str).collect();
                join(names.into_iter().map(|name| self.of_type(name, schema, depth)).collect::<Vec<_>>())
            }
            _ if has_any(schema, &["properties", "additionalProperties", "patternProperties"]) => {
                self.object(schema, depth)
            }
            _ if has_any(schema, &["items", "prefixItems"]) => self.list(schema, depth),
            _ => Type::Any,
        }
    }

    fn of_type(&mut self, name: &str, schema: &Map<String, Value>, depth: usize) -> Type {
        match name {
            "string" => Type::Str,
            "integer" => Type::Int,
            "number" => Type::Float,
            "boolean" => Type::Bool,
            "null" => Type::Null,
            "array" => self.list(schema, depth),
            "object" => self.object(schema, depth),
            _ => Type::Any,
        }
    }

    /// What is inside of a value: it may be of the type that holds it.
    fn inside(&mut self, schema: &Value, depth: usize) -> Type {
        self.under_way.push(Within::Container);
        let kind = self.read(schema, depth + 1);
        self.under_way.pop();
        kind
    }

    fn list(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        let items = schema.get("items");
        let (first, rest) = match (schema.get("prefixItems"), items) {
            (Some(Value::Array(first)), rest) => (first, rest),
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            _ => {
                return Type::List(Box::new(items.map_or(Type::Any, |items| self.inside(items, depth))));
            }
        };
        if first.len() > OPTIONS_MAX {
            return Type::List(Box::new(Type::Any));
        }
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let required = usize::try_from(least).unwrap_or(usize::MAX).min(first.len());
        let rest = Box::new(rest.map_or(Type::Any, |rest| self.inside(rest, depth)));
        Type::Tuple { items: first.iter().map(|item| self.inside(item, depth)).collect(), required, rest }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        let empty = Map::new();
        let listed = schema.get("properties").and_then(Value::as_object);
        let properties = listed.unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().take(FIELDS_MAX).filter_map(Value::as_str).collect();
        let told = |name: &str| name.len() <= NAME_BYTES_MAX;
        let mut fields = Vec::new();
        for (name, schema) in properties.iter().filter(|(name, _)| told(name)).take(FIELDS_MAX) {
            let (kind, required) = (self.inside(schema, depth), required.contains(&name.as_str()));
            // A name that is forbidden.
            if kind == Type::Never && !required {
                continue;
            }
            let default = schema.get("default").filter(|value| is_small(value, DEFAULT_BYTES_MAX)).cloned();
            fields.push(Field {
                name: name.clone(),
                kind,
                required,
                description: described(schema),
                default,
            });
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name) && told(name)) {
            if fields.len() < FIELDS_MAX && !fields.iter().any(|field| field.name == **name) {
                let (name, description) = ((*name).to_owned(), String::new());
                fields.push(Field { name, kind: Type::Any, required: true, description, default: None });
            }
        }
        let left_out = properties.len() > FIELDS_MAX || properties.keys().any(|name| !told(name));
        let more = ["additionalProperties", "unevaluatedProperties"].iter().find_map(|key| schema.get(*key));
        let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let patterns: Vec<Type> =
            patterns.take(OPTIONS_MAX).map(|(_, schema)| self.inside(schema, depth)).collect();
        let rest = match more {
            _ if left_out => Type::Any,
            Some(more) => join([self.inside(more, depth)].into_iter().chain(patterns)),
            None if patterns.is_empty() && listed.is_none() => Type::Any,
            None => join(patterns),
        };
        Type::Object(Object { fields, rest: (rest != Type::Never).then(|| Box::new(rest)) })
    }

    /// What an address stands for. Only a place in the same schema is looked at.
    fn referred(&mut self, address: &str, depth: usize) -> Type {
        let Some(pointer) = address.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return Type::Any;
        };
        let pointer = percent_decoded(pointer);
        if let Some(index) = self.places.get(&pointer) {
            return self.known(*index);
        }
        let Some(target) = self.root.pointer(&pointer) else { return Type::Any };
        if self.definitions.len() == DEFINITIONS_MAX {
            return Type::Any;
        }
        let index = self.definitions.len();
        let name = pointer.rsplit('/').next().unwrap_or_default().chars().take(NAME_BYTES_MAX).collect();
        self.definitions.push(Definition { name, kind: Type::Any, description: described(target) });
        self.places.insert(pointer, index);
        self.under_way.push(Within::Definition(index));
        let kind = self.read(target, depth + 1);
        self.under_way.pop();
        self.definitions[index].kind = kind;
        self.known(index)
    }

    /// A definition by its name, where a name is worth it.
    fn known(&self, index: usize) -> Type {
        let place = self.under_way.iter().rposition(|within| *within == Within::Definition(index));
        if let Some(place) = place {
            // What is nothing but itself can be anything.
            let is_inside = self.under_way[place..].contains(&Within::Container);
            return if is_inside { Type::Named(index) } else { Type::Any };
        }
        match &self.definitions[index].kind {
            Type::Object(object) if !object.fields.is_empty() => Type::Named(index),
            Type::Union(_) | Type::List(_) | Type::Tuple { .. } | Type::Object(_) => Type::Named(index),
            simple => simple.clone(),
        }
    }
}

fn has_any(schema: &Map<String, Value>, keys: &[&str]) -> bool {
    keys.iter().any(|key| schema.contains_key(*key))
}

/// The values themselves if all of them can be written as types, else what they are.
fn of_values(values: &[Value]) -> Type {
    let literal = |value: &Value| match value {
        Value::Array(_) | Value::Object(_) => false,
        value => is_small(value, VALUE_BYTES_MAX),
    };
    if !values.is_empty() && values.len() <= VALUES_MAX && values.iter().all(literal) {
        let mut distinct: Vec<Value> = Vec::with_capacity(values.len());
        for value in values {
            if !distinct.contains(value) {
                distinct.push(value.clone());
            }
        }
        return Type::Literal(distinct);
    }
    join(values.iter().map(|value| match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Number(number) if number.is_f64() => Type::Float,
        Value::Number(_) => Type::Int,
        Value::String(_) => Type::Str,
        Value::Array(_) => Type::List(Box::new(Type::Any)),
        Value::Object(_) => Type::Object(Object { fields: Vec::new(), rest: Some(Box::new(Type::Any)) }),
    }))
}

fn is_small(value: &Value, bytes_max: usize) -> bool {
    match value {
        Value::String(text) => text.len() <= bytes_max,
        Value::Array(_) | Value::Object(_) => value.to_string().len() <= bytes_max,
        _ => true,
    }
}

fn described(schema: &Value) -> String {
    let words = ["description", "title"].iter().find_map(|key| schema.get(*key).and_then(Value::as_str));
    words.unwrap_or_default().chars().take(DESCRIPTION_CHARS_MAX).collect()
}

/// A pointer may be written as part of a URL.
fn percent_decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let [first, more @ ..] = rest {
        let digits =
            more.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
