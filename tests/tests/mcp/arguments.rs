//! Tests of the ways in which programs can call an upstream tool, and of the errors of calls with wrong arguments or
//! names.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

#[tokio::test]
async fn a_tool_can_be_called_in_every_documented_way() {
    let rows = [
        ("python", "keywords", "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']"),
        ("python", "positions", "from mcp_tools.fixture import add\nadd(1, 2)['sum']"),
        ("python", "both", "from mcp_tools.fixture import add\nadd(1, b=2)['sum']"),
        ("python", "attribute of the package", "import mcp_tools\nmcp_tools.fixture.add(1, 2)['sum']"),
        ("python", "module", "import mcp_tools.fixture as f\nf.add(1, 2)['sum']"),
        ("python", "from the package", "from mcp_tools import fixture\nfixture.add(1, 2)['sum']"),
        (
            "python",
            "call_tool",
            "from mcp_tools import call_tool\ncall_tool('fixture', 'add', {'a': 1, 'b': 2})['sum']",
        ),
        (
            "python",
            "call_tool with a dot",
            "from mcp_tools import call_tool\ncall_tool('fixture.add', a=1, b=2)['sum']",
        ),
        (
            "python",
            "call_mcp_tool",
            "from mcp_tools import call_mcp_tool\ncall_mcp_tool('mcp__fixture__add', {'a': 1, 'b': 2})['sum']",
        ),
        (
            "python",
            "callMCPTool",
            "from mcp_tools import callMCPTool\ncallMCPTool('mcp__fixture__add', {'a': 1, 'b': 2})['sum']",
        ),
        ("python", "aio", "from mcp_tools.aio.fixture import add\n(await add(a=1, b=2))['sum']"),
        (
            "python",
            "aio as an attribute",
            "from mcp_tools.aio import fixture\n(await fixture.add(1, 2))['sum']",
        ),
        ("typescript", "an object", "(await fixture.add({a: 1, b: 2})).sum"),
        ("typescript", "positions", "(await fixture.add(1, 2)).sum"),
        ("typescript", "import", "import { add } from 'mcp_tools/fixture'\n;(await add({a: 1, b: 2})).sum"),
        (
            "typescript",
            "import of everything",
            "import * as f from 'mcp_tools/fixture'\n;(await f.add({a: 1, b: 2})).sum",
        ),
        (
            "typescript",
            "import of the server",
            "import { fixture } from 'mcp_tools'\n;(await fixture.add({a: 1, b: 2})).sum",
        ),
        ("typescript", "mcp_tools", "(await mcp_tools.fixture.add({a: 1, b: 2})).sum"),
        ("typescript", "require", "const { fixture: f } = require('mcp_tools'); (await f.add(1, 2)).sum"),
        ("typescript", "callTool", "(await callTool('fixture', 'add', {a: 1, b: 2})).sum"),
        ("typescript", "callTool with a dot", "(await callTool('fixture.add', {a: 1, b: 2})).sum"),
        ("typescript", "callMCPTool", "(await callMCPTool('mcp__fixture__add', {a: 1, b: 2})).sum"),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let mut table = Table::new("ways to call");
    for (language, name, code) in rows {
        let answer = session.run_code(language, code).await;
        let outcome =
            equal(answer["value"].clone(), json!(3)).map_err(|e| format!("{e} {}", answer["error"]));
        table.row(format!("{language}: {name}"), outcome);
    }
    let code = "[typeof fixture.deleteEverything, typeof fixture.delete_everything]";
    let answer = session.run_code("typescript", code).await;
    table.row("typescript: camelCase", equal(answer["value"].clone(), json!(["function", "function"])));
    table.finish();
}

#[tokio::test]
async fn wrong_arguments_are_reported_by_name() {
    let import = "from mcp_tools.fixture import add, echo\n";
    let rows: [(&str, &str, String, &[&str], &[&str]); 11] = [
        (
            "python",
            "too many",
            format!("{import}add(1, 2, 3)"),
            &["invalid_arguments"],
            &["add", "a: float, b: float"],
        ),
        ("python", "twice", format!("{import}add(1, a=2)"), &["invalid_arguments"], &["add", "a"]),
        ("python", "missing", format!("{import}add(a=1)"), &["invalid_arguments", "tool_failed"], &["add"]),
        (
            "python",
            "of a wrong type",
            format!("{import}add(a='x', b=2)"),
            &["invalid_arguments", "tool_failed"],
            &["add"],
        ),
        ("python", "no JSON", format!("{import}echo(value=object())"), &[], &["object"]),
        ("python", "a NaN", format!("{import}echo(value={{1, 2}})['value']"), &[], &[]),
        (
            "typescript",
            "too many",
            "await fixture.add(1, 2, 3)".into(),
            &["invalid_arguments"],
            &["add", "a"],
        ),
        (
            "typescript",
            "missing",
            "await fixture.add({a: 1})".into(),
            &["invalid_arguments", "tool_failed"],
            &["add"],
        ),
        (
            "typescript",
            "of a wrong type",
            "await fixture.add({a: 'x', b: 2})".into(),
            &["invalid_arguments", "tool_failed"],
            &["add"],
        ),
        (
            "typescript",
            "a function",
            "await fixture.echo({value: () => 1})".into(),
            &[],
            &["function", "value"],
        ),
        (
            "typescript",
            "a cycle",
            "const x: any = {}; x.x = x; await fixture.echo({value: x})".into(),
            &[],
            &[],
        ),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let mut table = Table::new("wrong arguments");
    for (language, name, code, codes, words) in rows {
        let answer = session.run_code(language, &code).await;
        let error = &answer["error"];
        let message = error["message"].as_str().unwrap_or_default();
        let coded = codes.is_empty() || codes.iter().any(|code| error["code"] == *code);
        let told = words.iter().all(|words| message.contains(words));
        let ended = answer["status"] == "error" || answer["value"] == json!([1, 2]);
        table.row(format!("{language}: {name}"), ensure(ended && coded && told, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn an_unknown_tool_name_suggests_the_nearest_name() {
    let rows = [
        ("python", "tool", "from mcp_tools.fixture import ad", "add"),
        ("python", "attribute", "import mcp_tools.fixture as f\nf.eco(value=1)", "echo"),
        (
            "python",
            "by name",
            "from mcp_tools import call_tool\ncall_tool('fixture', 'ecko', {'value': 1})",
            "echo",
        ),
        ("python", "server", "import mcp_tools.fixtur", "fixture"),
        (
            "python",
            "server by name",
            "from mcp_tools import call_tool\ncall_tool('fixtur', 'add', {})",
            "fixture",
        ),
        ("typescript", "tool", "await fixture.ad({a: 1, b: 2})", "add"),
        ("typescript", "by name", "await callTool('fixture', 'ecko', {value: 1})", "echo"),
        ("typescript", "server", "import { add } from 'mcp_tools/fixtur'\nadd", "fixture"),
        ("typescript", "server by name", "await callTool('fixtur', 'add', {})", "fixture"),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let mut table = Table::new("unknown names");
    for (language, name, code, nearest) in rows {
        let answer = session.run_code(language, code).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let told = answer["status"] == "error" && message.contains(nearest);
        table.row(format!("{language}: {name}"), ensure(told, &answer["error"]));
    }
    table.finish();
}
