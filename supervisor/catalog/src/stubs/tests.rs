//! Tests that the stubs of a small server match their snapshots, and that the stubs of any server are bounded and
//! syntactically valid.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Server, StubTool, python, typescript};
use crate::Catalogue;
use crate::types::schemas;

fn catalogue(tools: &[Value]) -> Catalogue {
    let texts: Vec<String> = tools.iter().map(Value::to_string).collect();
    Catalogue::from_definitions(texts.iter().map(String::as_str)).0
}

fn generate(catalogue: &Catalogue) -> [String; 3] {
    let observed = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let tools = catalogue.tools.iter().map(|tool| StubTool {
        tool,
        requires_approval: tool.name.as_str() == "close_issue",
        observed_output: (tool.name.as_str() == "observed").then_some(&observed),
    });
    let tools = tools.collect();
    let server = Server { name: "my-hub", tools };
    let (module, later) = python(&server, "my_hub");
    [module, later, typescript(&server, &["my-hub"])]
}

/// Checks with a Python interpreter that all texts are syntactically valid Python.
fn parse(texts: &[String]) -> Result<(), String> {
    let program = "import ast, json, sys\nfor text in json.load(sys.stdin): ast.parse(text)";
    let mut child = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3");
    let input = Value::from(texts.to_vec()).to_string();
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("a reader");
    let output = child.wait_with_output().expect("an end");
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn stubs_of_a_small_server_match_the_snapshots() {
    let tools = [
        json!({
            "name": "list-issues",
            "description": "List the issues of a repository.\nNewest first.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "owner": {"type": "string", "description": "Who it belongs to"},
                    "state": {"enum": ["open", "closed"], "default": "open"},
                    "filter": {"type": "object", "description": "What to leave out", "properties": {
                        "labels": {"type": "array", "items": {"type": "string"}},
                        "created-after": {"type": ["string", "null"]},
                    }},
                    "from": {"type": "integer", "default": 1},
                },
                "required": ["owner"],
            },
            "outputSchema": {"type": "object", "properties": {"issues": {"type": "array", "items": {"$ref": "#/$defs/Issue"}}},
                "required": ["issues"], "$defs": {"Issue": {"type": "object", "description": "One of them", "properties": {
                    "title": {"type": "string"}, "parent": {"$ref": "#/$defs/Issue"}}}}},
        }),
        json!({"name": "close_issue", "inputSchema": {"properties": {"number": {"type": "integer"}}, "required": ["number"]}}),
        json!({"name": "observed", "description": "Finds one.", "inputSchema": {"type": "object", "properties": {}}}),
        json!({"name": "delete", "inputSchema": {"type": "object", "additionalProperties": {"type": "string"}}}),
    ];
    let [module, later, declarations] = generate(&catalogue(&tools));
    parse(&[module.clone(), later.clone()]).expect("Python");
    insta::assert_snapshot!("python", module);
    insta::assert_snapshot!("python_async", later);
    insta::assert_snapshot!("typescript", declarations);
}

#[test]
fn hostile_text_cannot_leave_its_comment() {
    let hostile =
        "a\"\"\"\nimport os #\\\r\n*/ export const x = 1; /*\n@ts-nocheck\n# type: ignore\u{2028}\u{202e}x\"";
    let tool = json!({"name": "t", "description": hostile, "inputSchema": {"properties": {
        "x": {"type": "string", "description": hostile, "default": hostile}}}});
    let [module, later, declarations] = generate(&catalogue(&[tool]));
    parse(&[module.clone(), later]).expect("Python");
    assert!(!module.lines().any(|line| line.starts_with("import os")), "{module}");
    assert!(!declarations.lines().any(|line| line.trim_start().starts_with("@ts-")), "{declarations}");
    let (mut code, mut rest) = (String::new(), declarations.as_str());
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").expect("a comment ends").1;
    }
    code.push_str(rest);
    assert!(code.contains("export function t") && !code.contains("export const x"), "{declarations}");
    assert!(!declarations.contains('\u{202e}'), "{declarations}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stubs_of_any_schema_are_valid_and_bounded(inputs in prop::collection::vec((schemas(), schemas()), 1..8)) {
        let tool = |(index, (input, output)): (usize, (Value, Value))| {
            json!({"name": format!("tool-{}", index / 2), "description": "d", "inputSchema": input, "outputSchema": output})
        };
        let tools: Vec<Value> = inputs.into_iter().enumerate().map(tool).collect();
        let bytes: usize = tools.iter().map(|tool| tool.to_string().len()).sum();
        let texts = generate(&catalogue(&tools));
        for text in &texts {
            prop_assert!(text.len() < 4_000 + 60 * bytes, "{} of {bytes}", text.len());
        }
        let parsed = parse(&texts[..2]);
        prop_assert!(parsed.is_ok(), "{parsed:?}\n{}", texts[0]);
    }
}
