//! An implementation of the JSON interface of the schema validator in which each read of a JSON value counts
//! against a validation budget.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

use super::validation_budget::ValidationMeter;

/// Maximum number of characters of a string in a validation error, which contains a copy of the wrong value.
/// Longer strings are truncated.
const KEPT_CHARS: usize = 200;

/// Marker type for the schema validator: JSON values whose reads count against a validation budget.
pub(super) struct BudgetedJson;

/// A JSON value in the arguments of a call. Each read by the validator counts against the validation budget.
#[derive(Clone, Copy)]
pub(super) struct BudgetedValue<'a> {
    value: &'a Value,
    /// Counts the reads. `None` for property names, which the validator passes as separate strings and whose
    /// reads are not counted.
    meter: Option<&'a ValidationMeter>,
}

impl<'a> BudgetedValue<'a> {
    pub(super) fn new(value: &'a Value, meter: &'a ValidationMeter) -> Self {
        Self { value, meter: Some(meter) }
    }

    /// Counts one read of the value against the validation budget, and returns the value.
    fn read_value(&self) -> &'a Value {
        if let Some(meter) = self.meter {
            meter.count_read();
        }
        self.value
    }
}

impl Json for BudgetedJson {
    type Node<'a> = BudgetedValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(BudgetedValue<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(BudgetedValue { value, meter: None }))
    }
}

impl<'a> Node<'a, BudgetedJson> for BudgetedValue<'a> {
    type Object = BudgetedObject<'a>;
    type Array = BudgetedArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<BudgetedObject<'a>> {
        Some(BudgetedObject { members: self.read_value().as_object()?, meter: self.meter })
    }

    fn as_array(&self) -> Option<BudgetedArray<'a>> {
        Some(BudgetedArray { elements: self.read_value().as_array()?, meter: self.meter })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.read_value().as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.read_value().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.read_value().as_bool()
    }

    fn is_null(&self) -> bool {
        self.read_value().is_null()
    }

    fn json_type(&self) -> JsonType {
        JsonType::from(self.read_value())
    }

    fn equals_value(&self, expected: &Value) -> bool {
        jsonschema::json::cmp::equal(self.read_value(), expected)
    }

    /// Returns the copy of the value for a validation error. Long strings are truncated, and arrays and objects
    /// are emptied, because an error about alternatives (such as `anyOf`) contains a copy for each alternative.
    fn to_value(&self) -> Cow<'a, Value> {
        match self.read_value() {
            Value::Array(_) => Cow::Owned(Value::Array(Vec::new())),
            Value::Object(_) => Cow::Owned(Value::Object(Map::new())),
            Value::String(text) if text.len() > KEPT_CHARS => {
                Cow::Owned(Value::String(text.chars().take(KEPT_CHARS).collect()))
            }
            small => Cow::Borrowed(small),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.read_value()) as usize))
    }
}

/// A JSON object in the arguments of a call. Reads of its members count against the validation budget.
pub(super) struct BudgetedObject<'a> {
    members: &'a Map<String, Value>,
    meter: Option<&'a ValidationMeter>,
}

impl<'a> Object<'a, BudgetedJson> for BudgetedObject<'a> {
    type Node = BudgetedValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MemberIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<BudgetedValue<'a>> {
        let meter = self.meter;
        self.members.get(key).map(|value| BudgetedValue { value, meter })
    }

    fn members(&self) -> MemberIter<'a> {
        MemberIter { members: self.members.iter(), meter: self.meter }
    }
}

/// Iterates over the members of a JSON object. Each step of the iterator counts as a read against the validation
/// budget, in addition to the reads of the member.
pub(super) struct MemberIter<'a> {
    members: serde_json::map::Iter<'a>,
    meter: Option<&'a ValidationMeter>,
}

impl<'a> Iterator for MemberIter<'a> {
    type Item = (&'a str, BudgetedValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        if let Some(meter) = self.meter {
            meter.count_read();
        }
        Some((name, BudgetedValue { value, meter: self.meter }))
    }
}

/// A JSON array in the arguments of a call. Reads of its elements count against the validation budget.
pub(super) struct BudgetedArray<'a> {
    elements: &'a [Value],
    meter: Option<&'a ValidationMeter>,
}

impl<'a> Array<'a, BudgetedJson> for BudgetedArray<'a> {
    type Node = BudgetedValue<'a>;
    type ElementsIter = ElementIter<'a>;

    fn len(&self) -> usize {
        self.elements.len()
    }

    fn elements(&self) -> ElementIter<'a> {
        ElementIter { elements: self.elements.iter(), meter: self.meter }
    }

    fn is_unique(&self) -> bool {
        jsonschema::json::unique::is_unique(self.elements)
    }
}

/// Iterates over the elements of a JSON array. Only reads of an element count against the validation budget.
pub(super) struct ElementIter<'a> {
    elements: std::slice::Iter<'a, Value>,
    meter: Option<&'a ValidationMeter>,
}

impl<'a> Iterator for ElementIter<'a> {
    type Item = BudgetedValue<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let meter = self.meter;
        self.elements.next().map(|value| BudgetedValue { value, meter })
    }
}
