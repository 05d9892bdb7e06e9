//! The person behind the AI client, in both eras.

use lockhouse_tests::{Person, Says, Table, ensure, equal};
use rmcp::model::CallToolResponse;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::{ONE, eras, lockhouse, outcomes, parameters, records, session};

#[tokio::test]
async fn only_an_answer_that_was_offered_approves_and_the_failure_says_what_came_instead() {
    let approved = [
        ("bare", Says::Bare),
        ("an empty form", Says::Yes(json!({}))),
        ("null", Says::Yes(Value::Null)),
        ("once", Says::Yes(json!({"scope": "once"}))),
        ("execution", Says::Yes(json!({"scope": "execution"}))),
    ];
    let refused = [
        ("decline", Says::No, "declined it"),
        ("cancel", Says::Stop, "closed the question"),
        ("always, which is not offered", Says::Yes(json!({"scope": "always"})), "no answer to the question"),
        ("an unknown scope", Says::Yes(json!({"scope": "everything"})), "no answer to the question"),
        ("a scope of another type", Says::Yes(json!({"scope": 1})), "no answer to the question"),
        ("another field", Says::Yes(json!({"approve": true})), "no answer to the question"),
        ("one field more", Says::Yes(json!({"scope": "once", "x": 1})), "no answer to the question"),
        ("no form", Says::Yes(json!("once")), "no answer to the question"),
        ("megabytes", Says::Yes(json!({"scope": "x".repeat(1 << 20)})), "no answer to the question"),
    ];
    let mut table = Table::new("what a person says");
    for (era, mode) in eras() {
        // After each refusal they approve a call: people who refuse one after the other are not asked any more.
        let then = refused.iter().flat_map(|(_, says, _)| [says, &Says::Bare]);
        let all = approved.iter().map(|(_, says)| says).chain(then);
        let person = Person::who_says(Says::InTurn(all.cloned().collect()));
        let lockhouse = lockhouse("");
        // A list in a table that is inline has no place for a rule beside it.
        let policy = "version = 1\nservers = { fixture = { allow = [\"count\"], ask = [\"add\"] } }\n";
        let lockhouse = lockhouse.policy(policy);
        let session = session(&lockhouse, &person, mode).await;
        let mut reached = 0;
        for (name, _) in &approved {
            let answer = session.run_asking(ONE).await;
            reached += 1;
            table.row(
                format!("{era}: {name}"),
                equal(answer["value"].clone(), json!([3, reached])).map_err(|e| format!("{e} {answer}")),
            );
        }
        for (name, _, words) in &refused {
            let answer = session.run_asking(ONE).await;
            let [code, told] = [0, 1].map(|part| answer["value"][0][part].as_str().unwrap_or_default());
            let holds = code == "approval_declined" && told.contains(words) && told.contains("fixture.add");
            let record = &answer["calls"][0];
            let said = record["outcome"] == "approval_declined" && record["changes"] == false;
            table.row(
                format!("{era}: {name}"),
                ensure(holds && said && answer["value"][1] == reached, &answer),
            );
            reached += 1;
            let answer = session.run_asking(ONE).await;
            let then = format!("{era}: {name}: and then a yes");
            table.row(then, equal(answer["value"].clone(), json!([3, reached])));
        }
        let made = approved.len() + refused.len();
        table.row(format!("{era}: each was asked"), equal(person.asked().len(), made + refused.len()));
        let (calls, asked) = (records(&lockhouse, "call"), outcomes(&lockhouse));
        let of_add: Vec<&Value> = calls.iter().filter(|call| call["tool"] == "add").collect();
        table.row(format!("{era}: a record of each call"), equal(of_add.len(), made));
        let once = of_add.iter().filter(|call| call["approval"] == "once").count();
        table.row(format!("{era}: once"), equal(once, made - 1));
        let through = asked.iter().all(|outcome| outcome.ends_with("through client"));
        let count = asked.len() == 2 * (made + refused.len());
        table.row(format!("{era}: asked and answered"), ensure(through && count, &asked));
    }
    table.finish();
}

#[tokio::test]
async fn the_form_has_one_field_and_the_words_say_what_would_happen() {
    for (_, mode) in eras() {
        let person = Person::who_says(Says::No);
        let lockhouse = lockhouse("");
        let session = session(&lockhouse, &person, mode).await;
        session.run_asking("from mcp_tools import fixture\n\nfixture.delete_everything()").await;
        let asked = &person.asked()[0];
        let properties = asked["requestedSchema"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["scope"], "{asked}");
        let scopes = properties["scope"]["enum"].as_array().unwrap();
        assert_eq!(scopes[..2], [json!("once"), json!("execution")]);
        assert_eq!(asked["requestedSchema"].get("required"), None);
        let message = asked["message"].as_str().unwrap();
        let policy = lockhouse.path("config/lockhouse/policy.toml");
        for words in [
            "Running code asks to call fixture.delete_everything without arguments.\n",
            "The server says: it may destroy or overwrite things.\n",
            "The program says: line 3. There its code reads:\n    | fixture.delete_everything()\n",
            &format!("    | {}:5\n", policy.display()),
            "Hash: ",
        ] {
            assert!(message.contains(words), "{words:?} is not in {message}");
        }
    }
}

