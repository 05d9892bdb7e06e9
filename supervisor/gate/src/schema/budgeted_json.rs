//! An implementation of the JSON interface of the schema validator in which each read of a JSON value counts
//! against a validation budget.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

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

    /// Returns a hash that is the same for equal values. Each value inside counts as a read.
    fn digest(self) -> u64 {
        let value = self.read_value();
        let inner = |value: &'a Value| Self { value, ..self }.digest();
        let mut hasher = DefaultHasher::new();
        std::mem::discriminant(value).hash(&mut hasher);
        match value {
            Value::Null => {}
            Value::Bool(boolean) => boolean.hash(&mut hasher),
            // An integer and a float can be equal, and so are 0 and -0, whose sum is 0.
            Value::Number(number) => {
                number.as_f64().map(|number| (number + 0.0).to_bits()).hash(&mut hasher);
            }
            Value::String(text) => text.hash(&mut hasher),
            Value::Array(elements) => {
                elements.iter().for_each(|element| inner(element).hash(&mut hasher));
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &'a Value)| {
                    let mut hasher = DefaultHasher::new();
                    (name, inner(value)).hash(&mut hasher);
                    hasher.finish()
                };
                // Members have no order.
                members.iter().map(member).fold(0, u64::wrapping_add).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// Counts a read of the value and of each value inside.
    fn count_reads(self) {
        let inner = |value: &'a Value| Self { value, ..self }.count_reads();
        match self.read_value() {
            Value::Array(elements) => elements.iter().for_each(inner),
            Value::Object(members) => members.values().for_each(inner),
            _ => {}
        }
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

    /// Returns whether no two elements are equal. Only elements with the same digest are compared. The function of the
    /// library would count no reads, and many unequal values can have the same hash in it.
    fn is_unique(&self) -> bool {
        let mut elements: Vec<(u64, BudgetedValue<'a>)> =
            self.elements().map(|element| (element.digest(), element)).collect();
        elements.sort_unstable_by_key(|(digest, _)| *digest);
        let differ = |one: BudgetedValue<'a>, other: BudgetedValue<'a>| {
            one.count_reads();
            !jsonschema::json::cmp::equal(one.value, other.value)
        };
        elements.chunk_by(|(one, _), (other, _)| one == other).all(|same| {
            let is_new = |at: usize| same[..at].iter().all(|(_, other)| differ(same[at].1, *other));
            (0..same.len()).all(is_new)
        })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::validation_budget::{Budget, BudgetExceeded};
    use super::*;

    fn is_unique(array: &Value, reads: u32) -> Result<bool, BudgetExceeded> {
        let budget = Budget { reads, time: Duration::from_secs(60) };
        ValidationMeter::run(budget, |meter| {
            BudgetedValue::new(array, meter).as_array().expect("an array").is_unique()
        })
    }

    #[test]
    fn elements_are_unique_as_in_the_library() {
        for array in [
            json!([]),
            json!([1]),
            json!([1, 1.0]),
            json!([1, 2, 1]),
            json!([0, -0.0]),
            json!([1, true, "1", null, [1], {"1": 1}]),
            json!([null, [], {}, [[]], ""]),
            json!([[1, [2]], [[1], 2], [1, 2]]),
            json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]),
            json!([{"a": 1, "b": 2}, {"a": 2, "b": 1}]),
            json!([u64::MAX, u64::MAX - 1, i64::MIN, i64::MIN + 1]),
            json!([u64::MAX, u64::MAX - 1, u64::MAX]),
            (0..40).collect(),
            (0..40).map(|number| number % 39).collect(),
        ] {
            let expected = jsonschema::json::unique::is_unique(array.as_array().expect("an array"));
            assert_eq!(is_unique(&array, 1_000), Ok(expected), "{array}");
        }
    }

    #[test]
    fn values_that_are_hashed_or_compared_count_as_reads() {
        for (array, reads) in [
            (json!([1, 2]), 3),
            (json!([[1, 2], {"a": 3}]), 6),
            // The two numbers have the same digest, and are compared.
            (json!([u64::MAX, u64::MAX - 1]), 4),
            (json!([[u64::MAX], [u64::MAX - 1]]), 7),
        ] {
            assert_eq!(is_unique(&array, reads), Ok(true), "{array}");
            assert_eq!(is_unique(&array, reads - 1), Err(BudgetExceeded), "{array}");
        }
    }
}
