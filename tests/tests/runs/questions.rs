//! What a run asks a person after its request was answered.

use lockhouse_tests::{Lockhouse, Person, Says, Session, Table, ensure, equal, structured, wait_until};
use rmcp::model::CallToolResponse;
use serde_json::{Value, json};

use crate::{complete, eras, outcome, parameters};

const CONFIG: &str = "[runs]\nwait_seconds = 0.2\n";
/// Asks after its request was answered.
const ASKS: &str =
    "from mcp_tools import fixture\nfixture.slow(ms=700)\nfixture.ask(what='form')['said']['name']";

fn lockhouse() -> Lockhouse {
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    Lockhouse::new().server("fixture", &["--asking"]).policy(policy).config(CONFIG)
}

async fn left(session: &Session) -> Value {
    let answer = session.run_code("python", ASKS).await;
    assert_eq!(answer["status"], "running", "{answer}");
    answer["handle"].clone()
}

#[tokio::test]
async fn a_question_is_put_when_the_client_comes_for_the_answer() {
    let mut table = Table::new("questions of runs that go on");
    for (era, mode) in eras() {
        for (says, status, value) in
            [(Says::Yes(json!({"name": "Ada"})), "ok", json!("Ada")), (Says::No, "error", Value::Null)]
        {
            let lockhouse = lockhouse();
            let person = Person::who_says(says.clone());
            let session =
                Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode.clone()).await;
            let handle = left(&session).await;
            wait_until("it asks", async || {
                lockhouse.audit().iter().any(|record| record["tool"] == "ask").then_some(())
            })
            .await;
            let before = person.asked().len();
            let arguments = json!({"handle": handle, "wait_s": 20});
            let answer = structured(session.call_asking("get_result", arguments).await);
            let name = format!("{era}: {says:?}");
            table.row(format!("{name}: control: nobody was asked before"), equal(before, 0));
            table.row(format!("{name}: asked once"), equal(person.asked().len(), 1));
            table.row(format!("{name}: status"), ensure(answer["status"] == status, &answer));
            table.row(format!("{name}: value"), ensure(answer["value"] == value, &answer));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_client_that_comes_back_without_an_answer_is_asked_again_and_the_run_goes_on() {
    let lockhouse = lockhouse();
    let person = Person::who_says(Says::Nothing);
    let session = Session::connect_as(person, lockhouse.command(&["serve"]), Session::latest()).await;
    let handle = left(&session).await;
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
