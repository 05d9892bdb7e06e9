//! Tests of tool definitions with invisible characters: these characters never reach a model.

use lockhouse_policies::is_hidden;
use lockhouse_tests::{Table, ensure};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::Scripted;

/// The word "hide" in Unicode tag characters, which models read and people cannot see.
const TAGS: &str = "\u{e0068}\u{e0069}\u{e0064}\u{e0065}";

/// Returns the first text in a JSON value that contains an invisible character, or `None` if there is none.
fn find_hidden_text(value: &Value) -> Option<String> {
    let hides = |text: &str| text.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\t'));
    match value {
        Value::String(text) => hides(text).then(|| text.clone()),
        Value::Array(items) => items.iter().find_map(find_hidden_text),
        Value::Object(members) => members
            .iter()
            .find_map(|(name, value)| hides(name).then(|| name.clone()).or_else(|| find_hidden_text(value))),
        _ => None,
    }
}

#[tokio::test]
async fn invisible_characters_in_definitions_reach_no_model() {
    let scripted = Scripted::new("expose = \"both\"", &[], &[]);
    let schema = json!({
        "type": "object",
        "title": format!("Title{TAGS}"),
        "properties": {
            "path": {"type": "string", "description": format!("Where\u{200b} to{TAGS} look"), "default": "x\u{2066}"},
            "kind": {"enum": ["a\u{202e}b"], "description": "One of."},
            format!("odd{TAGS}"): {"type": "string"},
        },
    });
    scripted.set_tools(vec![json!({
        "name": "echo",
        "title": "Echo\u{feff}",
        "description": format!("Repeats \u{202e}text{TAGS}.\r\nSecond line, größer \u{26a0}\u{fe0f}\u{f0000}."),
        "inputSchema": schema,
        "outputSchema": {"type": "object", "properties": {"r": {"type": "string", "description": format!("Result{TAGS}")}}},
        "annotations": {"title": format!("Annotated{TAGS}")},
    })]);
    let session = scripted.lockhouse.serve().await;
    let code = |code: &'static str| Scripted::value(&session, code);
    // A search waits only briefly for a server that is starting.
    let waited = code("from mcp_tools import scripted\nscripted.list_tools()").await;
    assert_eq!(waited[0]["name"], "echo");
    let found =
        session.call("search_tools", json!({"query": "repeats text", "detail": "full"})).await.unwrap();
    let listed: Vec<Value> =
        session.tools().await.iter().map(|tool| serde_json::to_value(tool).unwrap()).collect();
    let shown = [
        ("search_tools, in full", serde_json::to_value(found).unwrap()),
        ("search_tools", session.search_tools("repeats text").await),
        ("describe", code("from mcp_tools import describe\ndescribe('scripted', 'echo')").await),
        ("list_tools", code("from mcp_tools import scripted\nscripted.list_tools()").await),
        ("help", code("from mcp_tools import scripted\n[scripted.echo.__doc__, str(scripted.echo)]").await),
        ("directly", Value::Array(listed)),
        (
            "an error",
            code("from mcp_tools import call_tool\ntry: r = call_tool('scripted', 'echo', {'nope': 1})\nexcept Exception as e: r = str(e)\nr").await,
        ),
    ];
    let mut table = Table::new("definitions with invisible characters");
    for (named, shown) in &shown {
        table.row(*named, ensure(find_hidden_text(shown).is_none(), (find_hidden_text(shown), shown)));
    }
    // Visible text and line breaks are preserved.
    for at in [0, 2, 5] {
        let (named, shown) = (&shown[at].0, shown[at].1.to_string());
        let stays =
            shown.contains("größer \u{26a0}") && shown.contains("\u{fffd}") && shown.contains("Where");
        table.row(format!("{named}: what can be seen"), ensure(stays, shown));
    }
    let ended = session.close().await;
    let told =
        ended.stderr.contains("1 of its tools have characters in their definitions that cannot be seen");
    table.row("the log", ensure(told, ended));
    table.finish();
}
