//! Tests of notices of pending questions: webhooks and commands.

use std::time::Duration;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use data_encoding::BASE64;
use lockhouse_tests::{
    Approver, ClientUser, HttpAnswer, HttpRequest, HttpServer, Lockhouse, Session, Table, ensure, equal,
    wait_until,
};
use serde_json::{Value, json};

use crate::approvals::{ONE, POLICY, outcomes, session};

const KEY: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Returns a Lockhouse whose configuration ends with `rest`, in which `SECRET` is a secret of webhooks.
fn lockhouse(rest: &str) -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let secret = lockhouse.file("secret", format!("whsec_{KEY}\n"));
    let secret = format!("secret = '${{file:{}}}'", secret.display());
    lockhouse.config(&format!("[approvals]\n{}\n", rest.replace("SECRET", &secret)))
}

/// A person who cannot answer in the AI client.
async fn without_forms(lockhouse: &Lockhouse) -> Session {
    session(lockhouse, &ClientUser::default(), Session::latest()).await
}

/// Returns the signature that a request must have.
fn signature(request: &HttpRequest) -> String {
    let signed = format!(
        "{}.{}.{}",
        request.headers["webhook-id"], request.headers["webhook-timestamp"], request.body
    );
    let key = hmac::Key::new(HMAC_SHA256, &BASE64.decode(KEY.as_bytes()).unwrap());
    format!("v1,{}", BASE64.encode(hmac::sign(&key, signed.as_bytes()).as_ref()))
}

async fn first_request(server: &HttpServer) -> HttpRequest {
    wait_until("a notice", async || server.requests().first().cloned()).await
}

#[tokio::test]
async fn a_person_who_gets_a_notice_approves_a_call_that_waits() {
    let receiver = HttpServer::start(|_| HttpAnswer::status(204));
    let lockhouse = lockhouse(&format!(
        "link = 'https://lockhouse.example.com/page'\nnotify = [{{ url = '{}', SECRET }}]",
        receiver.url("/hook")
    ));
    let session = without_forms(&lockhouse).await;
    let mut table = Table::new("a notice");
    let (answer, (request, ask)) = tokio::join!(session.run_asking(ONE), async {
        let request = first_request(&receiver).await;
        let mut approver = Approver::connected(&lockhouse).await;
        let question = approver.next("ask").await;
        approver.answer(&question, "approve", "once").await;
        approver.next("taken").await;
        (request, question["ask"].clone())
    });
    table.row("the call", equal(answer["value"].clone(), json!([3, 1])));
    table.row("its request", equal(format!("{} {}", request.method, request.path), "POST /hook".into()));
    table.row("its type", equal(request.headers["content-type"].clone(), "application/json".into()));
    table.row("its signature", equal(request.headers["webhook-signature"].clone(), signature(&request)));
    let mut message = request.message();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let data = &mut message["data"];
    let expires = data["expires_at"].take();
    table.row("it has an end", ensure(expires.as_str().is_some_and(|time| time.ends_with('Z')), expires));
    let link = "https://lockhouse.example.com/page";
    let expected = json!({
        "text": format!("Code of lockhouse-tests asks to call fixture.add on {host}. Answer within 300 s: {link}"),
        "host": host, "question": ask["id"], "digest": ask["digest"], "execution": ask["execution"],
        "client": "lockhouse-tests", "calls": [{"server": "fixture", "kind": "tool", "name": "add"}],
        "calls_left_out": 0, "expires_at": null, "link": link,
    });
    table.row("what it says, without arguments", equal(data.clone(), expected));
    table.row("its kind", equal(message["type"].clone(), json!("approval.requested")));
    let expected = ["asked through local", "once through local"].map(str::to_owned);
    table.row("recorded", equal(outcomes(&lockhouse), expected.to_vec()));
    table.row("one request", equal(receiver.requests().len(), 1));
    table.finish();
}

