//! The result type (shape) of a tool, which is inferred from samples of its results. Each new sample adds types and
//! fields to the shape.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::field_names::is_field_name;
use super::sample::Sample;

/// Maximum number of fields of an object. An object with more fields counts as a map.
const FIELDS_MAX: usize = 48;
/// Number of observed objects that must have a field before its name is written to disk or shown, because
/// a key of only one object may be personal data.
const CONFIRMATIONS_MIN: u32 = 2;
/// Maximum number of types in the result shape of one tool.
/// Bound: tools and searches.
const NODES_MAX: usize = 600;
/// Minimum number of keys with which an object that contains only numbers counts as a map.
const NUMBERS_MIN: usize = 3;

/// The types that were observed at one place of a tool's result. A place is the whole result, the items of a list, or a
/// field of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Shape {
    #[serde(skip_serializing_if = "is_false")]
    null: bool,
    #[serde(skip_serializing_if = "is_false")]
    boolean: bool,
    #[serde(skip_serializing_if = "is_false")]
    integer: bool,
    #[serde(skip_serializing_if = "is_false")]
    number: bool,
    #[serde(skip_serializing_if = "is_false")]
    text: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Box<Shape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Object>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Object {
    /// A map with data as keys, such as counts by person. Only the shape of its values is stored, not its
    /// keys.
    Map(Box<Shape>),
    /// An object with field names: `seen` is the number of observed objects, and `fields` are in the order of
    /// first observation.
    Record { seen: u32, fields: Vec<Field> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: Box<str>,
    /// The number of observed objects that had the field.
    seen: u32,
    shape: Shape,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Shape {
    /// Converts a sample of a call's result to a shape. `values` are the strings in the call's arguments and
    /// result, in lower case. An object counts as a map if one of its keys equals one of these strings.
    pub(super) fn from_sample(sample: &Sample, values: &HashSet<String>) -> Self {
        let mut shape = Self::default();
        match sample {
            Sample::Null => shape.null = true,
            Sample::Bool => shape.boolean = true,
            Sample::Integer => shape.integer = true,
            Sample::Number => shape.number = true,
            Sample::Text(_) => shape.text = true,
            Sample::List(elements) => {
                let mut items = Self::default();
                elements.iter().for_each(|element| items.merge(Self::from_sample(element, values)));
                shape.list = Some(Box::new(items));
            }
            Sample::Object(members, more) => {
                shape.object = Some(Object::from_members(members, *more, values))
            }
            Sample::Unknown => {}
        }
        shape
    }

    /// Adds the types and fields of another shape to this one, whose objects are others.
    pub(super) fn merge(&mut self, other: Self) {
        self.merge_counted(other, u32::saturating_add);
    }

    /// Adds the types and fields of a shape of which some objects are the same.
    pub(super) fn unite(&mut self, other: Self) {
        self.merge_counted(other, u32::max);
    }

    /// Adds the types and fields of another shape. `count` returns how many objects two numbers of observed objects are together.
    fn merge_counted(&mut self, other: Self, count: fn(u32, u32) -> u32) {
        self.null |= other.null;
        self.boolean |= other.boolean;
        self.integer |= other.integer;
        self.number |= other.number;
        self.text |= other.text;
        match (&mut self.list, other.list) {
            (Some(items), Some(others)) => items.merge_counted(*others, count),
            (items @ None, others) => *items = others,
            (Some(_), None) => {}
        }
        self.object = match (self.object.take(), other.object) {
            (Some(one), Some(other)) => Some(one.merge(other, count)),
            (one, other) => one.or(other),
        };
        if self.nodes() > NODES_MAX {
            self.truncate();
        }
    }

    /// Returns the shape without the fields that fewer than [`CONFIRMATIONS_MIN`] observed objects had. Only
    /// this reduced shape is written to disk and shown.
    pub(super) fn confirmed(&self) -> Self {
        let mut shape = self.clone();
        shape.list = self.list.as_ref().map(|items| Box::new(items.confirmed()));
        shape.object = self.object.as_ref().map(|object| match object {
            Object::Map(values) => Object::Map(Box::new(values.confirmed())),
            Object::Record { seen, fields } => {
                let state = fields.iter().filter(|field| field.seen >= CONFIRMATIONS_MIN);
                let confirmed = |field: &Field| Field { shape: field.shape.confirmed(), ..field.clone() };
                Object::Record { seen: *seen, fields: state.map(confirmed).collect() }
            }
        });
        shape
    }

    /// Converts the shape to a JSON Schema.
    pub(super) fn schema(&self) -> Value {
        let mut kinds: Vec<Value> = Vec::new();
        let simple = [
            (self.boolean, "boolean"),
            (self.integer && !self.number, "integer"),
            (self.number, "number"),
            (self.text, "string"),
        ];
        kinds.extend(simple.iter().filter(|(seen, _)| *seen).map(|(_, kind)| json!({"type": kind})));
        if let Some(items) = &self.list {
            kinds.push(match items.is_empty() {
                true => json!({"type": "array"}),
                false => json!({"type": "array", "items": items.schema()}),
            });
        }
        kinds.extend(self.object.as_ref().map(Object::schema));
        if self.null {
            kinds.push(json!({"type": "null"}));
        }
        match kinds.len() {
            0 => json!({}),
            1 => kinds.remove(0),
            _ => json!({"anyOf": kinds}),
        }
    }

    /// Returns whether no type was observed.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a shape from a file is valid: every key looks like a field name, and the shape is
    /// within the limits.
    pub(super) fn is_valid(&self) -> bool {
        let object = match &self.object {
            None => true,
            Some(Object::Map(values)) => values.is_valid(),
            Some(Object::Record { fields, .. }) => {
                fields.len() <= FIELDS_MAX
                    && fields.iter().all(|field| is_field_name(&field.name) && field.shape.is_valid())
            }
        };
        object && self.list.as_ref().is_none_or(|items| items.is_valid()) && self.nodes() <= NODES_MAX
    }

    fn nodes(&self) -> usize {
        let object = match &self.object {
            None => 0,
            Some(Object::Map(values)) => values.nodes(),
            Some(Object::Record { fields, .. }) => fields.iter().map(|field| field.shape.nodes()).sum(),
        };
        1 + object + self.list.as_ref().map_or(0, |items| items.nodes())
    }

    /// Makes a shape with too many types smaller: removes the contents of all lists and objects except the
    /// outermost ones.
    fn truncate(&mut self) {
        let mut outer = self.list.as_deref_mut().into_iter().collect::<Vec<_>>();
        match &mut self.object {
            Some(Object::Map(values)) => outer.push(values),
            Some(Object::Record { fields, .. }) => {
                outer.extend(fields.iter_mut().map(|field| &mut field.shape))
            }
            None => {}
        }
        for shape in outer {
            shape.list = shape.list.take().map(|_| Box::default());
            shape.object = shape.object.take().map(|_| Object::Map(Box::default()));
        }
    }

    fn is_number(&self) -> bool {
        (self.integer || self.number)
            && !self.text
            && !self.boolean
            && self.list.is_none()
            && self.object.is_none()
    }
}

impl Object {
    fn from_members(members: &[(Box<str>, Sample)], more: bool, values: &HashSet<String>) -> Self {
        let is_value = |key: &str| !is_field_name(key) || values.contains(&key.to_ascii_lowercase());
        let fields: Vec<Field> = members
            .iter()
            .map(|(name, member)| Field {
                name: name.clone(),
                seen: 1,
                shape: Shape::from_sample(member, values),
            })
            .collect();
        let is_map = more || fields.len() > FIELDS_MAX || members.iter().any(|(key, _)| is_value(key));
        if is_map || are_map_values(&fields) {
            Self::into_map(fields)
        } else {
            Self::Record { seen: 1, fields }
        }
    }

    /// Converts the fields of an object to a map: merges the shapes of their values, and drops their names.
    fn into_map(fields: Vec<Field>) -> Self {
        let mut values = Shape::default();
        fields.into_iter().for_each(|field| values.merge(field.shape));
        Self::Map(Box::new(values))
    }

    fn merge(self, other: Self, count: fn(u32, u32) -> u32) -> Self {
        match (self, other) {
            (Self::Record { seen, mut fields }, Self::Record { seen: more, fields: others }) => {
                let shared = others.iter().any(|other| fields.iter().any(|field| field.name == other.name));
                let is_map = !fields.is_empty() && !others.is_empty() && !shared;
                for other in others {
                    match fields.iter_mut().find(|field| field.name == other.name) {
                        Some(field) => {
                            field.seen = count(field.seen, other.seen);
                            field.shape.merge_counted(other.shape, count);
                        }
                        None => fields.push(other),
                    }
                }
                match is_map || fields.len() > FIELDS_MAX {
                    true => Self::into_map(fields),
                    false => Self::Record { seen: count(seen, more), fields },
                }
            }
            (one, other) => {
                let mut values = one.into_values();
                values.merge(other.into_values());
                Self::Map(Box::new(values))
            }
        }
    }

    fn into_values(self) -> Shape {
        match self {
            Self::Map(values) => *values,
            Self::Record { fields, .. } => match Self::into_map(fields) {
                Self::Map(values) => *values,
                Self::Record { .. } => Shape::default(),
            },
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Map(values) => json!({"type": "object", "additionalProperties": values.schema()}),
            Self::Record { fields, .. } if fields.is_empty() => json!({"type": "object"}),
            Self::Record { seen, fields } => {
                let properties: Map<String, Value> =
                    fields.iter().map(|field| (field.name.to_string(), field.shape.schema())).collect();
                let always = fields.iter().filter(|field| field.seen >= *seen);
                let required: Vec<&str> = always.map(|field| &*field.name).collect();
                json!({"type": "object", "properties": properties, "required": required})
            }
        }
    }
}

/// Returns whether the fields of an object look like the values of a map: at least two fields that are all objects with
/// the same fields, or at least three fields that are all numbers.
fn are_map_values(fields: &[Field]) -> bool {
    let [first, rest @ ..] = fields else { return false };
    if fields.len() >= NUMBERS_MIN && fields.iter().all(|field| field.shape.is_number()) {
        return true;
    }
    fn names(field: &Field) -> Option<Vec<&str>> {
        match field.shape.object.as_ref()? {
            Object::Record { fields, .. } => Some(fields.iter().map(|field| &*field.name).collect()),
            Object::Map(_) => Some(Vec::new()),
        }
    }
    names(first).is_some_and(|first| {
        !rest.is_empty() && rest.iter().all(|other| names(other).as_ref() == Some(&first))
    })
}
