//! Tests of calls that require approval when there is no approver, or when the configuration permits none of the
//! approvers to answer.

use std::time::{Duration, Instant};

use lockhouse_tests::{Approver, ClientUser, Lockhouse, Table, UserReply, ensure};
use serde_json::json;

use crate::approvals::{ONE, eras, lockhouse, outcomes, session};

fn declined(answer: &serde_json::Value) -> bool {
    let [code, message] = [0, 1].map(|part| answer["value"][0][part].as_str().unwrap_or_default());
    code == "approval_declined"
        && message.contains("there is nobody to ask")
        && message.contains("`lockhouse approvals`")
        && message.contains("move it to `allow`")
        && answer["value"][1] == 0
}

#[tokio::test]
async fn without_an_approver_a_call_is_declined_at_once_with_instructions() {
    let lockhouse = lockhouse("");
    let mut table = Table::new("nobody to ask");
    let begun = Instant::now();
    table.row("lockhouse run", {
        let answer = lockhouse.answer("python", ONE);
        ensure(declined(&answer), answer)
    });
    for (era, mode) in eras() {
        for (name, abilities) in
            [("no forms", json!({})), ("pages alone", json!({"elicitation": {"url": {}}}))]
        {
            let person = ClientUser::new(abilities, UserReply::AcceptEmpty);
            let session = session(&lockhouse, &person, mode.clone()).await;
            let answer = session.run_asking(ONE).await;
            let holds = declined(&answer) && person.received_requests().is_empty();
            table.row(format!("{era}: {name}"), ensure(holds, answer));
        }
    }
    table.row("at once", ensure(begun.elapsed() < Duration::from_secs(60), begun.elapsed()));
    let recorded = outcomes(&lockhouse);
    table.row("recorded", ensure(recorded == vec!["nobody to ask"; 5], recorded));
    table.finish();
}

#[tokio::test]
async fn with_local_approvals_only_the_ai_client_is_never_asked() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    for (_, mode) in eras() {
        let person = ClientUser::replying(UserReply::Accept(json!({"scope": "execution"})));
        let session = session(&lockhouse, &person, mode).await;
        let answer = session.run_asking(ONE).await;
        assert!(declined(&answer), "{answer}");
        let mut approver = Approver::connected(&lockhouse).await;
        let (answer, ()) = tokio::join!(session.run_asking(ONE), async {
            let question = approver.next("ask").await;
            approver.answer(&question, "approve", "once").await;
        });
        assert_eq!(answer["value"], json!([3, 1]), "{answer}");
        assert!(person.received_requests().is_empty());
    }
}

#[test]
fn an_invalid_approvals_configuration_is_rejected() {
    let mut table = Table::new("[approvals]");
    for (text, words) in [
        ("through = \"any\"\nwait_seconds = 60", None),
        ("through = \"client\"", Some("local")),
        ("wait_seconds = 0", Some("0.01 to 3600")),
        ("wait_seconds = 1e9", Some("0.01 to 3600")),
        ("wait = 3", Some("wait_seconds")),
    ] {
        let lockhouse = Lockhouse::new().config(&format!("[approvals]\n{text}\n"));
        let finished = lockhouse.run(&["server", "list"]);
        let holds = match words {
            None => finished.status == Some(0),
            Some(words) => finished.status == Some(2) && finished.stderr.contains(words),
        };
        table.row(text, ensure(holds, finished));
    }
    table.finish();
}
