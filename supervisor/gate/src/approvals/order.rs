//! In which order the arguments of a call are shown, and the members of their values. A program chooses neither.

use std::collections::{BTreeMap, HashMap};

use lockhouse_catalog::Tool;
use lockhouse_policies::{PendingCall, SKILLS};
use serde_json::{Map, Value};

use super::members::{LOOKS_MAX, PARTS_MAX, Schema};
use super::room::{DEPTH_MAX, ELEMENTS_MAX, ROOM_MIN, width};

/// The arguments of `skills.save` by how much they matter to a person: what would run comes first.
const OF_SKILLS: [&str; 6] = ["code", "description", "tests", "name", "language", "tags"];

/// The order of a tool's arguments, or of the members of a value among them.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Those that are required, then the others; what is not among them follows by name.
    pub(super) names: Vec<String>,
    pub(super) required: usize,
    /// Of the members of members; of an element of a list by its place.
    pub(super) inner: BTreeMap<String, Order>,
    /// Whether the first one is code: it is shown line by line, and before others have a share.
    pub(super) code_first: bool,
}

/// Where the schema says nothing.
static BY_NAME: Order = Order { names: Vec::new(), required: 0, inner: BTreeMap::new(), code_first: false };

impl Order {
    pub(super) fn of(call: &PendingCall, tool: Option<&Tool>) -> Self {
        let arguments = call.arguments();
        if call.server().as_str() == SKILLS {
            let names = OF_SKILLS.map(str::to_owned).to_vec();
            return Self { required: names.len(), names, code_first: true, ..Self::default() };
        }
        let Some(tool) = tool else {
            // What nobody has told us to be optional may be required.
            let mut names: Vec<String> = arguments.keys().cloned().collect();
            names.sort_unstable();
            return Self { required: names.len(), names, ..Self::default() };
        };
        let order = Self { names: tool.parameters.clone(), required: tool.required, ..Self::default() };
        // Where all is shown, and where no value has members, the schema has no more to say.
        if !arguments.values().any(has_members) || width(arguments, ROOM_MIN) <= ROOM_MIN {
            return order;
        }
        let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
        order.with_inner(definition.get("inputSchema").unwrap_or(&Value::Null), arguments)
    }

    /// With the order of what is in the arguments.
    fn with_inner(mut self, schema: &Value, arguments: &Map<String, Value>) -> Self {
        let (schema, mut looks) = (Schema::of(schema), LOOKS_MAX);
        // In this order, so that what is optional takes nothing from what is required.
        for (name, value) in self.sorted(arguments).into_iter().filter(|(_, value)| has_members(value)) {
            let order = Self::within(&schema.member(name), value, 0, &mut looks);
            self.inner.extend(order.map(|order| (name.to_owned(), order)));
        }
        self
    }

    /// Of the members of a value at this depth, if they are shown one by one.
    fn within(schema: &Schema<'_>, value: &Value, depth: usize, looks: &mut usize) -> Option<Self> {
        *looks = looks.saturating_sub(PARTS_MAX);
        if depth >= DEPTH_MAX || *looks == 0 {
            return None;
        }
        let mut order = Self::default();
        match value {
            Value::Object(members) => {
                let (names, required) = schema.names(members, looks);
                for name in names.iter().filter(|name| has_members(&members[**name])) {
                    let inner = Self::within(&schema.member(name), &members[*name], depth + 1, looks);
                    order.inner.extend(inner.map(|inner| ((*name).to_owned(), inner)));
                }
                (order.names, order.required) = (names.into_iter().map(str::to_owned).collect(), required);
            }
            Value::Array(elements) => {
                let elements = elements.iter().take(ELEMENTS_MAX).enumerate();
                for (index, element) in elements.filter(|(_, element)| has_members(element)) {
                    let inner = Self::within(&schema.element(index), element, depth + 1, looks);
                    order.inner.extend(inner.map(|inner| (place(index), inner)));
                }
            }
            _ => return None,
        }
        Some(order)
    }

    /// Whether a call is too important to be one row of a table.
    pub(super) fn stands_alone(&self) -> bool {
        self.code_first
    }

    pub(super) fn sorted<'a>(&self, arguments: &'a Map<String, Value>) -> Vec<(&'a str, &'a Value)> {
        let places: HashMap<&str, usize> =
            self.names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let mut sorted: Vec<(&str, &Value)> =
            arguments.iter().map(|(name, value)| (name.as_str(), value)).collect();
        sorted.sort_by_key(|(name, _)| (places.get(name).copied().unwrap_or(usize::MAX), *name));
        sorted
    }

    pub(super) fn required_of(&self, arguments: &Map<String, Value>) -> usize {
        self.names[..self.required].iter().filter(|name| arguments.contains_key(*name)).count()
    }

    pub(super) fn inner(&self, name: &str) -> &Self {
        self.inner.get(name).unwrap_or(&BY_NAME)
    }
}

fn has_members(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// The name of an element of a list.
pub(super) fn place(index: usize) -> String {
    format!("[{index}]")
}
