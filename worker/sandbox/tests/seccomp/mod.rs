//! Reads the data of the worker's seccomp filters, and evaluates their rules for the tests.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeSet;

use serde_json::Value;

const COMMON: &str = include_str!("../../../seccomp/common.json");

const ZYGOTE: &str = include_str!("../../../seccomp/zygote.json");

/// The supported architectures, each with its additional seccomp rules as JSON.
pub(crate) const ARCHITECTURES: [(&str, &str); 2] = [
    ("x86_64", include_str!("../../../seccomp/x86_64.json")),
    ("aarch64", include_str!("../../../seccomp/aarch64.json")),
];

/// Returns the seccomp filters that are common to all architectures, with the additional rules of one architecture.
pub(crate) fn merged(architecture: &str) -> Value {
    let mut document: Value = serde_json::from_str(COMMON).unwrap();
    let (_, own) = ARCHITECTURES.iter().find(|(name, _)| *name == architecture).unwrap();
    let own: Value = serde_json::from_str(own).unwrap();
    for (filter, rules) in own.as_object().unwrap() {
        let merged = document[filter]["filter"].as_array_mut().unwrap();
        merged.extend(rules.as_array().unwrap().iter().cloned());
    }
    document
}

/// Returns the rules of `zygote.json` that apply to one architecture: the common rules and its own.
pub(crate) fn zygote(architecture: &str) -> Vec<Value> {
    let rules: Value = serde_json::from_str(ZYGOTE).unwrap();
    ["common", architecture].iter().flat_map(|list| rules[list].as_array().unwrap().clone()).collect()
}

/// Returns the seccomp filters of x86-64: the common rules and those of this architecture.
pub(crate) fn document() -> Value {
    merged("x86_64")
}

pub(crate) fn rules(filter: &str) -> Vec<Value> {
    document()[filter]["filter"].as_array().unwrap().clone()
}

pub(crate) fn syscall(rule: &Value) -> &str {
    rule["syscall"].as_str().unwrap()
}

pub(crate) fn names(filter: &str) -> BTreeSet<String> {
    rules(filter).iter().map(|rule| syscall(rule).to_owned()).collect()
}

pub(crate) fn conditions(rule: &Value) -> &[Value] {
    rule.get("args").map_or(&[], |args| args.as_array().unwrap())
}

/// Returns whether a condition of a seccomp rule holds for these system call arguments, as seccompiler's documentation
/// defines it.
pub(crate) fn holds(condition: &Value, arguments: [u64; 6]) -> bool {
    let argument = arguments[condition["index"].as_u64().unwrap() as usize];
    let width = if condition["type"] == "dword" { u64::from(u32::MAX) } else { u64::MAX };
    let value = condition["val"].as_u64().unwrap();
    let mask = match &condition["op"] {
        Value::String(op) if op == "eq" => u64::MAX,
        op => {
            op["masked_eq"].as_u64().unwrap_or_else(|| panic!("{op} is new: teach this test what it means"))
        }
    };
    argument & mask & width == value & mask & width
}

/// Returns whether the seccomp filter of x86-64 allows a system call with these arguments.
pub(crate) fn allows(name: &str, arguments: [u64; 6]) -> bool {
    allows_in(&document(), name, arguments)
}

/// Returns whether the seccomp filter in `document` allows a system call with these arguments.
pub(crate) fn allows_in(document: &Value, name: &str, arguments: [u64; 6]) -> bool {
    let rules = document["allowed"]["filter"].as_array().unwrap();
    let mut of_that_name = rules.iter().filter(|rule| syscall(rule) == name);
    of_that_name.any(|rule| conditions(rule).iter().all(|condition| holds(condition, arguments)))
}