#[tokio::test]
async fn an_answer_for_the_execution_counts_for_its_tool_until_its_end() {
    let code = "\
from mcp_tools import fixture, ToolError
r = [fixture.add(a=i, b=1)['sum'] for i in range(4)]
try: fixture.echo(value=1)
except ToolError as e: r.append(e.code)
r
";
    for (_, mode) in eras() {
        let says = [Says::Yes(json!({"scope": "execution"})), Says::No];
        let person = Person::who_says(Says::InTurn([says.clone(), says].concat()));
        let lockhouse = lockhouse("");
        let session = session(&lockhouse, &person, mode).await;
        for asked in [2, 4] {
            let answer = session.run_asking(code).await;
            assert_eq!(answer["value"], json!([1, 2, 3, 4, "approval_declined"]), "{answer}");
            // Once for each tool, and again for the next execution.
            assert_eq!(person.asked().len(), asked);
        }
        let approvals: Vec<Value> =
            records(&lockhouse, "call").iter().map(|call| call["approval"].clone()).collect();
        assert_eq!(approvals, vec![json!("execution"); 8]);
    }
}

#[tokio::test]
async fn an_answer_belongs_to_its_own_execution_and_counts_once() {
    let lockhouse = lockhouse("");
    let session =
        session(&lockhouse, &Person::who_says(Says::Nothing), lockhouse_tests::Session::latest()).await;
    let call = async |parameters| session.peer().call_tool_once(parameters).await.unwrap();
    let CallToolResponse::InputRequired(required) = call(parameters(ONE)).await else {
        panic!("no question")
    };
    let key = required.input_requests.unwrap().into_keys().next().unwrap();
    let responses = [(key, json!({"action": "accept"}))];
    let mut table = Table::new("answers that come back");
    // For code with other arguments, and for a question that was never asked.
    let mut other = parameters(&ONE.replace("a=1", "a=1000"));
    other.request_state.clone_from(&required.request_state);
    other.input_responses = Some(responses.clone().into());
    let mut forged = parameters(ONE);
    forged.request_state = Some("0".repeat(64));
    forged.input_responses = Some(responses.clone().into());
    for (name, parameters) in [("for other arguments", other), ("with a handle of nobody's", forged)] {
        let CallToolResponse::Complete(refused) = call(parameters).await else { panic!("{name}") };
        table.row(name, ensure(refused.is_error == Some(true), refused));
    }
    let mut again = parameters(ONE);
    again.request_state.clone_from(&required.request_state);
    again.input_responses = Some(responses.into());
    let CallToolResponse::Complete(result) = call(again.clone()).await else { panic!("asked again") };
    let value = result.structured_content.unwrap_or_default()["value"].clone();
    table.row("control: its own", equal(value, json!([3, 1])));
    let CallToolResponse::Complete(twice) = call(again).await else { panic!("asked again") };
    table.row("twice", ensure(twice.is_error == Some(true), twice));
    let calls = records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count();
    table.row("one call", equal(calls, 1));
    table.finish();
}

#[tokio::test]
async fn what_comes_back_and_is_no_answer_declines() {
    let lockhouse = lockhouse("");
    let session =
        session(&lockhouse, &Person::who_says(Says::Nothing), lockhouse_tests::Session::latest()).await;
    let mut table = Table::new("what comes back with the handle");
    let asked = async || {
        let CallToolResponse::InputRequired(required) =
            session.peer().call_tool_once(parameters(ONE)).await.unwrap()
        else {
            panic!("no question")
        };
        (required.input_requests.unwrap().into_keys().next().unwrap(), required.request_state)
    };
    let mut made = 0;
    for (name, response) in [
        ("nothing", None),
        ("no action", Some(json!({"content": {"scope": "once"}}))),
        ("an unknown action", Some(json!({"action": "approve"}))),
        ("a list", Some(json!([1, 2]))),
        ("text", Some(json!("accept"))),
    ] {
        let (key, state) = asked().await;
        let mut again = parameters(ONE);
        again.request_state = state;
        again.input_responses = response.map(|response| [(key, response)].into());
        match session.peer().call_tool_once(again).await {
            Ok(CallToolResponse::Complete(result)) => {
                let value = result.structured_content.unwrap_or_default()["value"].clone();
                table.row(name, ensure(value[0][0] == "approval_declined" && value[1] == made, value));
            }
            // What is no request is refused as a whole.
            Err(error) => table.row(name, ensure(error.to_string().contains("invalid"), error)),
            other => table.row(name, Err(format!("{other:?}"))),
        }
        // A yes in between, so that the next one is asked.
        let (key, state) = asked().await;
        let mut control = parameters(ONE);
        control.request_state = state;
        control.input_responses = Some([(key, json!({"action": "accept"}))].into());
        let CallToolResponse::Complete(result) = session.peer().call_tool_once(control).await.unwrap() else {
            panic!("asked again")
        };
        made += 1;
        let value = result.structured_content.unwrap_or_default()["value"].clone();
        table.row(format!("{name}: control"), equal(value, json!([3, made])));
    }
    table.finish();
}

#[tokio::test]
async fn a_client_that_says_it_can_and_cannot_leaves_the_question_to_others() {
    let lockhouse = lockhouse("");
    let person = Person::who_says(Says::Unknown);
    let session = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
    let answer = session.run_asking(ONE).await;
    let told = answer["value"][0][1].as_str().unwrap_or_default();
    assert!(told.contains("nobody to ask (this AI client cannot ask one)"), "{answer}");
}
