//! Tests that the policy decision does not depend on how a call is made: in Python or TypeScript, by tool name, as a
//! function, or in raw protocol frames of a hostile worker.

use lockhouse_tests::{Lockhouse, Session, Table, equal, fixture_server};
use serde_json::{Value, json};

use crate::policy::POLICY;

/// Returns the calls to try: the tool of the fixture server, the arguments, and the expected outcome (`ok` or the error
/// code).
fn rows() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("add", json!({"a": 1, "b": 2}), "ok"),
        ("text", json!({"text": "x"}), "ok"),
        ("delete_everything", json!({}), "denied"),
        ("delete_everything", json!({"no": "such argument"}), "denied"),
        ("fail", json!({"message": "x"}), "denied"),
        ("fail", json!({"message": 3}), "denied"),
        ("add", json!({"a": 1}), "invalid_arguments"),
        ("add", json!({"a": 1, "b": "2"}), "invalid_arguments"),
        ("add", json!({"a": 1, "b": 2, "c": 3}), "invalid_arguments"),
        ("text", json!({"text": null}), "invalid_arguments"),
        ("tex", json!({}), "unknown_tool"),
    ]
}

const PYTHON: &str = "\
import json, mcp_tools
from mcp_tools import call_tool, callMCPTool, ToolError
async def of(way, tool, arguments):
    try:
        answer = way(tool, arguments)
        if hasattr(answer, '__await__'): await answer
        return 'ok'
    except ToolError as error: return error.code
    except AttributeError: return 'unknown_tool'
ways = {
    'call_tool': lambda tool, arguments: call_tool('fixture', tool, arguments),
    'callMCPTool': lambda tool, arguments: callMCPTool('mcp__fixture__' + tool, arguments),
    'a function': lambda tool, arguments: getattr(mcp_tools.fixture, tool)(**arguments),
    'aio': lambda tool, arguments: mcp_tools.aio.call_tool('fixture', tool, arguments),
}
rows = json.loads(ROWS)
{name: [await of(way, tool, arguments) for tool, arguments, _ in rows] for name, way in ways.items()}
";

const TYPESCRIPT: &str = "\
const of = async (way, tool, args) => {
    try { await way(tool, args); return 'ok' } catch (error) { return error.code ?? String(error) }
}
const ways = {
    'callTool': (tool, args) => callTool('fixture', tool, args),
    'callMCPTool': (tool, args) => callMCPTool('mcp__fixture__' + tool, args),
    'a function': (tool, args) => fixture[tool](args),
}
const found = {}
for (const [name, way] of Object.entries(ways)) {
    found[name] = []
    for (const [tool, args] of JSON.parse(ROWS)) found[name].push(await of(way, tool, args))
}
return found
";

async fn calls_received(session: &Session) -> u64 {
    let answer = session.run_code("python", "import mcp_tools\nmcp_tools.fixture.count()").await;
    answer["value"].as_object().unwrap().values().filter_map(Value::as_u64).sum()
}

#[tokio::test]
async fn every_way_to_call_gets_the_same_decision() {
    let rows = rows();
    let expected: Vec<&str> = rows.iter().map(|row| row.2).collect();
    let quoted = format!("{:?}", json!(rows).to_string());
    let mut table = Table::new("ways to call, and their outcomes");
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let session = lockhouse.serve().await;
    let mut ways = 0;
    for (language, program) in [("python", PYTHON), ("typescript", TYPESCRIPT)] {
        let answer = session.run_code(language, &program.replace("ROWS", &quoted)).await;
        let Some(found) = answer["value"].as_object() else {
            table.row(language, Err(answer.to_string()));
            continue;
        };
        for (way, found) in found {
            ways += 1;
            table.row(format!("{language}: {way}"), equal(found, &json!(expected)));
        }
    }
    // The call of `count` is one of the counted calls.
    table.row(
        "what was permitted arrived, and nothing else",
        equal(calls_received(&session).await, 2 * ways + 1),
    );

    let peer = fixture_server().with_file_name("hostile-peer");
    let config = format!("[javascript]\nworker = {peer:?}\n");
    let forged = Lockhouse::new().server("fixture", &[]).policy(POLICY).config(&config);
    let session = forged.serve().await;
    let mut found = Vec::new();
    for (tool, arguments, _) in &rows {
        let answer = session.run_code("typescript", &format!("call {tool} {arguments}")).await;
        found.push(answer["value"].as_str().unwrap_or("no value").replace("answered", "ok"));
    }
    table.row("frames of a hostile worker", equal(found, expected.iter().map(ToString::to_string).collect()));
    table.row("and what arrived of them", equal(calls_received(&session).await, 3));
    table.finish();
}
