//! Tests of files over HTTP: the server `files` exists only for clients that the policy names, and returned files only for
//! the client whose run returned them.

use lockhouse_tests::{CommandOutput, HttpClient, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use super::{lockhouse, opening};

/// Creates a token for the AI client `name`, and returns it.
fn token(lockhouse: &Lockhouse, name: &str) -> String {
    let output: CommandOutput = lockhouse.run(&["token", "create", name]);
    output.stdout.trim().to_owned()
}

const POLICY: &str = "\
version = 1
[servers.files]
allow = [\"*\"]
[clients.named.servers.files]
allow = [\"read\", \"stat\"]
[clients.\"pre*\".servers.files]
allow = [\"*\"]
[clients.\"*\".servers.files]
allow = [\"*\"]
";

async fn value(client: &HttpClient, code: &str) -> Value {
    let answer = client.call("run_code", json!({"language": "python", "code": code})).await;
    if answer["value"].is_null() { answer } else { answer["value"].clone() }
}

#[tokio::test]
async fn files_exist_only_for_clients_that_the_policy_names() {
    let lockhouse = lockhouse().policy(POLICY);
    let tokens = ["named", "other", "prefix"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let [named, other, prefix] = tokens.each_ref().map(|token| daemon.http_client(Some(token)));
    let code = opening(&lockhouse, "data/sales.csv");
    let servers = "from mcp_tools import list_servers\n[s['name'] for s in list_servers()]";
    let mut table = Table::new("clients");
    let got = value(&named, &code).await;
    table.row("named", ensure(got.as_str().is_some_and(|text| text.starts_with("region")), &got));
    table.row("named: servers", equal(value(&named, servers).await, json!(["files"])));
    for (name, client) in [("other", &other), ("a prefix", &prefix)] {
        let got = value(client, &code).await;
        table.row(name, ensure(got.as_str().is_some_and(|text| text.starts_with("PermissionError")), &got));
        table.row(format!("{name}: servers"), equal(value(client, servers).await, json!([])));
        let forged = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('files.read', {'path': '~/data/sales.csv'})\nexcept ToolError as e: r = e.code\nr";
        table.row(format!("{name}: call"), equal(value(client, forged).await, json!("unknown_tool")));
    }
    table.finish();
}

#[tokio::test]
async fn returned_files_belong_to_their_client() {
    let lockhouse = Lockhouse::new();
    let tokens = ["one", "two"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let [one, two] = tokens.each_ref().map(|token| daemon.http_client(Some(token)));
    let answer = one.run_code("python", "open('/out/a.csv', 'w').write('1,2')\n1").await;
    let handle = answer["files"][0]["handle"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let uri = format!("lockhouse://result/{handle}");
    let read =
        async |client: &HttpClient| client.request("resources/read", json!({"uri": uri})).await.answer();
    let mut table = Table::new("clients");
    let own = read(&one).await;
    table.row(
        "its own",
        equal(&own["result"]["contents"][0]["text"], &json!("1,2")).map_err(|e| format!("{e} {own}")),
    );
    let theirs = read(&two).await;
    table.row(
        "another client",
        ensure(
            theirs["error"]["message"].as_str().is_some_and(|text| text.contains("there is no file")),
            &theirs,
        ),
    );
    let code = format!(
        "try: r = open('lockhouse://result/{handle}').read()\nexcept Exception as e: r = type(e).__name__\nr"
    );
    table.row("its code", equal(value(&one, &code).await, json!("1,2")));
    table.row("code of another client", equal(value(&two, &code).await, json!("FileNotFoundError")));
    let got = two.call("get_result", json!({"handle": handle})).await;
    table.row("get_result of another client", ensure(got["status"] == "error", &got));
    table.finish();
}
