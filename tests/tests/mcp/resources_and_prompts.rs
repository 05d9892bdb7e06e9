//! Tests of the resources and prompts of upstream servers that programs read.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::mcp::check;

const POLICY: &str = r#"version = 1
[servers.fixture]
allow = ["count", "mixed"]
resources = ["fixture://*"]
prompts = ["greet", "review_*"]
deny = ["fixture://private*"]
"#;

fn lockhouse() -> Lockhouse {
    Lockhouse::new().server("fixture", &[]).policy(POLICY)
}

#[tokio::test]
async fn python_reads_resources_and_gets_prompts() {
    let uris = json!(["fixture://note", "fixture://pixel", "fixture://both", "fixture://item/{number}"]);
    check(&lockhouse(), "resources and prompts in Python", &[
        ("python", "the permitted ones are listed, from every page", "from mcp_tools import list_resources\n[r.get('uri') or r['uriTemplate'] for r in list_resources('fixture')]", uris.clone()),
        ("python", "text", "from mcp_tools import read_resource\nr = read_resource('fixture', 'fixture://note')\n[r, isinstance(r, str), r.uri, r.mime_type]", json!(["a note, žluť", true, "fixture://note", "text/plain"])),
        ("python", "bytes", "from mcp_tools import read_resource\nr = read_resource('fixture', 'fixture://pixel')\n[r.data[:4].hex(), r.uri, r.mime_type]", json!(["89504e47", "fixture://pixel", "image/png"])),
        ("python", "several parts", "from mcp_tools import read_resource\n[p.uri for p in read_resource('fixture', 'fixture://both')]", json!(["fixture://note", "fixture://pixel"])),
        ("python", "one that a template makes", "from mcp_tools import read_resource\nread_resource('fixture', 'fixture://item/7')", json!("item 7")),
        ("python", "by the server's module", "from mcp_tools import fixture\n[fixture.read_resource('fixture://note'), len(fixture.list_resources())]", json!(["a note, žluť", 4])),
        ("python", "async", "import asyncio\nfrom mcp_tools import aio\nfrom mcp_tools.aio import fixture\nawait asyncio.gather(aio.read_resource('fixture', 'fixture://note'), fixture.read_resource('fixture://item/1'))", json!(["a note, žluť", "item 1"])),
        ("python", "prompts are listed", "from mcp_tools import list_prompts\n[[p['name'], [a['name'] for a in p.get('arguments', [])]] for p in list_prompts('fixture')]", json!([["greet", ["name"]], ["review_code", []]])),
        ("python", "a prompt", "from mcp_tools import get_prompt\nget_prompt('fixture', 'greet', name='Ada')", json!({"description": "Greets somebody.", "messages": [{"role": "user", "content": "Greet Ada."}]})),
        ("python", "a prompt with a resource", "from mcp_tools import fixture\nm = fixture.get_prompt('review_code')['messages']\n[m[0]['content'], m[1]['role'], m[1]['content'], m[1]['content'].uri]", json!(["Review this.", "assistant", "fine", "fixture://note"])),
        ("python", "an embedded resource of a tool", "from mcp_tools.fixture import mixed\n[mixed()[2], mixed()[2].uri]", json!(["an embedded resource", "fixture://note"])),
    ]).await;
}

#[tokio::test]
async fn typescript_reads_resources_and_gets_prompts() {
    let uris = json!(["fixture://note", "fixture://pixel", "fixture://both", "fixture://item/{number}"]);
    check(&lockhouse(), "resources and prompts in TypeScript", &[
        ("typescript", "the permitted ones are listed, from every page", "(await listResources('fixture')).map((r) => r.uri ?? r.uriTemplate)", uris),
        ("typescript", "text", "await readResource('fixture', 'fixture://note')", json!("a note, žluť")),
        ("typescript", "bytes", "const r = await read_resource('fixture', 'fixture://pixel'); [[...r.data.slice(0, 4)], r.data instanceof Uint8Array, r.uri, r.mimeType]", json!([[137, 80, 78, 71], true, "fixture://pixel", "image/png"])),
        ("typescript", "several parts", "const r = await readResource('fixture', 'fixture://both'); [r[0], r[1].uri]", json!(["a note, žluť", "fixture://pixel"])),
        ("typescript", "by the server", "[await fixture.readResource('fixture://note'), (await fixture.list_resources()).length]", json!(["a note, žluť", 4])),
        ("typescript", "by import", "import { readResource } from 'mcp_tools'; await readResource(fixture, 'fixture://item/7')", json!("item 7")),
        ("typescript", "prompts are listed", "(await listPrompts('fixture')).map((p) => p.name)", json!(["greet", "review_code"])),
        ("typescript", "a prompt", "await getPrompt('fixture', 'greet', {name: 'Ada'})", json!({"description": "Greets somebody.", "messages": [{"role": "user", "content": "Greet Ada."}]})),
        ("typescript", "a prompt without arguments", "(await fixture.getPrompt('review_code')).messages[1].content.uri", json!("fixture://note")),
    ]).await;
}

