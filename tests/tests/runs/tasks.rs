//! Tests of runs as MCP tasks, for AI clients that declare the tasks extension.

use lockhouse_tests::{HttpClient, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::runs::{ENDLESS, python};

const OPEN: &str = "[http]\nauth = \"none\"\n[runs]\nwait_seconds = 0.2\n";
const EARLIER: &str = "2025-11-25";

fn lockhouse() -> Lockhouse {
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    Lockhouse::new().server("fixture", &["--asking"]).policy(policy).config(OPEN)
}

fn tasks_capability() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}})
}

async fn create_task(http_client: &HttpClient, code: &str) -> Value {
    let reply = http_client.post(&http_client.calling("run_code", python(code))).await;
    reply.answer()["result"].clone()
}

async fn get_task(http_client: &HttpClient, id: &Value) -> Value {
    http_client.request("tasks/get", json!({"taskId": id})).await.answer()
}

/// Polls an MCP task until its status is no longer `working`, and returns the task.
async fn poll_until_not_working(http_client: &HttpClient, id: &Value) -> Value {
    wait_until("the task is no longer working", async || {
        let task = get_task(http_client, id).await["result"].clone();
        (task["status"] != "working").then_some(task)
    })
    .await
}

#[tokio::test]
async fn a_client_that_declares_the_tasks_capability_gets_a_task() {
    let lockhouse = lockhouse();
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None).with_capabilities(tasks_capability());
    let mut table = Table::new("runs as tasks");
    let slow = "from mcp_tools import fixture\nprint('begun')\nfixture.slow(ms=900)['waited_ms']";
    let made = create_task(&http_client, slow).await;
    table.row("it is a task", equal(&made["resultType"], &json!("task")));
    table.row("that is working", equal(&made["status"], &json!("working")));
    let bounded =
        made["ttlMs"].as_u64().is_some_and(|ttl| ttl >= 3_600_000) && made["pollIntervalMs"] == 1000;
    table.row("how long, and how often to ask", ensure(bounded, &made));
    let id = &made["taskId"];
    let words = wait_until("it has called", async || {
        let words = get_task(&http_client, id).await["result"]["statusMessage"].as_str()?.to_owned();
        words.contains("under way").then_some(words)
    });
    let words = words.await;
    table.row("what it is doing", ensure(words.contains("1 under way (fixture.slow)"), words));
    let done = poll_until_not_working(&http_client, id).await;
    table.row("it completes", equal(&done["status"], &json!("completed")));
    table.row("its value", equal(&done["result"]["structuredContent"]["value"], &json!(900)));
    table.row("is no error", ensure(done["result"]["isError"] != true, &done));
    table
        .row("the same again", equal(&get_task(&http_client, id).await["result"]["result"], &done["result"]));
    let by_tool = http_client.call("get_result", json!({"handle": id})).await;
    table.row("its handle is its id", equal(&by_tool, &done["result"]["structuredContent"]));
    let failing = create_task(&http_client, &format!("{slow}\n1 / 0")).await;
    let failed = poll_until_not_working(&http_client, &failing["taskId"]).await;
    let error = failed["status"] == "completed" && failed["result"]["isError"] == true;
    table.row("a program that fails is a completed task with an error", ensure(error, &failed));
    let short = http_client.post(&http_client.calling("run_code", python("1"))).await.answer();
    let quick = short["result"]["structuredContent"]["value"] == 1 || short["result"]["resultType"] == "task";
    table.row("control: a short run is an answer", ensure(quick, &short));
    table.finish();
}

#[tokio::test]
async fn a_task_can_be_cancelled_can_ask_and_is_private_to_its_client() {
    let lockhouse = lockhouse();
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None).with_capabilities(tasks_capability());
    let mut table = Table::new("tasks");
    let endless = create_task(&http_client, ENDLESS).await["taskId"].clone();
    table.row(
        "control: it works",
        equal(&get_task(&http_client, &endless).await["result"]["status"], &json!("working")),
    );
    let cancelled = http_client.request("tasks/cancel", json!({"taskId": endless})).await.answer();
    table.row("cancelled", ensure(cancelled.get("result").is_some(), &cancelled));
    let done = poll_until_not_working(&http_client, &endless).await;
    table.row("it is", equal(&done["status"], &json!("cancelled")));
    let again = http_client.request("tasks/cancel", json!({"taskId": endless})).await.answer();
    table.row("twice", ensure(again.get("result").is_some(), &again));
    let asks =
        "from mcp_tools import fixture\nfixture.slow(ms=600)\nfixture.ask(what='form')['said']['name']";
    let asking = create_task(&http_client, asks).await["taskId"].clone();
    let required = poll_until_not_working(&http_client, &asking).await;
    table.row("it asks", equal(&required["status"], &json!("input_required")));
    let requests = required["inputRequests"].as_object().cloned().unwrap_or_default();
    let (key, request) = requests.into_iter().next().expect("a question");
    let words = request["params"]["message"].as_str().unwrap_or_default();
    table.row("the question", ensure(words.starts_with("Server fixture asks: "), words));
    let said = json!({key.clone(): {"action": "accept", "content": {"name": "Ada"}}});
    let other = json!({"question-99": {"action": "accept", "content": {"name": "Eve"}}});
    for responses in [other, said] {
        let update = json!({"taskId": asking, "inputResponses": responses});
        let taken = http_client.request("tasks/update", update).await.answer();
        table.row("an answer is taken", ensure(taken.get("result").is_some(), &taken));
    }
    let done = poll_until_not_working(&http_client, &asking).await;
    table.row("it goes on", equal(&done["result"]["structuredContent"]["value"], &json!("Ada")));
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let unknown = json!({"taskId": "0".repeat(32), "inputResponses": {}});
        let refused = http_client.request(method, unknown).await.answer();
        table.row(format!("{method} of an unknown one"), equal(&refused["error"]["code"], &json!(-32602)));
        let undeclared =
            daemon.http_client(None).request(method, json!({"taskId": asking, "inputResponses": {}})).await;
        let code = &undeclared.answer()["error"]["code"];
        table.row(format!("{method} of a client that declares none"), equal(code, &json!(-32021)));
    }
    table.finish();
}

#[tokio::test]
async fn tasks_work_in_sessions_of_an_earlier_protocol_era() {
    let lockhouse = lockhouse();
    let daemon = lockhouse.daemon().await;
    let (http_client, reply) =
        daemon.http_client(None).with_capabilities(tasks_capability()).initialize(EARLIER).await;
    assert!(reply.answer()["result"]["capabilities"].to_string().contains("io.modelcontextprotocol/tasks"));
    let made =
        create_task(&http_client, "from mcp_tools import fixture\nfixture.slow(ms=700)['waited_ms']").await;
    let done = poll_until_not_working(&http_client, &made["taskId"]).await;
    assert_eq!(done["result"]["structuredContent"]["value"], 700, "{done}");
}
