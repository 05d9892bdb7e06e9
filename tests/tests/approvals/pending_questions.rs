//! Tests of the time during which an approval is pending: the time limit of the execution is paused, and an unanswered
//! question ends with its execution or after a timeout.

use std::time::Duration;

use lockhouse_tests::{Approver, ClientUser, Session, Table, UserReply, ensure, wait_until};
use rmcp::model::CallToolResponse;
use rmcp::service::ClientLifecycleMode;
use serde_json::json;

use crate::approvals::{ONE, eras, lockhouse, outcomes, parameters, records, session};

#[tokio::test]
async fn the_execution_deadline_is_paused_while_an_approval_is_pending() {
    let lockhouse = lockhouse("[limits]\ntimeout_seconds = 2\n");
    let mut table = Table::new("an answer after three seconds in an execution with a limit of two");
    for (era, mode) in eras() {
        let says = UserReply::Delayed(Duration::from_secs(3), json!({}));
        let session = session(&lockhouse, &ClientUser::replying(says), mode).await;
        let answer = session.run_asking(ONE).await;
        table.row(era, ensure(answer["value"] == json!([3, 1]), answer));
    }
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let answer = session.run_asking("import time\ntime.sleep(9)").await;
    table.row("control", ensure(answer["status"] == "timeout", answer));
    table.finish();
}

#[tokio::test]
async fn an_unanswered_question_expires_and_a_late_answer_is_ignored() {
    let lockhouse = lockhouse("[approvals]\nwait_seconds = 0.5\n");
    let person = ClientUser::replying(UserReply::Delayed(Duration::from_secs(2), json!({})));
    let ai_client = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
    let answer = ai_client.run_asking(ONE).await;
    let reported = answer["value"][0][1].as_str().unwrap_or_default();
    assert!(reported.contains("nobody answered in time") && answer["value"][1] == 0, "{answer}");
    // The answer arrives after the question has expired, and the call is not made.
    let later = ai_client.run_code("python", "import time\ntime.sleep(2.5)\n1").await;
    assert_eq!(later["value"], 1, "{later}");
    assert_eq!(records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count(), 0);
    assert_eq!(outcomes(&lockhouse), ["asked through client", "timeout through client"]);
}

#[tokio::test]
async fn a_client_that_does_not_return_with_an_answer_leaves_no_pending_call() {
    let lockhouse = lockhouse("[approvals]\nwait_seconds = 0.5\n");
    let session = session(&lockhouse, &ClientUser::replying(UserReply::NoReply), Session::latest()).await;
    let first = session.peer().call_tool_once(parameters(ONE)).await.unwrap();
    let CallToolResponse::InputRequired(required) = first else { panic!("{first:?}") };
    wait_until("the call is given up", async || outcomes(&lockhouse).get(1).cloned()).await;
    let key = required.input_requests.unwrap().into_keys().next().unwrap();
    let mut late = parameters(ONE);
    late.request_state = required.request_state;
    late.input_responses = Some([(key, json!({"action": "accept"}))].into());
    let CallToolResponse::Complete(result) = session.peer().call_tool_once(late).await.unwrap() else {
        panic!("asked again");
    };
    let reported = result.structured_content.unwrap_or_default().to_string();
    assert!(
        result.is_error == Some(true) && reported.contains("no request waits for this answer"),
        "{reported}"
    );
    assert!(records(&lockhouse, "call").is_empty() && records(&lockhouse, "outcome").is_empty());
}

#[tokio::test]
async fn a_question_is_withdrawn_when_its_execution_ends_and_the_call_is_not_made() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    // The program ends while one of its threads waits for an approval.
    let code = "import threading, time\nfrom mcp_tools import fixture\n\
        threading.Thread(target=lambda: fixture.add(a=1, b=2), daemon=True).start()\ntime.sleep(2)\n1";
    let arguments = json!({"language": "python", "code": code});
    let running = async { lockhouse_tests::structured(session.call("run_code", arguments).await) };
    let (answer, question) = tokio::join!(running, approver.next("ask"));
    let gone = approver.next("gone").await;
    assert_eq!(gone["gone"], question["ask"]["id"], "{gone}");
    let add: Vec<_> =
        answer["calls"].as_array().unwrap().iter().filter(|call| call["tool"] == "add").collect();
    assert!(
        add.iter().all(|call| call["outcome"] == "approval_declined" && call["changes"] == false),
        "{answer}"
    );
    approver.answer(&question, "approve", "once").await;
    let refused = approver.next("refused").await;
    assert!(refused["refused"]["reason"].as_str().unwrap().contains("this question is closed"), "{refused}");
    assert_eq!(records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count(), 0);
}
