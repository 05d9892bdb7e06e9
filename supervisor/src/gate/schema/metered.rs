//! Arguments as the validator sees them: every look is counted, and the look that is one too many ends the validation.
//!
//! A schema comes from an upstream server and arguments come from a program. Between them they can make a validator work
//! for as long as they like, and as deep as they like; the validator itself knows no bound.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

/// Looks between two looks at the clock.
const LOOKS_PER_GLANCE: u32 = 32;
/// How deep the validator may go, in bytes of stack. A thread has at least two million.
const STACK_BYTES_MAX: usize = 1024 * 1024;

/// Of a text, in an error.
const KEPT_CHARS: usize = 200;

/// What one validation may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) looks: u32,
    pub(super) time: Duration,
}

/// A validation was ended because it cost too much.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// Counts one validation.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u32>,
    until: Instant,
    stack: usize,
}

impl Meter {
    /// Runs `work` until it is done, or has cost more than the budget.
    pub(super) fn within<T>(budget: Budget, work: impl FnOnce(&Self) -> T) -> Result<T, Exhausted> {
        let meter = Self {
            left: Cell::new(budget.looks),
            until: Instant::now() + budget.time,
            stack: stack_address(),
        };
        // Nothing is used afterwards that was in the making when it ended.
        match catch_unwind(AssertUnwindSafe(|| work(&meter))) {
            Ok(done) => Ok(done),
            Err(_) => Err(Exhausted),
        }
    }

    fn look(&self) {
        let left = self.left.get();
        let deep = self.stack.abs_diff(stack_address()) > STACK_BYTES_MAX;
        let late = left.is_multiple_of(LOOKS_PER_GLANCE) && Instant::now() > self.until;
        if left == 0 || deep || late {
            // The one way out of a library that asks nobody whether to go on. The panic hook is not told.
            resume_unwind(Box::new(Exhausted));
        }
        self.left.set(left - 1);
    }
}

/// Near the end of the stack that is in use.
#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)) as usize
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_costs_more_than_its_budget_ends() {
        let value = Value::Null;
        let look = |times: u32| {
            let budget = Budget { looks: 100, time: Duration::from_secs(60) };
            Meter::within(budget, |meter| (0..times).filter(|_| Seen::new(&value, meter).is_null()).count())
        };
        assert_eq!((look(100), look(101)), (Ok(100), Err(Exhausted)));
        let none = Budget { looks: 1_000, time: Duration::ZERO };
        let late = Meter::within(none, |meter| (0..1_000).all(|_| Seen::new(&value, meter).is_null()));
        assert_eq!(late, Err(Exhausted));
    }
}
