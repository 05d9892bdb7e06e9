//! Tests which tools an AI client gets in its first list, and under which names: the list never waits for a server, and
//! the list has the tools of a server to which `lockhouse server add` has just connected.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure, equal, fixture_server};
use serde_json::{Value, json};

use super::raw_client::Pipe;
use super::{ALL, lockhouse, modern};

const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"echo\"]\ndeny = [\"add\"]\n";

async fn listed(lockhouse: &Lockhouse, arguments: &[&str]) -> Vec<Value> {
    let mut pipe = Pipe::open(lockhouse.command(&[&["serve"], arguments].concat()));
    let list = pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await;
    list["result"]["tools"].as_array().cloned().unwrap_or_default()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[tokio::test]
async fn a_hanging_server_does_not_delay_the_list() {
    let hanging = "[servers.hanging]\ncommand = \"sleep\"\nargs = [\"600\"]\nexpose = \"direct\"\nstart_timeout_seconds = 600\n";
    let lockhouse = Lockhouse::new().config(hanging);
    assert_eq!(names(&listed(&lockhouse, &[]).await), ["run_code", "search_tools", "get_result"]);
}

#[tokio::test]
async fn a_server_that_was_just_added_is_in_the_first_list() {
    let mut table = Table::new("first list");
    for (connects, expected) in [(true, true), (false, false)] {
        let lockhouse = Lockhouse::new();
        let write = |command: &str| lockhouse.file("program", format!("exec {command}\n"));
        let program = write(fixture_server().to_str().expect("UTF-8"));
        let mut arguments = vec!["server", "add"];
        arguments.extend((!connects).then_some("--no-connect"));
        // The profile of a sandbox does not know which program the script executes.
        arguments.extend([
            "--no-sandbox",
            "a script",
            "fixture",
            "--",
            "sh",
            program.to_str().expect("UTF-8"),
        ]);
        let added = lockhouse.run(&arguments);
        table.row(format!("{connects}: added"), ensure(added.status == Some(0), &added));
        // From now on the server hangs, so that its tools can only come from the cache.
        write("sleep 600");
        let lockhouse = lockhouse.policy(POLICY);
        let tools = listed(&lockhouse, &["--expose", "both"]).await;
        let has = names(&tools).contains(&"fixture__echo");
        table.row(format!("connected by `server add`: {connects}"), ensure(has == expected, names(&tools)));
    }
    table.finish();
}

#[tokio::test]
async fn own_tools_can_be_hidden_and_get_a_prefix() {
    let lockhouse = Lockhouse::with_fixture().config("[tools]\nprefix = \"lh_\"\nhide = [\"get_result\"]\n");
    let mut pipe = Pipe::open(lockhouse.command(&["serve", "--answer", "value"]));
    let list = pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await;
    let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
    let mut table = Table::new("names of Lockhouse's own tools");
    table.row("listed", equal(names(&tools), vec!["lh_run_code", "lh_search_tools"]));
    for (id, name, is_known) in
        [(2, "lh_run_code", true), (3, "run_code", false), (4, "lh_get_result", false)]
    {
        let call = json!({"name": name, "arguments": {"language": "python", "code": "1+1"}});
        let answer = pipe.answer(&modern(id, "tools/call", call, &json!({}))).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        table.row(format!("{name} is known: {is_known}"), ensure((text == Some("2")) == is_known, &answer));
    }
    let discovered = pipe.answer(&modern(5, "server/discover", json!({}), &json!({}))).await;
    let words = discovered["result"]["instructions"].as_str().unwrap_or_default();
    let named = words.contains("servers fixture")
        && words.contains("lh_run_code")
        && words.contains("lh_search_tools");
    table.row("the instructions name the server and the tools", ensure(named, words));
    table.finish();
}

/// A server without a prefix must not answer under a name that the client knows as Lockhouse's own, and may have a name
/// that Lockhouse's prefix leaves free.
#[tokio::test]
async fn a_server_never_has_the_name_of_an_own_tool() {
    let mut table = Table::new("tools of a server beside Lockhouse's own");
    for (prefix, mine, free) in [("", "run_code", "lh_run_code"), ("lh_", "lh_run_code", "run_code")] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/catalogue.py");
        let tool = |name: &str| json!({"name": name, "description": "OF THE SERVER", "inputSchema": {"type": "object"}});
        let names = ["lh_run_code", "run_code", "lh_health", "health", "other"];
        let tools = json!({"tools": names.map(tool)});
        let lockhouse = Lockhouse::new();
        let arguments = json!(["-B", script, lockhouse.file("tools.json", tools.to_string())]);
        let lockhouse = lockhouse
            .policy("version = 1\n[servers.s]\nallow = [\"*\"]\n")
            .config(&format!(
                "[tools]\nprefix = {prefix:?}\n[catalogue]\nfirst_list_seconds = 10\n[servers.s]\ncommand = \"python3\"\n\
                 args = {arguments}\nexpose = \"direct\"\nprefix = \"\"\n"
            ));
        let mut pipe = Pipe::open(lockhouse.command(&["serve", "--answer", "value"]));
        let list = pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await;
        let listed = list["result"]["tools"].as_array().cloned().unwrap_or_default();
        let of_server = |name: &str| -> Vec<bool> {
            let named = listed.iter().filter(|tool| tool["name"] == name);
            named.map(|tool| tool["description"] == "OF THE SERVER").collect()
        };
        for (name, expected) in [
            (mine, vec![false]),
            (free, vec![true]),
            (if prefix.is_empty() { "health" } else { "lh_health" }, vec![]),
            (if prefix.is_empty() { "lh_health" } else { "health" }, vec![true]),
            ("other", vec![true]),
        ] {
            table.row(format!("{prefix:?}: {name} is listed"), equal(of_server(name), expected));
        }
        let code = json!({"language": "python", "code": "'x' * 20000"});
        for (id, name, expected) in [(2, mine, "Value cut"), (3, free, "called")] {
            let call = json!({"name": name, "arguments": code});
            let answer = pipe.answer(&modern(id, "tools/call", call, &json!({}))).await;
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            table.row(format!("{prefix:?}: {name} is called"), ensure(text.contains(expected), &answer));
            if id == 2 {
                let reader = format!("; {prefix}get_result(");
                table.row(format!("{prefix:?}: the reader's name"), ensure(text.contains(&reader), text));
            }
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_denied_tool_can_be_listed_with_the_rule() {
    let server = format!(
        "[catalogue]\nfirst_list_seconds = 10\n[servers.fixture]\ncommand = {:?}\nexpose = \"direct\"\n",
        fixture_server()
    );
    let mut table = Table::new("list_denied");
    for is_listed in [false, true] {
        let config = format!("[tools]\nlist_denied = {is_listed}\n{server}");
        let lockhouse = Lockhouse::new().config(&config).policy(POLICY);
        let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
        let list = pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await;
        let tools = list["result"]["tools"].as_array().cloned().unwrap_or_default();
        let denied = tools.iter().find(|tool| tool["name"] == "fixture__add");
        table.row(format!("{is_listed}: listed"), ensure(denied.is_some() == is_listed, names(&tools)));
        if let Some(denied) = denied {
            let words = denied["description"].as_str().unwrap_or_default();
            table.row("its description has the rule", ensure(words.contains("policy.toml:4"), words));
            let call = json!({"name": "fixture__add", "arguments": {}});
            let answer = pipe.answer(&modern(2, "tools/call", call, &json!({}))).await;
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
            table.row("a call is denied", ensure(text.starts_with("denied"), &answer));
            let recorded = lockhouse.audit().iter().any(|record| record["tool"] == "add");
            table.row("and recorded", ensure(recorded, lockhouse.audit()));
        }
    }
    table.finish();
}

#[tokio::test]
async fn search_finds_direct_tools_and_says_how_to_call_them() {
    let lockhouse = lockhouse("--modern", "expose = \"direct\"", ALL);
    let mut pipe = Pipe::open(lockhouse.command(&["serve", "--answer", "text"]));
    pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await;
    let call = json!({"name": "search_tools", "arguments": {"query": "simple text"}});
    let answer = pipe.answer(&modern(2, "tools/call", call, &json!({}))).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("fixture__test_simple_text"));
    assert!(line.is_some_and(|line| line.contains("call it directly, not from code")), "{answer}");
}

#[tokio::test]
async fn a_server_can_be_kept_to_the_older_protocol() {
    let mut table = Table::new("protocol");
    for (keys, era) in [("", "2026-07-28"), ("protocol = \"2025-11-25\"", "2025-11-25")] {
        let lockhouse = lockhouse("--dual", keys, ALL);
        let row = lockhouse.run(&["server", "list", "--json"]).json();
        table.row(format!("{keys:?}"), equal(row[0]["era"].as_str().unwrap_or_default(), era));
    }
    table.finish();
}
