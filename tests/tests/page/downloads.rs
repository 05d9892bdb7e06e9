//! Tests of the results that can be downloaded.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use crate::page::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_value_is_downloaded_and_never_displayed() {
    let Scene { lockhouse, session, browser, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    let mut table = Table::new("downloads");
    session.run_code("python", "'<script>alert(1)</script>' * 100_000").await;
    let shown = events.until("results", |shown| shown["results"][0]["id"].is_string()).await;
    let result = &shown["results"][0];
    table
        .row("listed", equal(json!([result["kind"], result["supervisor"]]), json!(["value", session.pid()])));
    let id = result["id"].as_str().unwrap();
    let reply = browser.get(&format!("/api/results/{id}")).await;
    let body = String::from_utf8_lossy(&reply.body);
    table.row("the whole value", ensure(body == "<script>alert(1)</script>".repeat(100_000), body.len()));
    table.row(
        "a type that no browser displays",
        equal(reply.header("content-type"), "application/octet-stream".into()),
    );
    let disposition = reply.header("content-disposition");
    table.row("an attachment", ensure(disposition.starts_with("attachment; filename=\""), &disposition));
    let policy = reply.header("content-security-policy");
    table.row("sandboxed", equal(policy, "default-src 'none'; sandbox".into()));
    table.row("no sniffing", equal(reply.header("x-content-type-options"), "nosniff".into()));
    let answer = lockhouse.answer("python", "list(range(100_000))");
    table.row(
        "control: `lockhouse run` stores a value",
        ensure(answer["truncated"]["value"]["handle"].is_string(), &answer["truncated"]),
    );
    let shown =
        events.until("results", |shown| shown["results"].as_array().is_some_and(|all| all.len() == 2)).await;
    let in_file =
        shown["results"].as_array().unwrap().iter().find(|result| result["supervisor"].is_null()).unwrap();
    let reply = browser.get(&format!("/api/results/{}", in_file["id"].as_str().unwrap())).await;
    table.row("the value of `lockhouse run`", equal(reply.json()[99_999].clone(), json!(99_999)));
    for id in ["files-0", "files-..", "1-x", "x", &id[..id.len() - 1]] {
        let reply = browser.get(&format!("/api/results/{id}")).await;
        table.row(format!("no result {id}"), equal(reply.error_code(), "not_found".into()));
    }
    table.finish();
}
