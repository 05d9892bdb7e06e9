//! Parses JSON Schema to types, with limits on the cost of hostile schemas.

use std::collections::HashMap;

use lockhouse_base::percent::percent_decoded;
use serde_json::{Map, Value};

use super::intersection::{Intersection, union};
use super::{Definition, Field, Object, ParsedSchema, Type};

/// Maximum nesting depth of a schema. Deeper subschemas become [`Type::Any`].
const DEPTH_MAX: usize = 24;
/// Maximum number of subschemas and enumeration values that are read from one schema. Further subschemas become
/// [`Type::Any`].
const PARTS_MAX: usize = 10_000;
/// Maximum number of parts of types that are copied to compute the intersections in one schema.
const COPIES_MAX: usize = 20_000;
/// Maximum number of fields of an object. Further fields are left out, and the object permits any other property
/// instead.
const FIELDS_MAX: usize = 1_000;
/// Maximum number of options of an `anyOf` or `oneOf`, which is ignored if it has more. Also the maximum number of
/// items of a tuple, of patterns in `patternProperties`, and of parts of an `allOf`.
const OPTIONS_MAX: usize = 64;
/// Maximum number of values of an enumeration. A larger one becomes the union of its values' types.
const VALUES_MAX: usize = 512;
/// Maximum number of definitions of one schema that are parsed. References to further definitions become [`Type::Any`].
const DEFINITIONS_MAX: usize = 1_000;
/// Maximum length of the name of a field, in bytes, and of the name of a definition, in characters. A field with a
/// longer name is left out; a longer name of a definition is cut.
const NAME_BYTES_MAX: usize = 200;
/// Maximum length of a string in an enumeration, in bytes. With a longer one, the enumeration becomes the union of its
/// values' types.
const VALUE_BYTES_MAX: usize = 200;
/// Maximum length of a default value, in bytes. A longer one is left out.
const DEFAULT_BYTES_MAX: usize = 1_000;
/// Maximum length of a description, in characters. The rest is left out.
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Parses a JSON Schema to a type and the named definitions that the type refers to.
pub(crate) fn parse_schema(schema: &Value) -> ParsedSchema {
    let mut reader = Reader {
        root: schema,
        definitions: Vec::new(),
        indexes: HashMap::new(),
        enclosing: Vec::new(),
        parts: 0,
        copies_left: COPIES_MAX,
    };
    let kind = reader.read(schema, 0);
    ParsedSchema { kind, definitions: reader.definitions }
}

