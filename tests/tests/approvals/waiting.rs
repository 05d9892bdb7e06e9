//! Time while a person is asked, and what becomes of a call whose execution ends meanwhile.

use std::time::Duration;

use lockhouse_tests::{Approver, Person, Says, Session, Table, ensure, wait_until};
use rmcp::model::CallToolResponse;
use rmcp::service::ClientLifecycleMode;
use serde_json::json;

use crate::{ONE, eras, lockhouse, outcomes, parameters, records, session};

#[tokio::test]
async fn the_clock_of_an_execution_stands_still_while_a_person_is_asked() {
    let lockhouse = lockhouse("[limits]\ntimeout_seconds = 2\n");
    let mut table = Table::new("a person who takes three seconds, of an execution that has two");
    for (era, mode) in eras() {
        let says = Says::Slowly(Duration::from_secs(3), json!({}));
        let session = session(&lockhouse, &Person::who_says(says), mode).await;
        let answer = session.run_asking(ONE).await;
        table.row(era, ensure(answer["value"] == json!([3, 1]), answer));
    }
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let answer = session.run_asking("import time\ntime.sleep(9)").await;
    table.row("control", ensure(answer["status"] == "timeout", answer));
    table.finish();
}

#[tokio::test]
async fn silence_declines_and_an_answer_after_it_counts_for_nothing() {
    let lockhouse = lockhouse("[approvals]\nwait_seconds = 0.5\n");
    let person = Person::who_says(Says::Slowly(Duration::from_secs(2), json!({})));
    let asked = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
    let answer = asked.run_asking(ONE).await;
    let told = answer["value"][0][1].as_str().unwrap_or_default();
    assert!(told.contains("nobody answered in time") && answer["value"][1] == 0, "{answer}");
    // The answer comes, and the call is not made.
    let later = asked.run_code("python", "import time\ntime.sleep(2.5)\n1").await;
    assert_eq!(later["value"], 1, "{later}");
    assert_eq!(records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count(), 0);
    assert_eq!(outcomes(&lockhouse), ["asked through client", "timeout through client"]);
}

#[tokio::test]
async fn a_client_that_does_not_come_back_leaves_no_call() {
    let lockhouse = lockhouse("[approvals]\nwait_seconds = 0.5\n");
    let session = session(&lockhouse, &Person::who_says(Says::Nothing), Session::latest()).await;
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
    let told = result.structured_content.unwrap_or_default().to_string();
    assert!(result.is_error == Some(true) && told.contains("nothing waits for this answer"), "{told}");
    assert!(records(&lockhouse, "call").is_empty() && records(&lockhouse, "outcome").is_empty());
}

#[tokio::test]
async fn a_question_goes_with_its_execution_and_its_call_was_not_made() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    // The program ends while a thread of it waits for the person.
    let code = "import threading, time\nfrom mcp_tools import fixture\n\
        threading.Thread(target=lambda: fixture.add(a=1, b=2), daemon=True).start()\ntime.sleep(2)\n1";
    let arguments = json!({"language": "python", "code": code});
    let running = async { lockhouse_tests::structured(session.call("run_code", arguments).await) };
    let (answer, asked) = tokio::join!(running, approver.next("ask"));
    let gone = approver.next("gone").await;
    assert_eq!(gone["gone"], asked["ask"]["id"], "{gone}");
    let add: Vec<_> =
        answer["calls"].as_array().unwrap().iter().filter(|call| call["tool"] == "add").collect();
    assert!(
        add.iter().all(|call| call["outcome"] == "approval_declined" && call["changes"] == false),
        "{answer}"
    );
    approver.answer(&asked, "approve", "once").await;
    let refused = approver.next("refused").await;
    assert!(refused["refused"]["reason"].as_str().unwrap().contains("it is over"), "{refused}");
    assert_eq!(records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count(), 0);
}
