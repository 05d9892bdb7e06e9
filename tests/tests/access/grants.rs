//! Tests of the restrictions in a bearer token: a token can name servers and tools (its grant), and every
//! request that is made with the token is limited to them.

use lockhouse_tests::{HttpAnswer, HttpClient, HttpServer, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::access::token;

const POLICY: &str = "version = 1\n[servers.files]\nallow = [\"*\"]\n[servers.web]\nallow = [\"*\"]\n[servers.skills]\nallow = [\"save\"]\n";

async fn value(http_client: &HttpClient, arguments: Value) -> Value {
    let answer = http_client.call("run_code", arguments).await;
    if answer["value"].is_null() { answer["error"]["message"].clone() } else { answer["value"].clone() }
}

#[tokio::test]
async fn a_grant_restricts_every_path_to_a_tool_and_permits_nothing_beyond_the_policy() {
    let lockhouse = Lockhouse::new().server("files", &[]).server("web", &[]).policy(POLICY);
    let part = token(&lockhouse, &["part", "--only", "web.ad*", "gone", "gone.x"]);
    let whole = token(&lockhouse, &["whole"]);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("grants");
    let tries = |call: &str| {
        format!(
            "from mcp_tools import call_tool, list_servers, search_tools, describe, ToolError\ntry: r = {call}\nexcept ToolError as e: r = e.code\nr"
        )
    };
    let rows = [
        ("a tool", "call_tool('web.add', {'a': 1, 'b': 2})['sum']", json!(3), json!(3)),
        ("another tool of that server", "call_tool('web.count', {})", json!("denied"), Value::Null),
        (
            "a tool of another server",
            "call_tool('files.add', {'a': 1, 'b': 2})['sum']",
            json!("unknown_tool"),
            json!(3),
        ),
        (
            "list_servers",
            "sorted(s['name'] for s in list_servers())",
            json!(["web"]),
            json!(["files", "web"]),
        ),
        (
            "search",
            "(lambda found: sorted(n for n in ('files.add', 'web.add', 'web.count') if any([t['server'], t.get('name') or t.get('tool')] == n.split('.') for t in found)))(search_tools('add count', limit=20))",
            json!(["web.add"]),
            json!(["files.add", "web.add", "web.count"]),
        ),
        ("describe", "describe('web', 'count') and 1", json!("denied"), json!(1)),
        ("describe elsewhere", "describe('files', 'add') and 1", json!("unknown_tool"), json!(1)),
    ];
    for (name, call, expected, control) in rows {
        let arguments = json!({"language": "python", "code": tries(call)});
        let got = value(&daemon.http_client(Some(&part)), arguments.clone()).await;
        table.row(name, equal(got, expected));
        if !control.is_null() {
            table.row(
                format!("{name}: control"),
                equal(value(&daemon.http_client(Some(&whole)), arguments).await, control),
            );
        }
    }
    for (name, servers, expected) in [
        ("servers of the grant", json!(["web"]), json!(["web"])),
        (
            "servers outside the grant",
            json!(["files"]),
            json!("there is no MCP server \"files\"; servers: web"),
        ),
    ] {
        let code = tries("[s['name'] for s in list_servers()]");
        let arguments = json!({"language": "python", "code": code, "servers": servers});
        table.row(name, equal(value(&daemon.http_client(Some(&part)), arguments).await, expected));
    }
    let arguments =
        json!({"language": "python", "code": tries("call_tool('web.count', {})"), "servers": ["web"]});
    table.row(
        "servers widen nothing",
        equal(value(&daemon.http_client(Some(&part)), arguments).await, json!("denied")),
    );
    for (name, token, expected) in [("search_tools", &part, false), ("search_tools: control", &whole, true)] {
        let found = daemon.http_client(Some(token)).call("search_tools", json!({"query": "count add"})).await;
        let others = found.to_string().contains("\"files\"") || found.to_string().contains("\"count\"");
        let own = found.to_string().contains("\"add\"");
        table.row(name, ensure(own && others == expected, &found));
    }
    let save = "import skills\ntry: r = skills.save('f', 'A skill.', code='def f():\\n    return 1\\n')['state']\nexcept Exception as e: r = 'refused'\nr";
    for (name, token, expected) in
        [("saving skills", &part, "refused"), ("saving skills: control", &whole, "saved")]
    {
        let got = value(&daemon.http_client(Some(token)), json!({"language": "python", "code": save})).await;
        table.row(name, equal(got, json!(expected)));
    }
    table.finish();
}

/// Returns the names of the direct tools that Lockhouse lists for an AI client.
async fn direct_tools(http_client: &HttpClient) -> Vec<String> {
    let tools = http_client.request("tools/list", json!({})).await.answer()["result"]["tools"].take();
    let names = tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    names.filter(|name| name.contains("__")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_grant_restricts_the_direct_tools_that_are_listed_and_called() {
    let upstream = HttpServer::start(|request| {
        let result = json!({"content": [{"type": "text", "text": "seen"}]});
        request.as_mcp(false).unwrap_or_else(|| HttpAnswer::json(200, &request.result(&result)))
    });
    let url = upstream.url("/mcp");
    let config =
        ["files", "web"].map(|name| format!("[servers.{name}]\nurl = \"{url}\"\nexpose = \"both\"\n"));
    let lockhouse = Lockhouse::new().policy(POLICY).config(&config.concat());
    let (part, whole) = (token(&lockhouse, &["part", "--only", "web"]), token(&lockhouse, &["whole"]));
    let daemon = lockhouse.daemon().await;
    let (part, whole) = (daemon.http_client(Some(&part)), daemon.http_client(Some(&whole)));
    let mut table = Table::new("direct tools under a grant");
    // The list never waits for a server that was never connected; a call does.
    let code = "from mcp_tools import call_tool\n[call_tool(s, 'look', {'at': 1}) for s in ('files', 'web')]";
    let called = value(&whole, json!({"language": "python", "code": code})).await;
    table.row("control: calls from code", equal(called, json!(["seen", "seen"])));
    let all = wait_until("both servers are listed", async || {
        Some(direct_tools(&whole).await).filter(|names| names.len() == 2)
    })
    .await;
    table.row("control: listed without a grant", equal(all, vec!["files__look".into(), "web__look".into()]));
    table.row("listed", equal(direct_tools(&part).await, vec!["web__look".to_owned()]));
    for (name, http_client, tool, expected) in [
        ("called", &part, "web__look", "seen"),
        ("called outside the grant", &part, "files__look", "unknown_tool: "),
        ("control: called without a grant", &whole, "files__look", "seen"),
    ] {
        let answer = http_client.post(&http_client.calling(tool, json!({"at": 1}))).await.answer();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        table.row(name, ensure(text.starts_with(expected), &answer));
    }
    table.finish();
}
