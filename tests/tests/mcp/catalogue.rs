//! Tests of the list of servers and tools in the description of `run_code`.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure, equal, tokens};
use serde_json::{Value, json};

use crate::direct_tools::legacy;
use crate::direct_tools::raw_client::Pipe;

const POLICY: &str = "version = 1\n[servers.calendar]\nallow = [\"*\"]\ndeny = [\"erase_*\"]\n\
     [servers.notes]\nallow = [\"*\"]\n[servers.vault]\ndeny = [\"*\"]\n";

/// Adds an upstream server to the test fixture. Each tool in `tools` is a name with the names of its
/// parameters. All parameters are required except those whose name begins with `may_`.
fn with_tools(lockhouse: Lockhouse, server: &str, tools: &[(&str, &[&str])]) -> Lockhouse {
    let tool = |(name, parameters): &(&str, &[&str])| {
        let properties: serde_json::Map<String, Value> =
            parameters.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        let required: Vec<&&str> = parameters.iter().filter(|name| !name.starts_with("may_")).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let output = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
        json!({"name": name, "description": "Words of the server.", "inputSchema": schema, "outputSchema": output})
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    let file = lockhouse.file(&format!("{server}.json"), json!({"tools": tools}).to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/catalogue.py");
    lockhouse.servers_entry(server, json!({"command": "python3", "args": [script, file]}))
}

fn three_servers() -> Lockhouse {
    let calendar: [(&str, &[&str]); 3] =
        [("list_events", &["day", "may_filter"]), ("erase_all", &[]), ("add_event", &["title"])];
    let lockhouse = with_tools(
        Lockhouse::new().config("[http]\nauth = \"none\"\n").policy(POLICY),
        "calendar",
        &calendar,
    );
    let lockhouse = with_tools(lockhouse, "notes", &[("read", &["id"])]);
    with_tools(lockhouse, "vault", &[("open", &["code"])])
}

/// Returns the description of the tool `run_code` from an answer to `tools/list`.
fn description(listed: &Value) -> &str {
    listed["result"]["tools"][0]["description"].as_str().unwrap_or_default()
}

/// Returns the list of servers and tools at the end of the description of `run_code`, without the fixed text
/// before it.
fn catalogue(description: &str) -> String {
    let start = ["Tools (", "Servers ("].iter().find_map(|start| description.find(start));
    start.map_or_else(String::new, |start| description[start..].to_owned())
}

/// Requests `tools/list` until all upstream servers are connected, and returns the last answer.
async fn listed(client: &lockhouse_tests::HttpClient) -> Value {
    loop {
        let answer = client.request("tools/list", json!({})).await.answer();
        if !description(&answer).contains("(connecting)") {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn each_client_sees_the_tools_that_it_may_use() {
    let lockhouse = three_servers().config("");
    for (name, only) in [("notes-only", "notes"), ("both", "notes,calendar")] {
        let only: Vec<&str> = only.split(',').flat_map(|server| ["--only", server]).collect();
        let made = lockhouse.run(&[&["token", "create", name], &only[..]].concat());
        assert_eq!(made.status, Some(0), "{made:?}");
        lockhouse.file(name, made.stdout.trim());
    }
    let token = |name: &str| std::fs::read_to_string(lockhouse.path(name)).unwrap();
    let daemon = lockhouse.daemon().await;
    let both = listed(&daemon.http_client(Some(&token("both")))).await;
    let notes = listed(&daemon.http_client(Some(&token("notes-only")))).await;
    let mut table = Table::new("the list of tools in the description of run_code");
    table.row(
        "permitted tools, names and types",
        equal(
            catalogue(description(&both)),
            "Tools (? = optional):\n\
             calendar: list_events(day: str, may_filter?: str) -> { id: int }; add_event(title: str) -> { id: int }\n\
             notes: read(id: str) -> { id: int }"
                .to_owned(),
        ),
    );
    table.row(
        "a grant withholds the others",
        equal(
            catalogue(description(&notes)),
            "Tools (? = optional):\nnotes: read(id: str) -> { id: int }".to_owned(),
        ),
    );
    table.row("cacheScope", equal(both["result"]["cacheScope"].clone(), json!("private")));
    let ttl = both["result"]["ttlMs"].as_u64();
    table.row("ttlMs", ensure(ttl.is_some_and(|ttl| ttl <= 60_000), ttl));
    table.finish();
}

#[tokio::test]
async fn the_configured_limit_decides_whether_signatures_are_listed() {
    let many: Vec<String> = (0..120).map(|number| format!("tool_{number}")).collect();
    let many: Vec<(&str, &[&str])> = many.iter().map(|name| (name.as_str(), &["query"][..])).collect();
    let mut table = Table::new("catalogue_tokens");
    for (limit, expected) in [
        ("", "Servers (tools): calendar 2, large 120, notes 1"),
        ("[tools]\ncatalogue_tokens = 0\n", "Servers (tools): calendar 2, large 120, notes 1"),
        ("[tools]\ncatalogue_tokens = 5000\n", "Tools (? = optional):"),
    ] {
        let policy = format!("{POLICY}[servers.large]\nallow = [\"*\"]\n");
        let lockhouse = with_tools(three_servers(), "large", &many).policy(&policy);
        let lockhouse = lockhouse.config(&format!("[http]\nauth = \"none\"\n{limit}"));
        let daemon = lockhouse.daemon().await;
        let text = catalogue(description(&listed(&daemon.http_client(None)).await));
        table.row(format!("{limit:?}"), ensure(text.starts_with(expected), &text));
        let shown = if limit.contains("5000") { 5_000 } else { 150 };
        table
            .row(format!("{limit:?}: at most {shown} tokens"), ensure(tokens(&text) <= shown, tokens(&text)));
    }
    table.finish();
}

#[tokio::test]
async fn clients_are_notified_when_the_description_changes() {
    let lockhouse = three_servers();
    let daemon = lockhouse.daemon().await;
    let client = daemon.http_client(None);
    listed(&client).await;
    let message =
        client.message("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut events = client.open(&message).await;
    let acknowledged = events.next().await.expect("an event");
    let mut table = Table::new("list_changed");
    table.row("acknowledged", ensure(acknowledged.to_string().contains("acknowledged"), &acknowledged));
    // Nothing has changed for the client, so its next notification must be about the second change.
    daemon.reload().await;
    lockhouse
        .file("config/lockhouse/policy.toml", POLICY.replace("deny = [\"erase_*\"]", "deny = [\"add_*\"]"));
    daemon.reload().await;
    let reported = events.next().await.expect("an event");
    table.row("notified", equal(reported["method"].clone(), json!("notifications/tools/list_changed")));
    let text = catalogue(description(&listed(&client).await));
    table.row("the list is new", ensure(text.contains("erase_all()") && !text.contains("add_event"), &text));
    table.finish();
}

#[tokio::test]
async fn clients_are_notified_when_a_server_connects_or_fails() {
    let mut table = Table::new("list_changed of a late server");
    for (end, expected) in [("exec \"$FIXTURE\"", "late: echo("), ("exit 1", "late (unavailable)")] {
        let lockhouse = Lockhouse::new()
            .config("[http]\nauth = \"none\"\n")
            .policy("version = 1\n[servers.late]\nallow = [\"echo\"]\n");
        let go = lockhouse.path("go");
        let script = format!("while ! test -e {}; do sleep 0.1; done; {end}", go.display());
        let fixture = env!("CARGO_BIN_EXE_fixture-server");
        let entry = json!({"command": "/bin/sh", "args": ["-c", script], "env": {"FIXTURE": fixture}});
        let lockhouse = lockhouse.servers_entry("late", entry);
        let daemon = lockhouse.daemon().await;
        let client = daemon.http_client(None);
        let before = client.request("tools/list", json!({})).await.answer();
        table.row(
            format!("{expected}: before"),
            equal(catalogue(description(&before)), "Servers (tools): late (connecting)".to_owned()),
        );
        let message =
            client.message("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
        let mut events = client.open(&message).await;
        events.next().await.expect("an acknowledgement");
        lockhouse.file("go", "");
        let reported = events.next().await.expect("an event");
        table.row(
            format!("{expected}: notified"),
            equal(reported["method"].clone(), json!("notifications/tools/list_changed")),
        );
        let after = catalogue(description(&client.request("tools/list", json!({})).await.answer()));
        table.row(format!("{expected}: after"), ensure(after.contains(expected), &after));
    }
    table.finish();
}

#[tokio::test]
async fn clients_over_stdio_are_notified_in_code_mode() {
    let lockhouse = three_servers();
    let mut pipe = Pipe::initialized(lockhouse.command(&["serve"]), json!({})).await;
    let mut table = Table::new("list_changed over stdio");
    let listed = loop {
        let answer = pipe.answer(&legacy(1, "tools/list", json!({}))).await;
        if !description(&answer).contains("(connecting)") {
            break description(&answer).to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let is_first = listed.contains("add_event(") && !listed.contains("erase_all(");
    table.row("control", ensure(is_first, &listed));
    lockhouse
        .file("config/lockhouse/policy.toml", POLICY.replace("deny = [\"erase_*\"]", "deny = [\"add_*\"]"));
    pipe.reload();
    // The connection of a server may be notified as late as now: the client lists once for each notification, as a
    // client does, and the notification of the new policy is the last.
    let is_new = |text: &str| text.contains("erase_all(") && !text.contains("add_event");
    let (line, text) = loop {
        let line = pipe.line_with("notifications/tools/list_changed").await;
        let answer = pipe.answer(&legacy(2, "tools/list", json!({}))).await;
        let text = catalogue(description(&answer));
        if is_new(&text) {
            break (line, text);
        }
    };
    table.row("notified", ensure(!line.contains("\"id\""), &line));
    table.row("the list is new", ensure(is_new(&text), &text));
    table.finish();
}
