//! Arguments as the validator sees them: JSON that a [`Meter`] stands beside.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

use super::meter::Meter;

/// Of a text, in an error.
const KEPT_CHARS: usize = 200;

/// JSON whose reading is counted.
pub(super) struct Metered;

/// One value.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    value: &'a Value,
    /// None for names of properties, which stand alone.
    meter: Option<&'a Meter>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(value: &'a Value, meter: &'a Meter) -> Self {
        Self { value, meter: Some(meter) }
    }

    fn look(&self) -> &'a Value {
        if let Some(meter) = self.meter {
            meter.look();
        }
        self.value
    }
}

impl Json for Metered {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, string, |value| f(Seen { value, meter: None }))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = SeenObject<'a>;
    type Array = SeenArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<SeenObject<'a>> {
        Some(SeenObject { members: self.look().as_object()?, meter: self.meter })
    }

    fn as_array(&self) -> Option<SeenArray<'a>> {
        Some(SeenArray { elements: self.look().as_array()?, meter: self.meter })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.look().as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        self.look().as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    fn is_null(&self) -> bool {
        self.look().is_null()
    }

    fn json_type(&self) -> JsonType {
        JsonType::from(self.look())
    }

    fn equals_value(&self, expected: &Value) -> bool {
        jsonschema::json::cmp::equal(self.look(), expected)
    }

    /// What an error keeps, and an error of alternatives for each of them: enough to be shown, and never the whole of it.
    fn to_value(&self) -> Cow<'a, Value> {
        match self.look() {
            Value::Array(_) => Cow::Owned(Value::Array(Vec::new())),
            Value::Object(_) => Cow::Owned(Value::Object(Map::new())),
            Value::String(text) if text.len() > KEPT_CHARS => {
                Cow::Owned(Value::String(text.chars().take(KEPT_CHARS).collect()))
            }
            small => Cow::Borrowed(small),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.look()) as usize))
    }
}

/// An object.
pub(super) struct SeenObject<'a> {
    members: &'a Map<String, Value>,
    meter: Option<&'a Meter>,
}

impl<'a> Object<'a, Metered> for SeenObject<'a> {
    type Node = Seen<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        let meter = self.meter;
        self.members.get(key).map(|value| Seen { value, meter })
    }

    fn members(&self) -> Members<'a> {
        Members { members: self.members.iter(), meter: self.meter }
    }
}

/// Names and values of an object.
pub(super) struct Members<'a> {
    members: serde_json::map::Iter<'a>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        if let Some(meter) = self.meter {
            meter.look();
        }
        Some((name, Seen { value, meter: self.meter }))
    }
}

/// An array.
pub(super) struct SeenArray<'a> {
    elements: &'a [Value],
    meter: Option<&'a Meter>,
}

impl<'a> Array<'a, Metered> for SeenArray<'a> {
    type Node = Seen<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.elements.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements { elements: self.elements.iter(), meter: self.meter }
    }

    fn is_unique(&self) -> bool {
        jsonschema::json::unique::is_unique(self.elements)
    }
}

/// Elements of an array.
pub(super) struct Elements<'a> {
    elements: std::slice::Iter<'a, Value>,
    meter: Option<&'a Meter>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let meter = self.meter;
        self.elements.next().map(|value| Seen { value, meter })
    }
}
