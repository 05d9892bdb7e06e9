//! Tests of executions that are limited to some of the upstream servers, by the argument `servers` of `run_code` or the
//! option `--server` of `lockhouse run`.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, structured};
use serde_json::{Value, json};

const POLICY: &str = "\
version = 1
[servers.one]
allow = [\"add\", \"te*\", \"count\"]
[servers.two]
allow = [\"add\"]
resources = [\"*\"]
";

/// A Python program that lists the tools, searches for tools, and calls and describes tools of permitted and excluded
/// upstream servers.
const PROGRAM: &str = "\
import mcp_tools
from mcp_tools import call_tool, describe, list_resources, list_servers, search_tools, ToolError
def of(do, *arguments):
    try: do(*arguments); return 'ok'
    except ToolError as error: return error.code
tools = [('one', 'add', {'a': 1, 'b': 2}), ('one', 'text', {'text': 'x'}), ('two', 'add', {'a': 1, 'b': 2})]
{
    'servers': {server['name']: server['tools'] for server in list_servers()},
    'found': sorted(row['server'] + '.' + row['tool'] for row in search_tools('add text count', limit=50)),
    'calls': [of(call_tool, *tool) for tool in tools],
    'described': [of(describe, server, tool) for server, tool, _ in tools],
}
";

fn lockhouse() -> Lockhouse {
    Lockhouse::new().server("one", &[]).server("two", &[]).policy(POLICY)
}

#[tokio::test]
async fn excluded_servers_are_neither_listed_nor_found_nor_called() {
    let (lockhouse, yes, no) = (lockhouse(), "ok", "denied");
    let session = lockhouse.serve().await;
    // A search waits until the servers are connected.
    session.call("search_tools", json!({"query": "add"})).await.unwrap();
    let all = json!(["one.add", "one.count", "one.text", "two.add"]);
    let rows = [
        ("nothing is left out", None, json!({"one": 3, "two": 1}), all.clone(), [yes, yes, yes]),
        ("both", Some(json!(["one", "two"])), json!({"one": 3, "two": 1}), all, [yes, yes, yes]),
        ("a server", Some(json!(["two"])), json!({"two": 1}), json!(["two.add"]), [no, no, yes]),
        ("a tool", Some(json!(["one.add"])), json!({"one": 1}), json!(["one.add"]), [yes, no, no]),
        (
            "a beginning",
            Some(json!(["one.te*", "two.add"])),
            json!({"one": 1, "two": 1}),
            json!(["one.text", "two.add"]),
            [no, yes, yes],
        ),
        ("what the policy denies", Some(json!(["two.te*"])), json!({"two": 0}), json!([]), [no, no, no]),
        ("nothing", Some(json!([])), json!({}), json!([]), [no, no, no]),
    ];
    let mut table = Table::new("servers of an execution");
    for (name, servers, listed, found, outcomes) in rows {
        let mut arguments = json!({"language": "python", "code": PROGRAM});
        if let Some(servers) = servers {
            arguments["servers"] = servers;
        }
        let answer = structured(session.call("run_code", arguments).await);
        let value = &answer["value"];
        let told = |error: String| format!("{error} {}", answer["error"]);
        table.row(format!("{name}: listed"), equal(&value["servers"], &listed).map_err(told));
        table.row(format!("{name}: found"), equal(&value["found"], &found));
        table.row(format!("{name}: called"), equal(&value["calls"], &json!(outcomes)));
        table.row(format!("{name}: described"), equal(&value["described"], &json!(outcomes)));
    }
    let denied = "from mcp_tools import call_tool\ncall_tool('one', 'text', {'text': 'x'})";
    let arguments = json!({"language": "python", "code": denied, "servers": ["one.add", "two"]});
    let answer = structured(session.call("run_code", arguments).await);
    let told = r#"this execution was started with servers = ["one.add", "two"]"#;
    table.row("the words", equal(answer["error"]["message"].clone(), json!(told)));
    let last = lockhouse.audit().pop().unwrap_or_default();
    let recorded = last["event"] == "denial" && last["reason"] == told && last["tool"] == "text";
    table.row("the record", ensure(recorded, last));
    for (name, servers) in [("no such server", "three.add"), ("no name", "one."), ("no pattern", "one.*d")] {
        let arguments = json!({"language": "python", "code": "1", "servers": [servers]});
        let answer = structured(session.call("run_code", arguments).await);
        table.row(name, ensure(answer["error"]["type"] == "InvalidRequest", &answer["error"]));
    }
    table.finish();
}

#[tokio::test]
async fn the_reason_why_a_server_has_nothing_is_told() {
    let lockhouse = lockhouse().server("three", &[]);
    let session = lockhouse.serve().await;
    session.call("search_tools", json!({"query": "add"})).await.unwrap();
    let left_out = "this execution was started with servers = [\"one\", \"three\"]";
    let misspelt = "there is no MCP server 'ones'; did you mean one? servers: one, three";
    let denied =
        "the policy does not allow listing the resources of three: there is no [servers.three] table in";
    let mut table = Table::new("reasons");
    for (server, listing, search) in [
        ("two", left_out, left_out),
        ("ones", misspelt, misspelt),
        ("three", denied, "the policy permits none of its tools"),
    ] {
        for (language, list, find) in [
            (
                "python",
                format!("from mcp_tools import list_resources\nlist_resources('{server}')"),
                format!("from mcp_tools import search_tools\nsearch_tools('add', server='{server}')"),
            ),
            (
                "typescript",
                format!("await listResources('{server}')"),
                format!("await searchTools('server:{server} add')"),
            ),
        ] {
            let run = async |code: &str| {
                let arguments = json!({"language": language, "code": code, "servers": ["one", "three"]});
                structured(session.call("run_code", arguments).await)
            };
            let answer = run(&list).await;
            let told =
                answer["error"]["message"].as_str().is_some_and(|message| message.starts_with(listing));
            table.row(format!("{language}: list_resources of {server}"), ensure(told, &answer));
            let answer = run(&find).await;
            let told = answer["stderr"]
                .as_str()
                .is_some_and(|text| text.ends_with(&format!("{server}: {search}\n")));
            table.row(
                format!("{language}: a search in {server}"),
                ensure(told && answer["value"] == json!([]), &answer),
            );
        }
    }
    let arguments = json!({"language": "python", "code": "from mcp_tools import search_tools\nsearch_tools('add', server='one')"});
    let answer = structured(session.call("run_code", arguments).await);
    table.row(
        "control",
        ensure(answer.get("stderr").is_none() && answer["value"][0]["tool"] == "add", &answer),
    );
    let found = session.call("search_tools", json!({"query": "server:ones"})).await.unwrap();
    let told = format!("{found:?}").contains("did you mean one?");
    table.row("a search of an AI client", ensure(told, &found));
    table.finish();
}

/// `requiredTools` is another name of `servers`. With both there is no run, so that neither widens the other.
#[tokio::test]
async fn required_tools_restrict_like_servers() {
    let (lockhouse, yes, no) = (lockhouse(), "ok", "denied");
    let session = lockhouse.serve().await;
    session.call("search_tools", json!({"query": "add"})).await.unwrap();
    let mut table = Table::new("requiredTools");
    for (key, names, outcomes) in [
        ("requiredTools", json!(["two"]), [no, no, yes]),
        ("requiredTools", json!(["mcp__one__add", "two.add"]), [yes, no, yes]),
        ("required_tools", json!(["one__te*"]), [no, yes, no]),
        ("requiredTools", json!([]), [no, no, no]),
        ("requiredTools", json!(null), [yes, yes, yes]),
        ("servers", json!(["mcp__one__text"]), [no, yes, no]),
    ] {
        let mut arguments = json!({"language": "python", "code": PROGRAM});
        arguments[key] = names.clone();
        let answer = structured(session.call("run_code", arguments).await);
        let outcome = equal(answer["value"]["calls"].clone(), json!(outcomes));
        table.row(format!("{key} {names}"), outcome.map_err(|e| format!("{e} {}", answer["error"])));
    }
    for (arguments, words) in [
        (
            json!({"servers": ["two"], "requiredTools": ["one"]}),
            "servers and requiredTools are names of one argument",
        ),
        (
            json!({"servers": ["two"], "requiredTools": ["two"]}),
            "servers and requiredTools are names of one argument",
        ),
        (json!({"requiredTools": "two"}), "servers must be a list of names"),
        (json!({"requiredTools": ["mcp__three__add"]}), "there is no MCP server \"mcp__three__add\""),
    ] {
        let mut whole = json!({"language": "python", "code": PROGRAM});
        whole.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        let answer = structured(session.call("run_code", whole).await);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let is_refused = answer["value"].is_null() && message.contains(words);
        table.row(arguments.to_string(), ensure(is_refused, &answer));
    }
    table.finish();
}

#[test]
fn the_command_line_narrows_too() {
    let lockhouse = lockhouse();
    let of = |arguments: &[&str]| -> Value {
        let whole = [&["run", "-", "--language", "python", "--json"], arguments].concat();
        lockhouse.run_with_input(&whole, PROGRAM.as_bytes()).json()
    };
    assert_eq!(of(&[])["value"]["calls"], json!(["ok", "ok", "ok"]));
    assert_eq!(
        of(&["--server", "one.add", "--server", "two"])["value"]["calls"],
        json!(["ok", "denied", "ok"])
    );
    assert_eq!(of(&["--server", "three"])["error"]["type"], "InvalidRequest");
}

#[tokio::test]
async fn describing_a_denied_tool_is_logged_once_per_execution() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let code = "from mcp_tools import describe, ToolError\nfor _ in range(3):\n\
                \x20 for tool in ['crash', 'env', 'add', 'no_such_tool']:\n\
                \x20   try: describe('one', tool)\n    except ToolError: pass";
    for _ in 0..2 {
        session.run_code("python", code).await;
    }
    let denials =
        lockhouse.audit().into_iter().map(|record| (record["event"].clone(), record["tool"].clone()));
    let expected = ["crash", "env", "crash", "env"].map(|tool| (json!("denial"), json!(tool)));
    assert_eq!(denials.collect::<Vec<_>>(), expected);
}
