//! Tests of the page of a service: people log in with their access tokens, and see their own.

use lockhouse_tests::{Lockhouse, Page, Table, ensure, equal, request};
use serde_json::{Value, json};

use crate::page::POLICY;

const CONFIG: &str =
    "[page]\nlisten = \"127.0.0.1:0\"\nadministrators = [\"boss\"]\nhosts = [\"page.example.com\"]\n";

fn token(lockhouse: &Lockhouse, name: &str) -> String {
    lockhouse.run(&["token", "create", name]).stdout.trim_end().to_owned()
}

/// Returns the clients of the runs in a list.
fn clients(runs: &Value) -> Vec<&str> {
    runs.as_array().unwrap().iter().map(|run| run["client"].as_str().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_their_own_and_an_administrator_all() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY).config(CONFIG);
    let [ann, ben, boss] = ["ann", "ben", "boss"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let page = Page::start_service(&lockhouse).await;
    let mut table = Table::new("the page of a service");
    for (name, wrong) in
        [("no token", String::new()), ("another token", ann.replace(char::is_alphanumeric, "a"))]
    {
        table.row(name, equal(page.log_in(&wrong).await.error_code(), "no_session".into()));
    }
    let denied = "from mcp_tools import fixture, ToolError\ntry: fixture.delete_everything()\nexcept ToolError: pass\n1";
    for person in [&ann, &ben] {
        daemon.http_client(Some(person)).run_code("python", denied).await;
    }
    let (of_ann, of_boss) = (page.browser_of(&ann).await, page.browser_of(&boss).await);
    let mut events = of_boss.events().await;
    table.row(
        "administrator",
        equal(events.next("hello").await["may"].clone(), json!(["approve", "policy", "audit", "operate"])),
    );
    let all = events.until("runs", |runs| clients(&runs["recent"]).len() == 2).await;
    table.row("an administrator sees all runs", equal(clients(&all["recent"]), vec!["ben", "ann"]));
    let mut events = of_ann.events().await;
    let hello = events.next("hello").await;
    table.row("person", equal(json!([hello["may"], hello["user"]]), json!([[], "ann"])));
    for section in ["processes", "servers", "sessions", "results"] {
        let shown = of_ann.events().await.next(section).await;
        let is_empty = shown.as_object().unwrap().values().all(|list| list == &json!([]));
        table.row(format!("a person sees no {section}"), ensure(is_empty, &shown));
    }
    let own = events.until("runs", |runs| !clients(&runs["recent"]).is_empty()).await;
    table.row("a person sees their own runs", equal(clients(&own["recent"]), vec!["ann"]));
    let denials = of_ann.events().await.until("denials", |shown| shown["denials"][0].is_object()).await;
    table.row("a person sees their own denials", equal(clients(&denials["denials"]), vec!["ann"]));
    let of = |name: &str| {
        let runs = all["recent"].as_array().unwrap();
        runs.iter().find(|run| run["client"] == name).unwrap()["execution"].as_str().unwrap().to_owned()
    };
    let own = of_ann.get(&format!("/api/runs/{}", of("ann"))).await;
    table.row("their own run", equal(own.json()["run"]["client"].clone(), "ann".into()));
    let foreign = of_ann.get(&format!("/api/runs/{}", of("ben"))).await;
    table.row("another person's run", equal(foreign.error_code(), "not_found".into()));
    let records = of_ann.get("/api/audit?client=ben").await.json();
    let is_own = |found: &Value| found["record"]["client"] == "ann";
    let records = records["records"].as_array().unwrap();
    table.row("only their own records", ensure(!records.is_empty() && records.iter().all(is_own), records));
    for (path, body) in [
        ("/api/reload", json!({})),
        ("/api/host/check", json!({})),
        ("/api/audit/verify", json!({})),
        ("/api/policy/preview", json!({"server": "fixture", "tool": "env", "effect": "allow"})),
        ("/api/servers/review", json!({"server": "fixture"})),
        ("/api/runs/end", json!({"supervisor": 1, "execution": of("ben")})),
        (
            "/api/approvals/answer",
            json!({"supervisor": 1, "id": 1, "digest": "", "decision": "approve", "scope": "once"}),
        ),
    ] {
        table.row(
            format!("a person and {path}"),
            equal(of_ann.post(path, body.clone()).await.error_code(), "forbidden".into()),
        );
        let by_boss = of_boss.post(path, body).await.error_code();
        table.row(format!("control: an administrator and {path}"), ensure(by_boss != "forbidden", by_boss));
    }
    let revoked = lockhouse.run(&["token", "revoke", "ann"]);
    table.row("the token is revoked", equal(revoked.status, Some(0)));
    events.ended().await;
    table.row(
        "a revoked token ends the session",
        equal(of_ann.get("/api/audit").await.error_code(), "no_session".into()),
    );
    table.finish();
}

/// A proxy that terminates TLS passes on the host and the origin that browsers send.
#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_of_a_session_behind_tls_is_secure() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let ann = token(&lockhouse, "ann");
    let page = Page::start_service(&lockhouse).await;
    let body = json!({"token": ann}).to_string();
    let mut table = Table::new("logins");
    for (host, origin, status, is_secure) in [
        ("page.example.com", Some("https://page.example.com"), 200, true),
        ("page.example.com", None, 200, true),
        ("page.example.com:8443", Some("https://page.example.com:8443"), 200, true),
        ("page.example.com", Some("http://page.example.com"), 403, false),
        (&page.address, Some(&*format!("https://{}", page.address)), 200, true),
        (&page.address, Some(&*format!("http://{}", page.address)), 200, false),
        (&page.address, None, 200, false),
        ("other.example.com", Some("https://other.example.com"), 421, false),
    ] {
        let mut headers = vec![("Content-Type", "application/json"), ("X-Lockhouse-Page", "login")];
        headers.extend(origin.map(|origin| ("Origin", origin)));
        let reply = page.send(request(host, "POST", "/api/login", &headers, &body)).await;
        let found = (reply.status, reply.header("set-cookie").ends_with("; Secure"));
        table.row(format!("{host}, {origin:?}"), equal(found, (status, is_secure)));
    }
    table.finish();
}

