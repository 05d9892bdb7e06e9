//! Tests of questions that a run asks the user after its `run_code` request has already returned a handle.

use lockhouse_tests::{
    ClientUser, Lockhouse, Session, Table, UserReply, ensure, equal, structured, wait_until,
};
use rmcp::model::CallToolResponse;
use serde_json::{Value, json};

use crate::runs::{complete, eras, outcome, parameters};

const CONFIG: &str = "[runs]\nwait_seconds = 0.2\n";
/// A Python program that waits for 700 ms, so that its request returns a handle first, and then calls a tool that asks
/// the user a question.
const ASKS: &str =
    "from mcp_tools import fixture\nfixture.slow(ms=700)\nfixture.ask(what='form')['said']['name']";

fn lockhouse() -> Lockhouse {
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    Lockhouse::new().server("fixture", &["--asking"]).policy(policy).config(CONFIG)
}

async fn start_in_background(session: &Session) -> Value {
    let answer = session.run_code("python", ASKS).await;
    assert_eq!(answer["status"], "running", "{answer}");
    answer["handle"].clone()
}

#[tokio::test]
async fn a_pending_question_is_asked_when_the_client_fetches_the_result() {
    let mut table = Table::new("questions of background runs");
    for (era, mode) in eras() {
        for (says, status, value) in [
            (UserReply::Accept(json!({"name": "Ada"})), "ok", json!("Ada")),
            (UserReply::Decline, "error", Value::Null),
        ] {
            let lockhouse = lockhouse();
            let person = ClientUser::replying(says.clone());
            let session =
                Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode.clone()).await;
            let handle = start_in_background(&session).await;
            wait_until("it asks", async || {
                lockhouse.audit().iter().any(|record| record["tool"] == "ask").then_some(())
            })
            .await;
            let before = person.received_requests().len();
            let arguments = json!({"handle": handle, "wait_s": 20});
            let answer = structured(session.call_asking("get_result", arguments).await);
            let name = format!("{era}: {says:?}");
            table.row(format!("{name}: control: nobody was asked before"), equal(before, 0));
            table.row(format!("{name}: asked once"), equal(person.received_requests().len(), 1));
            table.row(format!("{name}: status"), ensure(answer["status"] == status, &answer));
            table.row(format!("{name}: value"), ensure(answer["value"] == value, &answer));
        }
    }
    table.finish();
}

#[tokio::test]
async fn an_unanswered_question_is_asked_again_and_the_run_continues() {
    let lockhouse = lockhouse();
    let person = ClientUser::replying(UserReply::NoReply);
    let session = Session::connect_as(person, lockhouse.command(&["serve"]), Session::latest()).await;
    let handle = start_in_background(&session).await;
    let call = || parameters("get_result", &json!({"handle": handle, "wait_s": 20}));
    let mut states = Vec::new();
    for _ in 0..2 {
        let CallToolResponse::InputRequired(required) = session.peer().call_tool_once(call()).await.unwrap()
        else {
            panic!("no question");
        };
        let requests = required.input_requests.unwrap();
        states.push((required.request_state.unwrap(), requests.into_keys().next().unwrap()));
    }
    assert_eq!(states[0].1, states[1].1, "it is the same question");
    let (state, key) = states.pop().unwrap();
    let mut again = call();
    again.request_state = Some(state);
    again.input_responses = Some([(key, json!({"action": "accept", "content": {"name": "Ada"}}))].into());
    let answer = complete(session.peer().call_tool_once(again).await.unwrap());
    assert_eq!(answer["value"], "Ada", "{answer}");
    assert_eq!(outcome(&session, &handle).await, answer);
}
