//! Who approves calls: several people, not the requester, within a time, and alone with a reason.

use lockhouse_tests::{Approver, Daemon, Page, PageBrowser, Table, ensure, equal};
use serde_json::{Value, json};

use super::{Person, Service, can_change_account, items};

const PEOPLE: [(&str, &[&str]); 5] = [
    ("desk", &["run", "approve"]),
    ("ada", &["approve"]),
    ("bob", &["approve"]),
    ("eve", &["approve", "break_glass"]),
    ("runner", &["run"]),
];

/// `add` needs two people who are not the requester, `text` an answer within a second, and `echo` one answer.
const POLICY: &str = r#"
[servers.fixture]
ask = ["echo"]
[[servers.fixture.rules]]
tool = "add"
effect = "ask"
approvers = 2
not = "requester"
[[servers.fixture.rules]]
tool = "text"
effect = "ask"
expires_seconds = 1

[roles.others]
members = ["cy", "user:61600"]
may = ["approve"]
[roles.others.servers.fixture]
allow = ["text"]
"#;

const ADD: &str = "fixture.add(a=1, b=2)['sum']";

/// Runs a call as a person. The value is that of the call, or the code of the error.
async fn run(daemon: &Daemon, person: &Person, call: &str) -> Value {
    let code = format!(
        "from mcp_tools import fixture, ToolError\ntry: r = {call}\nexcept ToolError as e: r = [e.code, str(e)]\nr"
    );
    daemon.http_client(Some(&person.token)).run_code("python", &code).await["value"].clone()
}

/// Returns the question of a page, when it shows one that meets a condition.
async fn question(browser: &PageBrowser, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut events = browser.events().await;
    let shown = events.until("approvals", |shown| items(&shown["questions"]).iter().any(&is_it)).await;
    items(&shown["questions"]).iter().find(|question| is_it(question)).expect("it").clone()
}

/// Answers a question on a page. Returns the reason of a refusal, or the result.
async fn answer(browser: &PageBrowser, question: &Value, decision: &str, reason: Option<&str>) -> String {
    let mut body = json!({"decision": decision, "scope": "once"});
    for member in ["supervisor", "id", "digest"] {
        body[member] = question[member].clone();
    }
    body["break_glass"] = json!(reason);
    let reply = browser.post("/api/approvals/answer", body).await.json();
    reply["result"].as_str().or(reply["error"]["message"].as_str()).unwrap_or_default().to_owned()
}

