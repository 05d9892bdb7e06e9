//! Tests of texts that others wrote and that look like markup, script, events or headers. The page sends them as JSON
//! strings only, in responses that browsers do not take for anything else.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use crate::page::Scene;

const PAYLOADS: [&str; 20] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"><svg onload=alert(1)>",
    "javascript:alert(1)",
    "<iframe src=javascript:alert(1)>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "<!--<script>alert(1)//-->",
    "\u{2028}alert(1)\u{2029}",
    "\n\nevent: hello\ndata: {\"administrator\":true}\n\n",
    "\r\nSet-Cookie: a=b\r\n\r\n<script>alert(1)</script>",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{202e}gnp.exe",
    "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>",
    "<math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
    "<style>@import'http://evil.test/x.css';</style>",
    "<base href=http://evil.test/>",
    "<meta http-equiv=refresh content=0;url=http://evil.test>",
    "';alert(1)//\\';alert(1)//\";alert(1)//",
];

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_arrive_as_json_strings() {
    let Scene { session, browser, page, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    events.next("approvals").await;
    let mut table = Table::new("20 hostile texts");
    for (number, payload) in PAYLOADS.iter().enumerate() {
        let literal = json!(payload).to_string();
        let program = format!(
            "from mcp_tools import fixture, ToolError\ntext = {literal}\nfixture.echo(value=text)\ntry: fixture.fail(message=text)\nexcept ToolError: pass\ntext"
        );
        session.run_code("python", &program).await;
        let ended = |runs: &serde_json::Value| {
            runs["recent"]
                .as_array()
                .is_some_and(|runs| runs.iter().filter(|run| run["status"] == "ok").count() == number + 1)
        };
        let runs = events.until("runs", ended).await;
        let execution = runs["recent"][0]["execution"].as_str().unwrap();
        let reply = browser.get(&format!("/api/runs/{execution}")).await;
        let shown = reply.json();
        let body = String::from_utf8_lossy(&reply.body);
        table.row(
            format!("control: the program with {payload:?}"),
            equal(shown["program"]["text"].clone(), program.into()),
        );
        table.row(
            format!("{payload:?}: JSON"),
            equal(reply.header("content-type"), "application/json".into()),
        );
        table.row(format!("{payload:?}: one line"), ensure(!body.contains(['\n', '\r']), &body));
        table.row(format!("{payload:?}: no header"), equal(reply.header("set-cookie"), String::new()));
    }
    let index = page.send(lockhouse_tests::request(&page.address, "GET", "/", &browser.headers(), "")).await;
    let html = String::from_utf8_lossy(&index.body);
    table.row("the page has no data", ensure(!html.contains("alert(1)") && !html.contains("fixture"), html));
    // The stream is still one of valid events.
    assert_eq!(browser.events().await.next("hello").await["may"][0], "approve");
    table.finish();
}
