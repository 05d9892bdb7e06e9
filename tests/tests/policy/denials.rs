//! Tests of what a program observes of a tool that the policy denies: the error of a call, and the tool's absence from
//! lists and searches.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

use crate::policy::POLICY;

#[test]
fn a_denied_call_says_which_line_of_the_policy_denies_it() {
    let rows: [(&str, &str, &str, Option<&str>, &[&str]); 8] = [
        ("in deny", "delete_everything", "", Some(POLICY), &["policy.toml:5", "\"delete_*\"", "deny"]),
        (
            "not in allow",
            "fail",
            "message='x'",
            Some(POLICY),
            &["policy.toml:4", "[servers.fixture]", "a user must add"],
        ),
        (
            "no allow list",
            "add",
            "a=1, b=2",
            Some("version = 1\n[servers.fixture]\n"),
            &["policy.toml:2", "no allow list"],
        ),
        (
            "an empty allow list",
            "add",
            "a=1, b=2",
            Some("version = 1\n[servers.fixture]\nallow = []\n"),
            &["policy.toml:3"],
        ),
        (
            "no table",
            "add",
            "a=1, b=2",
            Some("version = 1\n[servers.other]\nallow = [\"add\"]\n"),
            &["policy.toml", "no [servers.fixture] table"],
        ),
        (
            "a name that only begins alike",
            "add",
            "a=1, b=2",
            Some("version = 1\n[servers.fixture]\nallow = [\"ad\", \"add_*\"]\n"),
            &["policy.toml:3"],
        ),
        (
            "denied by a longer pattern",
            "add",
            "a=1, b=2",
            Some("version = 1\n[servers.fixture]\nallow = [\"add\", \"a*\"]\ndeny = [\"ad*\"]\n"),
            &["policy.toml"],
        ),
        ("no policy", "add", "a=1, b=2", None, &["lockhouse policy init"]),
    ];
    let mut table = Table::new("denials");
    for (name, tool, arguments, policy, words) in rows {
        let lockhouse = Lockhouse::new().server("fixture", &[]);
        let lockhouse = match policy {
            Some(policy) if name == "denied by a longer pattern" => {
                let checked = Lockhouse::new().policy(policy).run(&["policy", "check"]);
                // An entry that can never match is a separate diagnostic.
                table.row(name, ensure(checked.status == Some(2) || checked.status == Some(0), checked));
                continue;
            }
            Some(policy) => lockhouse.policy(policy),
            None => lockhouse,
        };
        let named = arguments.replace('=', ": ").replace('\'', "\"");
        for (language, code) in [
            ("python", format!("import mcp_tools\n\nmcp_tools.fixture.{tool}({arguments})")),
            ("python", format!("from mcp_tools.fixture import {tool}\n\n{tool}({arguments})")),
            ("python", format!("from mcp_tools import call_tool\n\ncall_tool('fixture', '{tool}', {{}})")),
            ("typescript", format!("// a comment\n\nawait fixture.{tool}({{{named}}})")),
            ("typescript", format!("// a comment\n\nawait callTool('fixture', '{tool}', {{}})")),
        ] {
            let answer = lockhouse.answer(language, &code);
            let error = &answer["error"];
            let kind = (error["type"].as_str(), error["code"].as_str(), answer["status"].as_str());
            let denied = kind == (Some("ToolError"), Some("denied"), Some("error"));
            let message = error["message"].as_str().unwrap_or_default();
            let told = words.iter().all(|words| message.contains(words)) && message.contains(tool);
            let at = error["line"] == 3 || code.starts_with("from mcp_tools.fixture");
            table.row(
                format!("{language}: {name}: {}", code.lines().next_back().unwrap()),
                ensure(denied && told && at, &answer),
            );
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_denied_call_never_reaches_the_server_and_an_allowed_one_does() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let session = lockhouse.serve().await;
    let programs = [
        (
            "python",
            "from mcp_tools import call_tool, ToolError\nfrom mcp_tools.fixture import add\ncodes = []\n\
            for tool in ['delete_everything', 'fail', 'env']:\n  try: call_tool('fixture', tool, {})\n  except ToolError as e: codes.append(e.code)\n\
            add(a=1, b=2)\ncodes",
        ),
        (
            "typescript",
            "const codes = []\nfor (const tool of ['delete_everything', 'fail', 'env']) {\n\
            try { await callTool('fixture', tool, {}) } catch (e) { codes.push(e.code) } }\nawait fixture.add({a: 1, b: 2})\nreturn codes",
        ),
    ];
    for (language, code) in programs {
        let answer = session.run_code(language, code).await;
        assert_eq!(answer["value"], json!(["denied", "denied", "denied"]), "{answer}");
        let outcomes: Vec<&str> = answer["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| call["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes, ["denied", "denied", "denied", "ok"], "{answer}");
    }
    let count = session.run_code("python", "from mcp_tools.fixture import count\ncount()").await;
    assert_eq!(count["value"], json!({"add": 2, "count": 1}), "{count}");
}

#[tokio::test]
async fn a_denied_tool_is_neither_listed_nor_found_nor_described() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let session = lockhouse.serve().await;
    let rows = [
        (
            "python",
            "list_tools",
            "import mcp_tools.fixture as f\nsorted(t['name'] for t in f.list_tools())",
            json!(["add", "count", "text"]),
        ),
        (
            "python",
            "dir",
            "import mcp_tools.fixture as f\nsorted(n for n in dir(f) if n != 'list_tools')",
            json!(["add", "count", "text"]),
        ),
        (
            "python",
            "star",
            "from mcp_tools.fixture import *\n['add' in globals(), 'delete_everything' in globals()]",
            json!([true, false]),
        ),
        (
            "python",
            "search",
            "from mcp_tools import search_tools\n[t['tool'] for t in search_tools('delete everything')]",
            json!([]),
        ),
        (
            "python",
            "list_servers",
            "from mcp_tools import list_servers\nlist_servers()[0]['tools']",
            json!(3),
        ),
        (
            "python",
            "describe",
            "from mcp_tools import describe, ToolError\ntry: r = describe('fixture', 'delete_everything')\nexcept ToolError as e: r = e.code\nr",
            json!("denied"),
        ),
        (
            "python",
            "describe of one that does not exist",
            "from mcp_tools import describe, ToolError\ntry: r = describe('fixture', 'delete_nothing')\nexcept ToolError as e: r = e.code\nr",
            json!("unknown_tool"),
        ),
        (
            "python",
            "discover_mcp_tools",
            "from mcp_tools import discover_mcp_tools\nsorted(t['name'] for t in discover_mcp_tools())",
            json!(["mcp__fixture__add", "mcp__fixture__count", "mcp__fixture__text"]),
        ),
        (
            "typescript",
            "listTools",
            "(await fixture.listTools()).map(t => t.name).sort()",
            json!(["add", "count", "text"]),
        ),
        ("typescript", "keys", "Object.keys(fixture).sort()", json!(["add", "count", "text"])),
        ("typescript", "in", "['add' in fixture, 'delete_everything' in fixture]", json!([true, false])),
        ("typescript", "search", "(await searchTools('delete everything')).length", json!(0)),
        (
            "typescript",
            "describe",
            "try { await describe('fixture', 'delete_everything') } catch (e) { return e.code }",
            json!("denied"),
        ),
    ];
    let mut table = Table::new("information about tools in code");
    for (language, name, code, expected) in rows {
        let answer = session.run_code(language, code).await;
        table.row(
            format!("{language}: {name}"),
            equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {answer}")),
        );
    }
    let found = session.search_tools("").await;
    let names: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|tool| tool["tool"].as_str().unwrap()).collect();
    table.row("search_tools: control", equal(names, vec!["text", "add", "count"]));
    let found = session.search_tools("delete everything").await;
    table.row("search_tools", equal(found["tools"].clone(), json!([])));
    table.finish();
}

