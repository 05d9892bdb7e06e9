//! Tests of the records of logins, and of what people do on the live page.

use lockhouse_tests::{Lockhouse, Page, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use super::Acts;
use super::ends::endless;
use crate::audit::ADD;

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_on_the_page_is_recorded_with_its_viewer() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3, "its server has started");
    let mut acts = Acts::new(&lockhouse);
    let page = Page::start(&lockhouse, &[]).await;
    let mut table = Table::new("the page");
    let of = ["event", "through", "outcome", "action", "command"];
    let found = async |acts: &mut Acts<'_>, count: usize| {
        let mut found = Vec::new();
        wait_until("its records", async || {
            found.extend(acts.summaries(&of));
            (found.len() >= count).then_some(())
        })
        .await;
        found
    };
    let started = json!(["process", null, "started", null, "page"]);
    table.row("its start", equal(found(&mut acts, 1).await, vec![started]));
    page.log_in("0000").await;
    let refused = json!(["authentication", "page", "refused", null, null]);
    table.row("a login that fails", equal(found(&mut acts, 1).await, vec![refused]));
    let browser = page.browser().await;
    let accepted = json!(["authentication", "page", "accepted", null, null]);
    table.row("a login", equal(found(&mut acts, 1).await, vec![accepted]));
    let (execution, running) = endless(&lockhouse, &session).await;
    let ended =
        browser.post("/api/runs/end", json!({"supervisor": session.pid(), "execution": execution})).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    running.await.unwrap();
    let action = format!("end run {}", execution.as_str().unwrap());
    let expected = vec![
        json!(["action", "page", "requested", action, null]),
        json!(["termination", "operator", "ended", null, null]),
    ];
    table.row("an action", equal(found(&mut acts, 2).await, expected));
    let change = json!({"server": "fixture", "tool": "env", "effect": "deny"});
    let preview = browser.post("/api/policy/preview", change.clone()).await.json();
    table.row("control: a preview", equal(acts.next(), vec![]));
    let mut apply = change;
    apply["digest"] = preview["digest"].clone();
    assert_eq!(browser.post("/api/policy/apply", apply.clone()).await.status, 200);
    let requested = json!(["action", "page", "requested", "policy Deny fixture.env", null]);
    let expected = vec![requested.clone(), json!(["change", "page", "changed", "deny fixture.env", null])];
    table.row("a change of the policy", equal(found(&mut acts, 2).await, expected));
    apply["digest"] = format!("sha256:{}", "0".repeat(64)).into();
    assert_eq!(browser.post("/api/policy/apply", apply).await.error_code(), "stale");
    let expected = vec![requested, json!(["action", "page", "failed", "policy Deny fixture.env", null])];
    table.row("one that fails", equal(found(&mut acts, 2).await, expected));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_recorded_at_a_limited_rate() {
    let lockhouse = Lockhouse::with_fixture();
    let token = lockhouse.run(&["token", "create", "desk"]).stdout.trim().to_owned();
    let daemon = lockhouse.daemon().await;
    let mut acts = Acts::new(&lockhouse);
    let mut table = Table::new("credentials over HTTP");
    let client = daemon.http_client(Some(&token));
    let run = client.run_code("python", "1").await;
    let again = client.run_code("python", "1").await;
    assert_eq!(json!([run["value"], again["value"]]), json!([1, 1]));
    let authentications = |acts: &mut Acts<'_>| -> Vec<Value> {
        acts.next().into_iter().filter(|record| record["event"] == "authentication").collect()
    };
    let accepted = authentications(&mut acts).into_iter();
    let accepted: Vec<Value> = accepted
        .map(|record| json!([record["through"], record["client"], record["outcome"], record["severity"]]))
        .collect();
    table.row("a valid token, once", equal(accepted, vec![json!(["http", "desk", "accepted", "info"])]));
    let (rest, last) = token.split_at(token.len() - 1);
    let wrong = format!("{rest}{}", if last == "0" { "1" } else { "0" });
    let client = daemon.http_client(Some(&wrong));
    for _ in 0..30 {
        let reply = client.request("tools/list", json!({})).await;
        assert!([401, 429].contains(&reply.status), "{reply:?}");
    }
    let found = authentications(&mut acts);
    table.row("at most 20 records", ensure((1..=20).contains(&found.len()), found.len()));
    let record = found.first().cloned().unwrap_or_default();
    let expected = json!(["http", "refused", "warning"]);
    table.row(
        "one of them",
        equal(json!([record["through"], record["outcome"], record["severity"]]), expected),
    );
    table.row("without the token", ensure(!format!("{found:?}").contains(&wrong[3..12]), found));
    table.finish();
}
