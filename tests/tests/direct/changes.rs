//! Clients are told of changes of what they have directly.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use super::pipe::Pipe;
use super::{ALL, legacy, lockhouse, modern};

const DIRECT: &str = "expose = \"direct\"\nprefix = \"f\"";

#[tokio::test]
async fn clients_of_both_eras_hear_of_lists_and_resources() {
    let mut table = Table::new("what a client hears of changes");
    for era in ["--legacy", "--modern"] {
        let lockhouse = lockhouse(era, DIRECT, ALL);
        // In the newest era, whoever listens.
        let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
        let notifications = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["test://watched-resource"],
        });
        let listen = modern(1, "subscriptions/listen", json!({"notifications": notifications}), &json!({}));
        pipe.send(&listen).await;
        pipe.line_with("subscriptions/acknowledged").await;
        for (number, (tool, told)) in [
            ("test_trigger_tool_change", "notifications/tools/list_changed"),
            ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
            ("update_resource", "notifications/resources/updated"),
        ]
        .into_iter()
        .enumerate()
        {
            let call = json!({"name": format!("f__{tool}"), "arguments": {}});
            pipe.send(&modern(10 + number as u64, "tools/call", call, &json!({}))).await;
            let line = pipe.line_with(told).await;
            let has_id = line.contains("io.modelcontextprotocol/subscriptionId");
            table.row(format!("server {era}, modern client: {told}"), ensure(has_id, &line));
        }
        let list = pipe.ask(&modern(20, "tools/list", json!({}), &json!({}))).await;
        table.row(format!("server {era}: the new tool is there"), ensure(list.contains("f__added_0"), ()));

        // Before it, all of them; and of resources that they follow.
        let mut pipe = Pipe::initialized(lockhouse.command(&["serve"]), json!({})).await;
        let followed =
            pipe.answer(&legacy(1, "resources/subscribe", json!({"uri": "test://watched-resource"}))).await;
        table.row(
            format!("server {era}, older client: resources/subscribe"),
            equal(followed["result"].clone(), json!({})),
        );
        for (number, (tool, told)) in [
            ("test_trigger_tool_change", "notifications/tools/list_changed"),
            ("test_trigger_prompt_change", "notifications/prompts/list_changed"),
            ("update_resource", "notifications/resources/updated"),
        ]
        .into_iter()
        .enumerate()
        {
            let call = json!({"name": format!("f__{tool}"), "arguments": {}});
            pipe.send(&legacy(10 + number as u64, "tools/call", call)).await;
            let line = pipe.line_with(told).await;
            table.row(format!("server {era}, older client: {told}"), ensure(line.contains(told), &line));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_policy_that_shows_less_is_a_change_and_one_that_shows_the_same_is_none() {
    let lockhouse = lockhouse("--modern", DIRECT, ALL);
    let door = lockhouse.door().await;
    let visitor = door.visitor(None);
    visitor.request("tools/list", json!({})).await;
    let message =
        visitor.message("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut events = visitor.open(&message).await;
    let acknowledged = events.next().await.expect("an event");
    let mut table = Table::new("list_changed after a reload");
    table.row("acknowledged", ensure(acknowledged.to_string().contains("acknowledged"), &acknowledged));
    // The same for the client: what it then hears first must be of the second.
    door.reload().await;
    let less = ALL.replace("allow = [\"*\"]", "allow = [\"test_simple_text\"]");
    lockhouse.file("config/lockhouse/policy.toml", less);
    door.reload().await;
    let told = events.next().await.expect("an event");
    table.row("the client is told", equal(told["method"].clone(), json!("notifications/tools/list_changed")));
    let listed = visitor.request("tools/list", json!({})).await.answer();
    table.row("and sees less", equal(listed["result"]["tools"].as_array().map(Vec::len), Some(4)));
    table.finish();
}
