//! Tests of searching and verifying the audit log on the page.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use crate::page::Scene;

/// Returns the kinds of the records about runs.
fn events(reply: &Value) -> Vec<&str> {
    let records = reply["records"].as_array().unwrap();
    let events = records.iter().map(|found| found["record"]["event"].as_str().unwrap());
    events.filter(|event| !["authentication", "process", "server"].contains(event)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_latest_first_a_page_at_a_time() {
    let Scene { lockhouse, session, browser, .. } = &Scene::new().await;
    let program = "from mcp_tools import fixture\nfixture.echo(value=1)['value']";
    for _ in 0..3 {
        session.run_code("python", program).await;
    }
    let mut table = Table::new("searches");
    let all = browser.get("/api/audit").await.json();
    let expected = ["end", "outcome", "call", "execution"].repeat(3);
    table.row("all records", equal(events(&all), expected.clone()));
    table.row("the search is complete", equal(json!([all["complete"], all["next"]]), json!([true, null])));
    let (mut pages, mut before) = (Vec::new(), String::new());
    for _ in 0..6 {
        let page = browser.get(&format!("/api/audit?limit=5&before={before}")).await.json();
        pages.extend(events(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        before = next.replace('|', "%7C").replace(':', "%3A");
    }
    table.row("pages of five", equal(pages, expected.iter().map(|event| (*event).to_owned()).collect()));
    for (query, count) in [
        ("event=call", 3),
        ("server=fixture&event=outcome&outcome=ok", 3),
        ("tool=other", 0),
        ("client=lockhouse-tests&event=execution", 3),
        ("since=1h", all["records"].as_array().map_or(0, Vec::len)),
        ("until=2020-01-01&since=2019-12-31", 0),
        ("event=&server=&limit=2", 2),
    ] {
        let found = browser.get(&format!("/api/audit?{query}")).await.json();
        table.row(query, equal(found["records"].as_array().map(Vec::len), Some(count)));
    }
    for query in ["since=x", "before=x", "limit=x", "nothing=1"] {
        let reply = browser.get(&format!("/api/audit?{query}")).await;
        table.row(query, equal(reply.error_code(), "invalid".into()));
    }
    let verified = browser.post("/api/audit/verify", json!({})).await.json();
    table.row("verified", equal(verified["state"].clone(), "verified".into()));
    let segment = lockhouse.segments().remove(0);
    let text = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, text.replacen("\"echo\"", "\"text\"", 1)).unwrap();
    let modified = browser.post("/api/audit/verify", json!({})).await.json();
    table.row("modified", ensure(modified["state"] == "faults" && modified["fault_count"] != 0, modified));
    table.finish();
}