/// Returns outcome, approver and reason of the records of approvals since the last call.
fn records(service: &Service, seen: &mut usize) -> Vec<Value> {
    let records = service.lockhouse.records();
    let approvals: Vec<&Value> = records.iter().filter(|record| record["event"] == "approval").collect();
    let new = approvals[*seen..].iter();
    let new =
        new.map(|record| json!([record["outcome"], record["approver"], record["break_glass"]])).collect();
    *seen = approvals.len();
    new
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_people_as_the_rule_says_approve_a_call_once_each() {
    if !can_change_account() {
        return;
    }
    let service = Service::new(&PEOPLE, POLICY, "");
    let daemon = service.daemon().await;
    let page = Page::start_service(&service.lockhouse).await;
    let [desk, ada, bob, eve] = ["desk", "ada", "bob", "eve"].map(|name| service.person(name));
    let (of_desk, of_bob) = (page.browser_of(&desk.token).await, page.browser_of(&bob.token).await);
    let of_eve = page.browser_of(&eve.token).await;
    // A page that is open waits for questions.
    let _open = of_bob.events().await;
    let mut of_ada = Approver::spawn(service.command(ada, &["approvals", "--json"]));
    of_ada.next("watching").await;
    let mut table = Table::new("approvals by several people");
    let mut seen = 0;

    let (value, ()) = tokio::join!(run(&daemon, desk, ADD), async {
        let asked = of_ada.next("ask").await;
        let text = asked["ask"]["text"].as_str().unwrap_or_default().to_owned();
        let says = text.contains("needs the approval of 2 people") && text.contains("cannot approve it");
        table.row("the question says what it needs", ensure(says, &text));
        let first = question(&of_desk, |_| true).await;
        let own = answer(&of_desk, &first, "approve", None).await;
        table.row("the requester", ensure(own.contains("somebody else must approve"), own));
        of_ada.answer(&asked, "approve", "once").await;
        of_ada.next("taken").await;
        let again = of_ada.next("ask").await;
        let text = again["ask"]["text"].as_str().unwrap_or_default().to_owned();
        table.row(
            "who has approved",
            ensure(text.contains("Approved by: ada") || text.contains("Approved by: user:"), &text),
        );
        of_ada.answer(&again, "approve", "once").await;
        let refused = of_ada.next("refused").await;
        table.row(
            "the same person twice",
            ensure(refused.to_string().contains("approved them already"), &refused),
        );
        let first_again = answer(&of_bob, &first, "approve", None).await;
        table.row("an answer to the question before", ensure(first_again != "taken", first_again));
        let second = question(&of_bob, |question| question["id"] != first["id"]).await;
        let both = tokio::join!(
            answer(&of_bob, &second, "approve", None),
            answer(&of_bob, &second, "approve", None)
        );
        let taken = usize::from(both.0 == "taken") + usize::from(both.1 == "taken");
        table.row("two clicks", equal(taken, 1));
    });
    table.row("the value", equal(value, json!(3)));
    let ada_name = format!("user:{}", ada.account);
    let expected = vec![
        json!(["asked", null, null]),
        json!(["approved in part", ada_name, null]),
        json!(["once", "bob", null]),
    ];
    table.row("the records", equal(records(&service, &mut seen), expected));

    let (value, ()) = tokio::join!(run(&daemon, desk, ADD), async {
        let asked = question(&of_bob, |_| true).await;
        table.row("bob approves", equal(answer(&of_bob, &asked, "approve", None).await, "taken".into()));
        let second = question(&of_eve, |question| question["id"] != asked["id"]).await;
        let revoked = service.lockhouse.run(&["token", "revoke", "bob"]);
        table.row("the token of bob is revoked", equal(revoked.status, Some(0)));
        table.row("eve approves", equal(answer(&of_eve, &second, "approve", None).await, "taken".into()));
        // The approval of a person whose token was revoked meanwhile does not count.
        let _ = of_ada.next("ask").await;
        let _ = of_ada.next("ask").await;
        let third = of_ada.next("ask").await;
        of_ada.answer(&third, "approve", "once").await;
        of_ada.next("taken").await;
    });
    table.row("two others", equal(value, json!(3)));
    let outcomes: Vec<Value> =
        records(&service, &mut seen).into_iter().map(|record| record[0].clone()).collect();
    table.row(
        "the records of it",
        equal(
            outcomes,
            vec![json!("asked"), json!("approved in part"), json!("approved in part"), json!("once")],
        ),
    );
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_with_a_reason_can_approve_what_requires_two() {
    if !can_change_account() {
        return;
    }
    let service = Service::new(&PEOPLE, POLICY, "");
    let daemon = service.daemon().await;
    let page = Page::start_service(&service.lockhouse).await;
    let [desk, bob, eve, runner] = ["desk", "bob", "eve", "runner"].map(|name| service.person(name));
    let (of_bob, of_eve) = (page.browser_of(&bob.token).await, page.browser_of(&eve.token).await);
    let _open = of_bob.events().await;
    let mut table = Table::new("break glass, expiry, refusals");
    let mut seen = 0;
    let (value, ()) = tokio::join!(run(&daemon, desk, ADD), async {
        let asked = question(&of_eve, |_| true).await;
        let alone = answer(&of_bob, &asked, "approve", Some("I want it")).await;
        table.row("without the right", ensure(alone.contains("break_glass"), alone));
        let empty = answer(&of_eve, &asked, "approve", Some("  ")).await;
        table.row("without a reason", ensure(empty.contains("1 to 500 characters"), empty));
        let alone = answer(&of_eve, &asked, "approve", Some("the site is down")).await;
        table.row("alone", equal(alone, "taken".into()));
    });
    table.row("the value", equal(value, json!(3)));
    let expected = vec![json!(["asked", null, null]), json!(["once", "eve", "the site is down"])];
    table.row("the records", equal(records(&service, &mut seen), expected));
    let all = service.lockhouse.records();
    let loud = all.iter().find(|record| record["break_glass"] == "the site is down").expect("a record");
    table.row("a louder record", equal(loud["severity"].clone(), json!("high")));

    let value = run(&daemon, runner, "fixture.text(text='a')").await;
    let reason = value[1].as_str().unwrap_or_default().to_owned();
    table.row("nobody answers in time", ensure(reason.contains("nobody answered in time"), &value));
    let (value, ()) = tokio::join!(run(&daemon, runner, ADD), async {
        let asked = question(&of_bob, |_| true).await;
        table.row("refused", equal(answer(&of_bob, &asked, "decline", None).await, "taken".into()));
    });
    table.row("one refusal decides", equal(value[0].clone(), json!("approval_declined")));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_and_answers_only_what_a_role_covers() {
    if !can_change_account() {
        return;
    }
    let service = Service::new(&[("desk", &["run"]), ("ada", &["approve"]), ("cy", &[])], POLICY, "");
    let daemon = service.daemon().await;
    let page = Page::start_service(&service.lockhouse).await;
    let [desk, ada, cy] = ["desk", "ada", "cy"].map(|name| service.person(name));
    let (of_ada, of_cy) = (page.browser_of(&ada.token).await, page.browser_of(&cy.token).await);
    let _open = of_ada.events().await;
    let mut table = Table::new("what a role covers");
    let (value, ()) = tokio::join!(run(&daemon, desk, "fixture.echo(value='a')['value']"), async {
        let asked = question(&of_ada, |_| true).await;
        let shown = of_cy.events().await.next("approvals").await;
        table.row("cy does not see it", equal(shown["questions"].clone(), json!([])));
        let refused = answer(&of_cy, &asked, "approve", None).await;
        table.row("cy does not answer it", ensure(refused.contains("role `approve`"), refused));
        table.row("ada answers", equal(answer(&of_ada, &asked, "approve", None).await, "taken".into()));
    });
    table.row("the value", ensure(value != Value::Null, value));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_come_while_a_question_is_open_decide_who_answers_it() {
    if !can_change_account() {
        return;
    }
    let before = "[servers.fixture]\nask = [\"echo\"]\n";
    let service = Service::new(&[("desk", &[]), ("ada", &[]), ("cy", &[])], before, "");
    let daemon = service.daemon().await;
    let [desk, ada, cy] = ["desk", "ada", "cy"].map(|name| service.person(name));
    let mut owner = Approver::connected(&service.lockhouse).await;
    let mut table = Table::new("roles that come while a question is open");
    let (value, ()) = tokio::join!(run(&daemon, desk, "fixture.echo(value='a')['value']"), async {
        owner.next("ask").await;
        let roles = before.to_owned()
            + "[roles.desk]\nmembers = [\"desk\"]\nmay = [\"run\"]\n"
            + &format!("[roles.all]\nmembers = [\"user:{}\"]\nmay = [\"approve\"]\n", ada.account)
            + &format!("[roles.others]\nmembers = [\"user:{}\"]\nmay = [\"approve\"]\n", cy.account)
            + "[roles.others.servers.fixture]\nallow = [\"text\"]\n";
        service.lockhouse.file("config/lockhouse/policy.toml", format!("version = 1\n{roles}"));
        table.row("reload", equal(service.lockhouse.run(&["reload"]).status, Some(0)));
        let [mut of_ada, mut of_cy] =
            [ada, cy].map(|person| Approver::spawn(service.command(person, &["approvals", "--json"])));
        of_cy.next("watching").await;
        let asked = of_ada.next("ask").await;
        of_cy.answer(&asked, "approve", "once").await;
        let reason = of_cy.next("refused").await["refused"]["reason"].clone();
        let expected = "the roles of this person do not cover these calls";
        table.row("cy does not answer it", equal(reason, json!(expected)));
        of_ada.answer(&asked, "approve", "once").await;
        of_ada.next("taken").await;
    });
    table.row("the value", equal(value, json!("a")));
    table.finish();
}
