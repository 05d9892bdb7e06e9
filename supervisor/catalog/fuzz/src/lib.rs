//! Invariants of the definitions of tools that must hold for every input. The function takes bytes, panics when an invariant is violated, and returns the kinds
//! of results that the input produced. An ordinary test passes the seeds, and changes of them, to the same function, and checks that these inputs cover all kinds
//! of results.

mod seeds;

use std::collections::BTreeSet;

use lockhouse_catalog::stubs::{self, Server, StubTool};
use lockhouse_catalog::{DescribeOptions, Tool};
use lockhouse_protocol::Language;
use serde_json::Value;

pub use seeds::seeds;

/// The names of the kinds of results that an input produced.
pub type Coverage = BTreeSet<String>;

/// Maximum length of a signature of a definition of at most 4 KB, in characters: forty parameters with types of up to 240 characters, and a result.
const SIGNATURE_CHARS_MAX: usize = 16_000;

/// Reads the definition of a tool, and prints it in each form.
pub fn tool_definition(bytes: &[u8]) -> Coverage {
    let Some(tool) = std::str::from_utf8(bytes).ok().and_then(Tool::from_json) else {
        return Coverage::from(["skipped".to_owned()]);
    };
    let mut reached = Coverage::new();
    assert!(tool.required <= tool.parameters.len());
    assert_eq!(tool.accepted_values.len(), tool.parameters.len());
    for language in [Language::Python, Language::Typescript] {
        assert_is_one_line(tool.signature(language));
    }
    assert_is_one_line(&tool.short_signature(None));
    let described = tool.describe("s", &DescribeOptions::default());
    assert!(described["parameters"].is_array(), "{described}");
    let types = described["parameters"].as_array().into_iter().flatten().map(|row| row["python"].as_str());
    reached.extend(types.map(|kind| kind_of(kind.expect("a type in Python")).to_owned()));
    stub(&tool);
    let kinds = [
        (tool.is_closed, "closed"),
        (tool.wraps_result, "wraps its result"),
        (tool.declares_values, "declares its result"),
        (tool.has_hidden_text, "hidden text"),
        (tool.is_deprecated, "deprecated"),
        (tool.side_effects.are_possible(), "may change something"),
        (tool.is_read_only(), "reads only"),
        (tool.parameters.len() > tool.required, "optional parameters"),
    ];
    reached.extend(kinds.into_iter().filter(|(holds, _)| *holds).map(|(_, kind)| kind.to_owned()));
    reached
}

fn assert_is_one_line(signature: &str) {
    assert!(!signature.is_empty() && !signature.contains(char::is_control), "{signature:?}");
    assert!(signature.chars().count() <= SIGNATURE_CHARS_MAX, "{} characters", signature.chars().count());
}

/// Prints the stubs of a server with one tool. A text of the definition must not end the comment in which it is.
fn stub(tool: &Tool) {
    let tools = vec![StubTool { tool, requires_approval: false, observed_output: None::<&Value> }];
    let server = Server { name: "s", tools };
    let (python, asynchronous) = stubs::python(&server, "s");
    assert!(python.contains("def ") && asynchronous.contains("async def "));
    for text in [python, asynchronous, stubs::typescript(&server, &[])] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

/// Returns the kind of a type in Python.
fn kind_of(python: &str) -> &str {
    let end = python.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(python.len());
    &python[..end]
}
