//! Tests that scripts written for an earlier version of Lockhouse go on to work: the members of the JSON that commands
//! print, their types, and the exit statuses. `former_answers.json` has those of the earlier version.

use std::collections::BTreeMap;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde::Deserialize;
use serde_json::Value;

const FORMER: &str = include_str!("former_answers.json");

/// A command that the earlier version ran.
#[derive(Deserialize)]
struct Former {
    name: String,
    arguments: Vec<String>,
    input: String,
    exit: i32,
    /// The types of the members of the printed JSON, by their paths, such as `calls[].tool`. Empty if no JSON was printed.
    members: BTreeMap<String, String>,
}

#[test]
fn answers_have_the_members_and_exit_statuses_of_the_earlier_version() {
    let former: Vec<Former> = serde_json::from_str(FORMER).expect("the data");
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("answers of the earlier version");
    for Former { name, arguments, input, exit, members } in former {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = lockhouse.run_with_input(&arguments, input.as_bytes());
        table.row(
            format!("{name}: the exit status"),
            equal(output.status, Some(exit)).map_err(|error| format!("{error} {}", output.transcript())),
        );
        let mut present = BTreeMap::new();
        collect(&serde_json::from_str(&output.stdout).unwrap_or_default(), "", &mut present);
        let missing: Vec<_> =
            members.iter().filter(|(path, kind)| present.get(*path) != Some(kind)).collect();
        table.row(format!("{name}: the members"), ensure(missing.is_empty(), (missing, &output.stdout)));
    }
    table.finish();
}

/// Adds the types of all members of a value by their paths.
fn collect(value: &Value, path: &str, members: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(object) => {
            for (name, member) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                members.insert(path.clone(), kind(member).to_owned());
                collect(member, &path, members);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{path}[]"), members)),
        _ => {}
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