/// A person may not answer questions, so calls do not wait for their page.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_page_of_an_administrator_is_an_approver() {
    const ADD: &str = "from mcp_tools import fixture, ToolError
try: r = fixture.add(a=1, b=2)['sum']
except ToolError as e: r = e.code
r";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY).config(CONFIG);
    let [ann, boss] = ["ann", "boss"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let page = Page::start_service(&lockhouse).await;
    let mut table = Table::new("approvers on the page of a service");
    let mut events_of_ann = page.browser_of(&ann).await.events().await;
    events_of_ann.until("approvals", |shown| shown["watching"] == 1).await;
    let client = daemon.http_client(Some(&ann));
    let declined = client.run_code("python", ADD).await;
    table.row("with the page of a person", equal(declined["value"].clone(), "approval_declined".into()));

    let of_boss = page.browser_of(&boss).await;
    let mut events_of_boss = of_boss.events().await;
    let has_question = |shown: &Value| shown["questions"][0]["id"].is_u64();
    let running = async {
        loop {
            // Until the process knows that there is an approver, it declines at once.
            let answer = client.run_code("python", ADD).await;
            if answer["value"] != "approval_declined" {
                return answer;
            }
        }
    };
    let (answer, ()) = tokio::join!(running, async {
        let shown = events_of_ann.until("approvals", has_question).await;
        table.row(
            "the person sees the question",
            equal(shown["questions"][0]["client"].clone(), "ann".into()),
        );
        let question = &events_of_boss.until("approvals", has_question).await["questions"][0];
        let answer = json!({
            "supervisor": question["supervisor"], "id": question["id"], "digest": question["digest"],
            "decision": "approve", "scope": "once",
        });
        let taken = of_boss.post("/api/approvals/answer", answer).await;
        table.row("control: an administrator answers", equal(taken.json(), json!({"result": "taken"})));
    });
    table.row("with the page of an administrator", equal(answer["value"].clone(), json!(3)));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_ends_their_own_run() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let [ann, ben] = ["ann", "ben"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let page = Page::start_service(&lockhouse).await;
    let (of_ann, of_ben) = (page.browser_of(&ann).await, page.browser_of(&ben).await);
    let client = daemon.http_client(Some(&ann));
    let running = tokio::spawn(async move { client.run_code("python", "while True: pass").await });
    let runs = of_ann.events().await.until("runs", |runs| runs["active"][0]["pid"].is_u64()).await;
    let run = &runs["active"][0];
    let body = json!({"supervisor": run["supervisor"], "execution": run["execution"]});
    let foreign = of_ben.post("/api/runs/end", body.clone()).await;
    assert_eq!(foreign.error_code(), "forbidden", "{foreign:?}");
    let ended = of_ann.post("/api/runs/end", body).await;
    assert_eq!(ended.json(), json!({"ended": [run["execution"]]}));
    assert_eq!(running.await.unwrap()["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_service_is_off_by_default() {
    let mut table = Table::new("configurations");
    for (name, config, words) in [
        ("no table", "", "set listen of [page]"),
        (
            "no authentication",
            "[page]\nlisten = \"127.0.0.1:0\"\n[http]\nauth = \"none\"\n",
            "needs authentication",
        ),
        (
            "an address of the network",
            "[page]\nlisten = \"0.0.0.0:7302\"\n",
            "not an address of this machine",
        ),
    ] {
        let ended = Lockhouse::new().config(config).run(&["page", "--service"]);
        table.row(name, ensure(ended.status == Some(2) && ended.stderr.contains(words), ended));
    }
    table.finish();
}
