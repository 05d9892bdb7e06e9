//! Tests of the notifications that AI clients get when the tools or resources of a directly exposed upstream server
//! change.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use super::raw_client::Pipe;
use super::{ALL, legacy, lockhouse, modern};

const DIRECT: &str = "expose = \"direct\"\nprefix = \"f\"";

#[tokio::test]
async fn clients_of_both_protocol_forms_are_notified_of_lists_and_resources() {
    let mut table = Table::new("notifications about changes");
    for era in ["--legacy", "--modern"] {
        let lockhouse = lockhouse(era, DIRECT, ALL);
        // In protocol version 2026-07-28, clients that listen are notified.
        let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
        let notifications = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["test://watched-resource"],
        });
        let listen = modern(1, "subscriptions/listen", json!({"notifications": notifications}), &json!({}));
        pipe.send(&listen).await;
        pipe.line_with("subscriptions/acknowledged").await;
        for (number, (tool, reported)) in [
            ("test_trigger_tool_change", "notifications/tools/list_changed"),
            ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
            ("update_resource", "notifications/resources/updated"),
        ]
        .into_iter()
        .enumerate()
        {
            let call = json!({"name": format!("f__{tool}"), "arguments": {}});
            pipe.send(&modern(10 + number as u64, "tools/call", call, &json!({}))).await;
            let line = pipe.line_with(reported).await;
            let has_id = line.contains("io.modelcontextprotocol/subscriptionId");
            table.row(format!("server {era}, modern client: {reported}"), ensure(has_id, &line));
        }
        let list = pipe.ask(&modern(20, "tools/list", json!({}), &json!({}))).await;
        table.row(format!("server {era}: the new tool is listed"), ensure(list.contains("f__added_0"), ()));

        // In earlier versions, all clients are notified, and of resource updates those that subscribed.
        let mut pipe = Pipe::initialized(lockhouse.command(&["serve"]), json!({})).await;
        let followed =
            pipe.answer(&legacy(1, "resources/subscribe", json!({"uri": "test://watched-resource"}))).await;
        table.row(
            format!("server {era}, older client: resources/subscribe"),
            equal(followed["result"].clone(), json!({})),
        );
        for (number, (tool, reported)) in [
            ("test_trigger_tool_change", "notifications/tools/list_changed"),
            ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
            ("update_resource", "notifications/resources/updated"),
        ]
        .into_iter()
        .enumerate()
        {
            let call = json!({"name": format!("f__{tool}"), "arguments": {}});
            pipe.send(&legacy(10 + number as u64, "tools/call", call)).await;
            let line = pipe.line_with(reported).await;
            table.row(
                format!("server {era}, older client: {reported}"),
                ensure(line.contains(reported), &line),
            );
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_policy_reload_notifies_only_if_the_visible_tools_change() {
    let lockhouse = lockhouse("--modern", DIRECT, ALL);
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None);
    http_client.request("tools/list", json!({})).await;
    let message =
        http_client.message("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut events = http_client.open(&message).await;
    let acknowledged = events.next().await.expect("an event");
    let mut table = Table::new("list_changed after a reload");
    table.row("acknowledged", ensure(acknowledged.to_string().contains("acknowledged"), &acknowledged));
    // Nothing has changed for the client, so its next notification must be about the second change.
    daemon.reload().await;
    let less = ALL.replace("allow = [\"*\"]", "allow = [\"test_simple_text\"]");
    lockhouse.file("config/lockhouse/policy.toml", less);
    daemon.reload().await;
    let reported = events.next().await.expect("an event");
    table.row(
        "the client is notified",
        equal(reported["method"].clone(), json!("notifications/tools/list_changed")),
    );
    let listed = http_client.request("tools/list", json!({})).await.answer();
    table.row("and sees less", equal(listed["result"]["tools"].as_array().map(Vec::len), Some(4)));
    table.finish();
}
