//! Tests of the actions of the page. An action applies to what was shown, or changes nothing.

use lockhouse_tests::{CommandOutput, Page, Table, ensure, equal};
use serde_json::{Value, json};

use crate::page::Scene;

const ADD: &str = "from mcp_tools import fixture, ToolError
try: r = fixture.add(a=1, b=2)['sum']
except ToolError as e: r = e.code
r";

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered() {
    let Scene { lockhouse, session, browser, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    events.until("approvals", |shown| shown["watching"] == 1).await;
    let mut table = Table::new("answers on the page");
    for (decision, expected) in [("approve", json!(3)), ("decline", json!("approval_declined"))] {
        let (answer, ()) = tokio::join!(session.run_code("python", ADD), async {
            let shown = events.until("approvals", |shown| shown["questions"][0]["id"].is_u64()).await;
            let question = &shown["questions"][0];
            let text = question["text"].as_str().unwrap();
            table.row(
                format!("{decision}: the text of the terminal"),
                ensure(text.contains("add") && text.contains('\n'), text),
            );
            let body = |digest: &Value, id: u64| {
                json!({
                    "supervisor": question["supervisor"], "id": id, "digest": digest, "decision": decision,
                    "scope": "once",
                })
            };
            let id = question["id"].as_u64().unwrap();
            let stale = browser.post("/api/approvals/answer", body(&json!("0".repeat(64)), id)).await;
            table.row(format!("{decision}: another digest"), equal(stale.error_code(), "stale".into()));
            let other = browser.post("/api/approvals/answer", body(&question["digest"], id + 1)).await;
            table.row(format!("{decision}: another question"), equal(other.error_code(), "stale".into()));
            let taken = browser.post("/api/approvals/answer", body(&question["digest"], id)).await;
            table.row(format!("{decision}: taken"), equal(taken.json(), json!({"result": "taken"})));
            let again = browser.post("/api/approvals/answer", body(&question["digest"], id)).await;
            table.row(format!("{decision}: again"), ensure(again.status == 409, again));
            events.until("approvals", |shown| shown["questions"].as_array().unwrap().is_empty()).await;
        });
        table.row(decision, equal(answer["value"].clone(), expected));
    }
    let answered = lockhouse.audit().into_iter().filter(|record| record["event"] == "approval");
    let answered: Vec<Value> = answered.filter(|record| record["outcome"] != "asked").collect();
    let uid = nix::unistd::geteuid().as_raw();
    let is_recorded = |record: &Value| record["through"] == "local" && record["uid"] == uid;
    table.row(
        "recorded with the person",
        ensure(answered.len() == 2 && answered.iter().all(is_recorded), answered),
    );
    table.finish();
}

/// A question without a watcher fails at once. The page is a watcher only while it is open.
#[tokio::test(flavor = "multi_thread")]
async fn without_an_open_page_nobody_is_asked() {
    let Scene { session, .. } = &Scene::new().await;
    assert_eq!(session.run_code("python", ADD).await["value"], "approval_declined");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_a_session_are_ended() {
    let Scene { session, browser, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    let running = session.start_code("python", "while True: pass");
    let runs = events.until("runs", |runs| runs["active"][0]["pid"].is_u64()).await;
    let execution = &runs["active"][0]["execution"];
    let mut table = Table::new("ending");
    let end = |execution: &Value, supervisor: u32| {
        let body = json!({"supervisor": supervisor, "execution": execution});
        async move { browser.post("/api/runs/end", body).await }
    };
    let other = end(&json!("00000000-0000-7000-8000-000000000000"), session.pid()).await;
    table.row("another run", equal(other.error_code(), "refused".into()));
    let elsewhere = end(execution, 1).await;
    table.row("a process that is none", equal(elsewhere.error_code(), "failed".into()));
    let ended = end(execution, session.pid()).await;
    table.row("the run", equal(ended.json(), json!({"ended": [execution]})));
    let answer = lockhouse_tests::structured(running.await.unwrap());
    table.row("its answer", equal(answer["status"].clone(), "cancelled".into()));
    session.run_in("notes", "python", "x = 1").await;
    let sessions = events.until("sessions", |shown| shown["sessions"][0]["name"] == "notes").await;
    let body = json!({"supervisor": session.pid(), "id": sessions["sessions"][0]["id"]});
    let ended = browser.post("/api/sessions/end", body.clone()).await;
    table.row("the session", equal(ended.json(), json!({"ended": ["notes"]})));
    let again = browser.post("/api/sessions/end", body).await;
    table.row("the session again", equal(again.error_code(), "refused".into()));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_policy_is_applied_as_it_was_shown() {
    let Scene { lockhouse, session, browser, .. } = &Scene::new().await;
    let path = lockhouse.path("config/lockhouse/policy.toml");
    let policy = || std::fs::read_to_string(&path).unwrap();
    let call = "from mcp_tools import fixture, ToolError
try: r = fixture.env() and 'called'
except ToolError as e: r = e.code
r";
    let mut table = Table::new("changes of the policy");
    table.row("before", equal(session.run_code("python", call).await["value"].clone(), "denied".into()));
    let change = json!({"server": "fixture", "tool": "env", "effect": "allow"});
    let preview = browser.post("/api/policy/preview", change.clone()).await.json();
    let diff = preview["diff"].as_str().unwrap_or_default();
    table.row("the diff", ensure(diff.contains("+") && diff.contains("\"env\""), &preview));
    table.row("a preview changes nothing", equal(policy(), crate::page::POLICY.to_owned()));
    let mut apply = change.clone();
    apply["digest"] = format!("sha256:{}", "0".repeat(64)).into();
    let other = browser.post("/api/policy/apply", apply.clone()).await;
    table.row("another digest", equal(other.error_code(), "stale".into()));
    apply["digest"] = preview["digest"].clone();
    for (member, value) in [("effect", "deny"), ("tool", "fail")] {
        let mut other = apply.clone();
        other[member] = value.into();
        let reply = browser.post("/api/policy/apply", other).await;
        table.row(format!("another {member}"), equal(reply.error_code(), "stale".into()));
    }
    std::fs::write(&path, format!("{}# edited\n", crate::page::POLICY)).unwrap();
    let stale = browser.post("/api/policy/apply", apply.clone()).await;
    table.row("the file was edited meanwhile", equal(stale.error_code(), "stale".into()));
    table.row("it is as it was edited", equal(policy(), format!("{}# edited\n", crate::page::POLICY)));
    let preview = browser.post("/api/policy/preview", change).await.json();
    apply["digest"] = preview["digest"].clone();
    let applied = browser.post("/api/policy/apply", apply).await.json();
    table.row("applied", equal(applied["changed"].clone(), json!(true)));
    table.row("reloaded", equal(applied["reloads"][0]["accepted"].clone(), json!(true)));
    table.row("the file", ensure(policy().contains("\"env\"") && policy().ends_with("# edited\n"), policy()));
    table.row("after", equal(session.run_code("python", call).await["value"].clone(), "called".into()));
    for (server, tool) in
        [("fixture", "de*"), ("--config", "x"), ("fixture", "--digest"), ("a/b", "x"), ("", "")]
    {
        let body = json!({"server": server, "tool": tool, "effect": "allow"});
        let reply = browser.post("/api/policy/preview", body).await;
        table.row(
            format!("{server:?}.{tool:?} is no exact tool"),
            ensure([400, 409].contains(&reply.status) || tool == "--digest", reply),
        );
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_accepted_as_it_was_shown() {
    let scene = Scene::new().await;
    let Scene { lockhouse, browser, .. } = &scene;
    let mut table = Table::new("changed definitions");
    // The first connection pins the tools; then the server is another version of itself.
    let CommandOutput { status, .. } = lockhouse.run(&["server", "diff", "fixture"]);
    table.row("control: the server is reachable", equal(status, Some(0)));
    let review = browser.post("/api/servers/review", json!({"server": "fixture"})).await.json();
    table.row("nothing has changed", equal(review["changes"].clone(), json!([])));
    let digest = review["digest"].as_str().unwrap_or_default().to_owned();
    let accept = |digest: String| async move {
        browser.post("/api/servers/accept", json!({"server": "fixture", "digest": digest})).await
    };
    let stale = accept(format!("sha256:{}", "0".repeat(64))).await;
    table.row("another digest", equal(stale.error_code(), "stale".into()));
    table.row("no digest", equal(accept("--help".into()).await.error_code(), "invalid".into()));
    let accepted = accept(digest).await;
    table.row("the shown digest", equal(accepted.status, 200));
    for server in ["nothing", "--help", "../x"] {
        let reply = browser.post("/api/servers/review", json!({"server": server})).await;
        table.row(format!("the server {server}"), ensure([400, 502].contains(&reply.status), reply));
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_reloaded_and_the_host_checked() {
    let Scene { session, browser, .. } = &Scene::new().await;
    let reloads = browser.post("/api/reload", json!({})).await.json();
    let expected =
        json!([{"supervisor": session.pid(), "accepted": true, "message": "the configuration is in force"}]);
    assert_eq!(reloads["reloads"], expected);
    let host = browser.post("/api/host/check", json!({})).await.json();
    assert!(["full", "reduced"].contains(&host["level"].as_str().unwrap_or_default()), "{host}");
    assert!(host["protections"].as_array().is_some_and(|all| all.len() > 3), "{host}");
}

/// The page process must not keep the secrets of the configuration: commands that need them are other processes.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_starts_without_a_valid_configuration() {
    let lockhouse = lockhouse_tests::Lockhouse::new().config("[limits]\nnothing = 1\n");
    let page = Page::start(&lockhouse, &[]).await;
    let browser = page.browser().await;
    let hello = browser.events().await.next("hello").await;
    assert_eq!(hello["audit"], false, "{hello}");
}
