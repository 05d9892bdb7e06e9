//! The order in which approval prompts display a call's arguments and their nested members. The program that makes
//! the call cannot choose the order.

use std::collections::{BTreeMap, HashMap};

use lockhouse_catalog::Tool;
use lockhouse_policies::{PendingCall, SKILLS};
use serde_json::{Map, Value};

use super::prompt_limits::{ARGUMENT_CHARS_MIN, DEPTH_MAX, ELEMENTS_MAX, json_chars};
use super::schema_members::{LOOKS_MAX, MemberSchema, PARTS_MAX};

/// The arguments of `skills.save` in display order. The code comes first, because an approver must see the code that
/// later programs will run.
const OF_SKILLS: [&str; 6] = ["code", "description", "tests", "name", "language", "tags"];

/// The display order of a tool's arguments, or of the members of one value.
#[derive(Clone, Debug, Default)]
pub(super) struct ArgumentOrder {
    /// The names in display order, required ones first. Names that are not listed here follow in alphabetical order.
    pub(super) names: Vec<String>,
    /// Number of names at the beginning of `names` that are required.
    pub(super) required: usize,
    /// The display orders of nested values. The key is the name of an object's member, or a label such as `[3]`
    /// for an element of a list.
    pub(super) inner: BTreeMap<String, ArgumentOrder>,
    /// Whether the first argument is code. A prompt shows code line by line, and gives it space before all other
    /// arguments.
    pub(super) code_first: bool,
}

/// The alphabetical display order, for objects whose members the tool's schema does not list.
static BY_NAME: ArgumentOrder =
    ArgumentOrder { names: Vec::new(), required: 0, inner: BTreeMap::new(), code_first: false };

impl ArgumentOrder {
    /// Returns the display order of the arguments of a call. `tool` is the definition of the called tool, if it is
    /// known.
    ///
    /// What is sent beside the arguments counts as required.
    pub(super) fn for_call(call: &PendingCall, tool: Option<&Tool>) -> Self {
        let sent = call.everything_sent();
        let mut order = Self::for_arguments(call, &sent, tool);
        let last = sent.keys().next_back().filter(|_| call.sends_beside_arguments());
        if let Some(beside) = last.filter(|last| !order.names[..order.required].contains(last)) {
            order.names.insert(order.required, beside.clone());
            order.required += 1;
        }
        order
    }

    fn for_arguments(call: &PendingCall, arguments: &Map<String, Value>, tool: Option<&Tool>) -> Self {
        if call.server().as_str() == SKILLS {
            let names = OF_SKILLS.map(str::to_owned).to_vec();
            return Self { required: names.len(), names, code_first: true, ..Self::default() };
        }
        let Some(tool) = tool else {
            // Without a schema, each argument may be required.
            let mut names: Vec<String> = arguments.keys().cloned().collect();
            names.sort_unstable();
            return Self { required: names.len(), names, ..Self::default() };
        };
        let order = Self { names: tool.parameters.clone(), required: tool.required, ..Self::default() };
        // If all arguments fit or no value has members, the order of nested members does not matter.
        if !arguments.values().any(has_members)
            || json_chars(arguments, ARGUMENT_CHARS_MIN) <= ARGUMENT_CHARS_MIN
        {
            return order;
        }
        let definition: Value = serde_json::from_str(tool.definition()).unwrap_or_default();
        order.with_nested(definition.get("inputSchema").unwrap_or(&Value::Null), arguments)
    }

    /// Adds the display orders of the members of these arguments. `schema` is the tool's input schema.
    fn with_nested(mut self, schema: &Value, arguments: &Map<String, Value>) -> Self {
        let (schema, mut looks) = (MemberSchema::new(schema), LOOKS_MAX);
        // Required arguments are read first, so that optional ones cannot use up the limit of reads from the schema.
        for (name, value) in self.sorted(arguments).into_iter().filter(|(_, value)| has_members(value)) {
            let order = Self::for_value(&schema.member(name), value, 0, &mut looks);
            self.inner.extend(order.map(|order| (name.to_owned(), order)));
        }
        self
    }

    /// Returns the display order of a value's members. `depth` is the nesting depth of the value; an argument has
    /// depth 0. `looks` is the number of reads from the schema that are left, and is reduced here. Returns `None`
    /// if the value has no members, is nested too deeply, or no reads are left.
    fn for_value(schema: &MemberSchema<'_>, value: &Value, depth: usize, looks: &mut usize) -> Option<Self> {
        *looks = looks.saturating_sub(PARTS_MAX);
        if depth >= DEPTH_MAX || *looks == 0 {
            return None;
        }
        let mut order = Self::default();
        match value {
            Value::Object(members) => {
                let (names, required) = schema.ordered_names(members, looks);
                for name in names.iter().filter(|name| has_members(&members[**name])) {
                    let inner = Self::for_value(&schema.member(name), &members[*name], depth + 1, looks);
                    order.inner.extend(inner.map(|inner| ((*name).to_owned(), inner)));
                }
                (order.names, order.required) = (names.into_iter().map(str::to_owned).collect(), required);
            }
            Value::Array(elements) => {
                let elements = elements.iter().take(ELEMENTS_MAX).enumerate();
                for (index, element) in elements.filter(|(_, element)| has_members(element)) {
                    let inner = Self::for_value(&schema.element(index), element, depth + 1, looks);
                    order.inner.extend(inner.map(|inner| (index_label(index), inner)));
                }
            }
            _ => return None,
        }
        Some(order)
    }

    /// Whether the call needs an approval prompt of its own, because its first argument is code.
    pub(super) fn needs_own_prompt(&self) -> bool {
        self.code_first
    }

    /// Returns the arguments in display order.
    pub(super) fn sorted<'a>(&self, arguments: &'a Map<String, Value>) -> Vec<(&'a str, &'a Value)> {
        let places: HashMap<&str, usize> =
            self.names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
        let mut sorted: Vec<(&str, &Value)> =
            arguments.iter().map(|(name, value)| (name.as_str(), value)).collect();
        sorted.sort_by_key(|(name, _)| (places.get(name).copied().unwrap_or(usize::MAX), *name));
        sorted
    }

    /// Returns how many of the required names are present in these arguments.
    pub(super) fn required_count(&self, arguments: &Map<String, Value>) -> usize {
        self.names[..self.required].iter().filter(|name| arguments.contains_key(*name)).count()
    }

    /// Returns the display order for the members of the nested value with this name (or this label of a list
    /// element). The order is alphabetical if no other is known.
    pub(super) fn nested(&self, name: &str) -> &Self {
        self.inner.get(name).unwrap_or(&BY_NAME)
    }
}

fn has_members(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Returns the label of a list element, such as `[3]`. Indexes begin at 0.
pub(super) fn index_label(index: usize) -> String {
    format!("[{index}]")
}