#[tokio::test]
async fn receivers_that_fail_delay_nothing_and_decide_nothing() {
    let slow = HttpServer::start(|_| HttpAnswer::NoAnswer);
    let broken = HttpServer::start(|_| HttpAnswer::status(500));
    let target = HttpServer::start(|_| HttpAnswer::status(200));
    let place = target.url("/stolen");
    let moving = HttpServer::start(move |_| HttpAnswer::status(307).with("Location", &place));
    let lying = HttpServer::start(|request| {
        let digest = request.message()["data"]["digest"].clone();
        HttpAnswer::json(
            200,
            &json!({"decision": "approve", "digest": digest, "answer": {"scope": "always"}}),
        )
    });
    let hooks: Vec<String> =
        [slow.url("/"), broken.url("/"), moving.url("/"), lying.url("/"), "http://127.0.0.1:1/".into()]
            .map(|url| format!("{{ url = '{url}', SECRET }}"))
            .into();
    let lockhouse = lockhouse(&format!(
        "wait_seconds = 5\nnotify = [{}, {{ command = ['/nonexistent'] }}, {{ command = ['/bin/false'] }}]",
        hooks.join(", ")
    ));
    let session = without_forms(&lockhouse).await;
    let mut table = Table::new("receivers that fail");
    let answer = session.run_asking(ONE).await;
    let refused = json!(["approval_declined", 0]);
    table.row("nobody answers", equal(json!([answer["value"][0][0], answer["value"][1]]), refused));
    let requests = broken.requests();
    let mut ids: Vec<&String> = requests.iter().map(|request| &request.headers["webhook-id"]).collect();
    ids.dedup();
    table.row("a failed notice is sent again", ensure(requests.len() >= 2, requests.len()));
    table.row("with the same id", equal(ids.len(), 1));
    let signed = requests.iter().all(|request| request.headers["webhook-signature"] == signature(request));
    table.row("signed again", ensure(signed, &requests));
    table.row("one that is taken is not", equal(lying.requests().len(), 1));
    table.row(
        "control: the others got it",
        ensure(slow.requests().len() == 1 && moving.requests().len() >= 2, "none"),
    );
    table.row("no redirect is followed", equal(target.requests().len(), 0));
    let mut approver = Approver::connected(&lockhouse).await;
    let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
        let question = approver.next("ask").await;
        approver.answer(&question, "approve", "once").await;
    });
    table.row("a person's answer", equal(answer["value"].clone(), json!([3, 1])));
    let expected = ["asked", "timeout", "asked", "once"].map(|what| format!("{what} through local"));
    table.row("recorded", equal(outcomes(&lockhouse), expected.to_vec()));
    let log = session.close().await.stderr;
    let warnings = log.lines().filter(|line| line.contains("was not delivered to 127.0.0.1")).count();
    table.row("the log names them", ensure(warnings >= 3, &log));
    table.row("and no secret", ensure(!log.contains(KEY), &log));
    table.finish();
}

#[tokio::test]
async fn a_second_group_is_told_later_and_all_are_told_again() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let (first, second) = (lockhouse.path("first"), lockhouse.path("second"));
    let to = |file: &std::path::Path, rest: &str| {
        let script = format!("cat >> {0}; echo >> {0}", file.display());
        format!("{{ command = ['/bin/sh', '-c', '{script}']{rest} }}")
    };
    let config = format!(
        "[approvals]\nnotify = [{}, {}]\n",
        to(&first, ", remind_seconds = 10"),
        to(&second, ", after_seconds = 3")
    );
    let lockhouse = lockhouse.config(&config);
    let messages = |file: &std::path::Path| -> Vec<Value> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let session = without_forms(&lockhouse).await;
    let mut table = Table::new("commands");
    let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
        wait_until("the first group is told", async || (messages(&first).len() == 1).then_some(())).await;
        table.row("the second group is told later", equal(messages(&second).len(), 0));
        wait_until("the second group is told", async || (messages(&second).len() == 1).then_some(())).await;
        wait_until("a reminder", async || (messages(&first).len() == 2).then_some(())).await;
        let mut approver = Approver::connected(&lockhouse).await;
        let question = approver.next("ask").await;
        approver.answer(&question, "decline", "once").await;
        approver.next("taken").await;
    });
    table.row("the answer", equal(answer["value"][0][0].clone(), json!("approval_declined")));
    let [first, second] = [messages(&first), messages(&second)];
    let kinds: Vec<&Value> = first.iter().map(|message| &message["type"]).collect();
    table.row("kinds", equal(json!(kinds), json!(["approval.requested", "approval.reminder"])));
    table.row("both are told the same", equal(first[0]["data"].clone(), second[0]["data"].clone()));
    table.row("one notice", equal(second.len(), 1));
    table.finish();
}

#[tokio::test]
async fn a_question_that_was_answered_is_told_to_nobody() {
    let receiver = HttpServer::start(|_| HttpAnswer::status(200));
    let lockhouse =
        lockhouse(&format!("notify = [{{ url = '{}', SECRET, after_seconds = 2 }}]", receiver.url("/")));
    let session = without_forms(&lockhouse).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let mut table = Table::new("a question with an early answer");
    for (name, waits, expected) in [("at once", false, 0), ("control: late", true, 1)] {
        let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
            let question = approver.next("ask").await;
            if waits {
                first_request(&receiver).await;
            }
            approver.answer(&question, "approve", "once").await;
        });
        table.row(name, ensure(answer["value"][0] == 3, answer));
        // The notice would have been sent after two seconds.
        tokio::time::sleep(Duration::from_secs(if waits { 0 } else { 3 })).await;
        table.row(format!("{name}: notices"), equal(receiver.requests().len(), expected));
    }
    table.finish();
}