#[tokio::test]
async fn the_servers_argument_can_only_narrow_the_policy() {
    let policy = "version = 1\n[servers.one]\nallow = [\"add\"]\n[servers.two]\nallow = [\"add\"]\n";
    let lockhouse =
        Lockhouse::new().server("one", &[]).server("two", &[]).server("three", &[]).policy(policy);
    let session = lockhouse.serve().await;
    let call = |server: &str| {
        format!(
            "from mcp_tools import call_tool, list_servers, ToolError\n\
        try: r = call_tool('{server}', 'add', {{'a': 1, 'b': 2}})['sum']\nexcept ToolError as e: r = e.code\n[r, [s['name'] for s in list_servers()]]"
        )
    };
    let rows = [
        ("control: without it", None, "two", json!([3, ["one", "three", "two"]])),
        ("named", Some(json!(["two"])), "two", json!([3, ["two"]])),
        ("not named", Some(json!(["one"])), "two", json!(["denied", ["one"]])),
        ("none", Some(json!([])), "two", json!(["denied", []])),
        ("named, but denied by the policy", Some(json!(["three"])), "three", json!(["denied", ["three"]])),
    ];
    let mut table = Table::new("servers");
    for (name, servers, server, expected) in rows {
        let mut arguments = json!({"language": "python", "code": call(server)});
        if let Some(servers) = servers {
            arguments["servers"] = servers;
        }
        let answer = lockhouse_tests::structured(session.call("run_code", arguments).await);
        table.row(name, equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {answer}")));
    }
    for (language, code) in [("python", "import mcp_tools.two"), ("typescript", "two")] {
        let arguments = json!({"language": language, "code": code, "servers": ["one"]});
        let answer = lockhouse_tests::structured(session.call("run_code", arguments).await);
        table.row(format!("{language}: {code}"), ensure(answer["status"] == "error", answer));
    }
    let arguments = json!({"language": "python", "code": "1", "servers": ["four"]});
    let answer = lockhouse_tests::structured(session.call("run_code", arguments).await);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    let told = message.contains("four") && message.contains("one") && message.contains("two");
    table.row("an unknown one is refused", ensure(told && answer["status"] == "error", &answer));
    table.finish();
}