#[tokio::test]
async fn unknown_names_are_reported_with_suggestions() {
    let rows = [
        (
            "a denied resource",
            "read_resource('fixture', 'fixture://private/key')",
            "denied",
            "\"fixture://private*\" in deny",
        ),
        (
            "a denied resource, written otherwise",
            "read_resource('fixture', 'fixture://./%70rivate/key')",
            "denied",
            "in deny",
        ),
        (
            "a resource of nowhere",
            "read_resource('fixture', 'file:///etc/passwd')",
            "denied",
            "resources list of [servers.fixture]",
        ),
        (
            "a resource that climbs",
            "read_resource('fixture', 'fixture://item/../private/key')",
            "denied",
            "resources list",
        ),
        (
            "a slip in a URI",
            "read_resource('fixture', 'fixture://notes')",
            "unknown_tool",
            "did you mean fixture://note?",
        ),
        ("a denied prompt", "get_prompt('fixture', 'hidden')", "denied", "prompts list of [servers.fixture]"),
        (
            "a slip in a prompt's name",
            "get_prompt('fixture', 'review_cod')",
            "unknown_tool",
            "did you mean review_code?",
        ),
        ("a missing argument", "get_prompt('fixture', 'greet')", "invalid_arguments", "name is missing"),
        (
            "an argument that is no string",
            "get_prompt('fixture', 'greet', {'name': 3})",
            "invalid_arguments",
            "strings",
        ),
        (
            "no server",
            "read_resource('fixtur', 'fixture://note')",
            "unknown_tool",
            "there is no MCP server 'fixtur'",
        ),
        (
            "a URI that is none",
            "read_resource('fixture', 'a\\nb')",
            "unknown_tool",
            "a resource URI is not valid",
        ),
        ("a URI of 9,000 bytes", "read_resource('fixture', 'x' * 9000)", "unknown_tool", "8192 bytes"),
        (
            "a server without resources",
            "read_resource('plain', 'x:y')",
            "unknown_tool",
            "server plain offers no resources",
        ),
        (
            "a server without prompts",
            "list_prompts('plain')",
            "unknown_tool",
            "server plain offers no prompts",
        ),
    ];
    let policy = format!("{POLICY}[servers.plain]\nresources = [\"*\"]\nprompts = [\"*\"]\n");
    let lockhouse = lockhouse().server("plain", &["--only-tools"]).policy(&policy);
    let session = lockhouse.serve().await;
    let mut table = Table::new("invalid requests for resources and prompts");
    for (name, expression, code, words) in rows {
        let program = format!("from mcp_tools import *\n{expression}");
        let error = session.run_code("python", &program).await["error"].clone();
        let told = error["message"].as_str().is_some_and(|message| message.contains(words));
        table.row(name, ensure(error["code"] == code && told, &error));
    }
    let fine = session
        .run_code("python", "from mcp_tools import *\nread_resource('fixture', 'fixture://note')")
        .await;
    table.row("control", equal(&fine["value"], &json!("a note, žluť")));
    table.finish();
}

#[tokio::test]
async fn denied_requests_never_reach_the_server() {
    let lockhouse = Lockhouse::new()
        .server("fixture", &[])
        .policy("version = 1\n[servers.fixture]\nallow = [\"count\"]\n");
    let session = lockhouse.serve().await;
    let code = "from mcp_tools import *\nlists = []\n\
        for ask in (lambda: list_resources('fixture'), lambda: list_prompts('fixture'), lambda: read_resource('fixture', 'fixture://note'), lambda: get_prompt('fixture', 'greet', name='x')):\n\
        \x20   try: ask()\n    except ToolError as e: lists.append(e.code)\nlists + [call_tool('fixture.count')]";
    let answer = session.run_code("python", code).await;
    assert_eq!(answer["value"], json!(["denied", "denied", "denied", "denied", {"count": 1}]), "{answer}");
}

#[tokio::test]
async fn every_request_is_in_the_result_and_in_the_audit_log() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let code = "from mcp_tools import *\nlist_resources('fixture')\nread_resource('fixture', 'fixture://note')\n\
        get_prompt('fixture', 'greet', name='Ada')\nlist_prompts('fixture')\nread_resource('fixture', 'fixture://private/key')";
    let answer = session.run_code("python", code).await;
    let calls: Vec<Value> = answer["calls"].as_array().unwrap().iter().map(call_summary).collect();
    let expected = [
        json!(["list", "resources", "ok"]),
        json!(["resource", "fixture://note", "ok"]),
        json!(["prompt", "greet", "ok"]),
        json!(["list", "prompts", "ok"]),
        json!(["resource", "fixture://private/key", "denied"]),
    ];
    assert_eq!(calls, expected, "{answer}");
    assert!(answer["calls"].as_array().unwrap().iter().all(|call| call["changes"] == false), "{answer}");
    let records = lockhouse.audit();
    let events: Vec<&str> = records.iter().map(|record| record["event"].as_str().unwrap()).collect();
    let pairs = ["call", "outcome"];
    let expected: Vec<&str> = pairs.into_iter().cycle().take(8).chain(["denial"]).collect();
    assert_eq!(events, expected, "{records:?}");
    assert_eq!(records[2]["resource"], "fixture://note", "{records:?}");
    assert!(!serde_json::to_string(&records).unwrap().contains("Ada"), "{records:?}");
}

fn call_summary(call: &Value) -> Value {
    let kind = ["tool", "resource", "prompt", "list"].into_iter().find(|kind| call.get(kind).is_some());
    json!([kind, call[kind.unwrap_or_default()], call["outcome"]])
}