struct Reader<'s> {
    root: &'s Value,
    definitions: Vec<Definition>,
    /// The indexes of the parsed definitions in `definitions`, by their JSON pointers in the schema.
    indexes: HashMap<String, usize>,
    /// The named definitions and the lists or objects that enclose the schema being read, outermost first.
    enclosing: Vec<Enclosing>,
    parts: usize,
    copies_left: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Enclosing {
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
        let mut kind = self.own_type(schema, depth);
        if let Some(address) =
            ["$ref", "$recursiveRef", "$dynamicRef"].iter().find_map(|key| schema.get(*key))
        {
            let referred =
                address.as_str().map_or(Type::Any, |address| self.resolve_reference(address, depth));
            kind = self.intersect(kind, referred);
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten().take(OPTIONS_MAX) {
            let part = self.read(part, depth + 1);
            kind = self.intersect(kind, part);
        }
        for key in ["anyOf", "oneOf"] {
            let Some(options) = schema.get(key).and_then(Value::as_array) else { continue };
            if options.len() > OPTIONS_MAX {
                continue;
            }
            let options: Vec<Type> = options.iter().map(|option| self.read(option, depth + 1)).collect();
            // An option without properties of its own leaves an object type unchanged.
            kind = match kind {
                Type::Object(_) => self.intersection().intersect_options(options, kind, 0),
                kind => self.intersect(kind, union(options)),
            };
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) { union([kind, Type::Null]) } else { kind }
    }

    fn intersect(&mut self, one: Type, other: Type) -> Type {
        self.intersection().intersect(one, other, 0)
    }

    fn intersection(&mut self) -> Intersection<'_> {
        Intersection { definitions: &self.definitions, copies_left: &mut self.copies_left }
    }

    /// Returns the type from the schema's own keywords. References and keywords such as `allOf` are not considered.
    fn own_type(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        if let Some(value) = schema.get("const") {
            return type_of_values(std::slice::from_ref(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            self.parts += values.len().min(VALUES_MAX);
            return type_of_values(values);
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.named_type(name, schema, depth),
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().take(8).filter_map(Value::as_str).collect();
                union(names.into_iter().map(|name| self.named_type(name, schema, depth)).collect::<Vec<_>>())
            }
            _ if has_any(schema, &["properties", "additionalProperties", "patternProperties"]) => {
                self.object(schema, depth)
            }
            _ if has_any(schema, &["items", "prefixItems"]) => self.list(schema, depth),
            _ => Type::Any,
        }
    }

    fn named_type(&mut self, name: &str, schema: &Map<String, Value>, depth: usize) -> Type {
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

    /// Parses the subschema for the contents of a list or object. The subschema may refer to the type that encloses it.
    fn nested_type(&mut self, schema: &Value, depth: usize) -> Type {
        self.enclosing.push(Enclosing::Container);
        let kind = self.read(schema, depth + 1);
        self.enclosing.pop();
        kind
    }

    fn list(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        let items = schema.get("items");
        let (first, rest) = match (schema.get("prefixItems"), items) {
            (Some(Value::Array(first)), rest) => (first, rest),
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            _ => {
                return Type::List(Box::new(items.map_or(Type::Any, |items| self.nested_type(items, depth))));
            }
        };
        if first.len() > OPTIONS_MAX {
            return Type::List(Box::new(Type::Any));
        }
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let required = usize::try_from(least).unwrap_or(usize::MAX).min(first.len());
        let rest = Box::new(rest.map_or(Type::Any, |rest| self.nested_type(rest, depth)));
        Type::Tuple {
            items: first.iter().map(|item| self.nested_type(item, depth)).collect(),
            required,
            rest,
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        let empty = Map::new();
        let listed = schema.get("properties").and_then(Value::as_object);
        let properties = listed.unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().take(FIELDS_MAX).filter_map(Value::as_str).collect();
        let fits = |name: &str| name.len() <= NAME_BYTES_MAX;
        let mut fields = Vec::new();
        for (name, schema) in properties.iter().filter(|(name, _)| fits(name)).take(FIELDS_MAX) {
            let (kind, required) = (self.nested_type(schema, depth), required.contains(&name.as_str()));
            // The schema forbids this property.
            if kind == Type::Never && !required {
                continue;
            }
            let default = schema.get("default").filter(|value| is_small(value, DEFAULT_BYTES_MAX)).cloned();
            fields.push(Field {
                name: name.clone(),
                kind,
                required,
                description: description(schema),
                default,
            });
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name) && fits(name)) {
            if fields.len() < FIELDS_MAX && !fields.iter().any(|field| field.name == **name) {
                let (name, description) = ((*name).to_owned(), String::new());
                fields.push(Field { name, kind: Type::Any, required: true, description, default: None });
            }
        }
        let left_out = properties.len() > FIELDS_MAX || properties.keys().any(|name| !fits(name));
        let more = ["additionalProperties", "unevaluatedProperties"].iter().find_map(|key| schema.get(*key));
        let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
        let patterns: Vec<Type> =
            patterns.take(OPTIONS_MAX).map(|(_, schema)| self.nested_type(schema, depth)).collect();
        let rest = match more {
            _ if left_out => Type::Any,
            Some(more) => union([self.nested_type(more, depth)].into_iter().chain(patterns)),
            None if patterns.is_empty() && listed.is_none() => Type::Any,
            None => union(patterns),
        };
        Type::Object(Object { fields, rest: (rest != Type::Never).then(|| Box::new(rest)) })
    }

    /// Returns the type to which a `$ref` refers. Only JSON pointers within the same schema are followed; other
    /// references are [`Type::Any`].
    fn resolve_reference(&mut self, address: &str, depth: usize) -> Type {
        let Some(pointer) = address.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return Type::Any;
        };
        // The pointer is the fragment of a URL.
        let pointer = percent_decoded(pointer);
        if let Some(index) = self.indexes.get(&pointer) {
            return self.definition_type(*index);
        }
        let Some(target) = self.root.pointer(&pointer) else { return Type::Any };
        if self.definitions.len() == DEFINITIONS_MAX {
            return Type::Any;
        }
        let index = self.definitions.len();
        let name = pointer.rsplit('/').next().unwrap_or_default().chars().take(NAME_BYTES_MAX).collect();
        self.definitions.push(Definition { name, kind: Type::Any, description: description(target) });
        self.indexes.insert(pointer, index);
        self.enclosing.push(Enclosing::Definition(index));
        let kind = self.read(target, depth + 1);
        self.enclosing.pop();
        self.definitions[index].kind = kind;
        self.definition_type(index)
    }

    /// Returns a reference to the definition with this index. For a simple type, such as a string, returns
    /// the type itself.
    fn definition_type(&self, index: usize) -> Type {
        let position =
            self.enclosing.iter().rposition(|enclosing| *enclosing == Enclosing::Definition(index));
        if let Some(position) = position {
            // A type that is defined as itself, without a list or object between, permits anything.
            let is_inside = self.enclosing[position..].contains(&Enclosing::Container);
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

/// Returns the literal type of the values of an enumeration. Returns the union of the values' types if there are too
/// many values, or if a value is too large, a list or an object.
fn type_of_values(values: &[Value]) -> Type {
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
    union(values.iter().map(|value| match value {
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

fn description(schema: &Value) -> String {
    let words = ["description", "title"].iter().find_map(|key| schema.get(*key).and_then(Value::as_str));
    words.unwrap_or_default().chars().take(DESCRIPTION_CHARS_MAX).collect()
}
