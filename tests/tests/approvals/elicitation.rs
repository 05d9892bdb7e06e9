//! Tests of approval by the user of the AI client, whom Lockhouse asks by an MCP elicitation, with both MCP handshakes:
//! `initialize` and `server/discover`.

use lockhouse_tests::{ClientUser, Table, UserReply, ensure, equal};
use rmcp::model::CallToolResponse;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::approvals::{ONE, eras, lockhouse, outcomes, parameters, records, session};

#[tokio::test]
async fn only_an_offered_answer_approves_and_the_error_names_the_actual_answer() {
    let approved = [
        ("bare", UserReply::AcceptEmpty),
        ("an empty form", UserReply::Accept(json!({}))),
        ("null", UserReply::Accept(Value::Null)),
        ("once", UserReply::Accept(json!({"scope": "once"}))),
        ("execution", UserReply::Accept(json!({"scope": "execution"}))),
    ];
    let refused = [
        ("decline", UserReply::Decline, "declined at once"),
        ("cancel", UserReply::Cancel, "declined at once"),
        ("always, which is not offered", UserReply::Accept(json!({"scope": "always"})), "is not valid"),
        ("an unknown scope", UserReply::Accept(json!({"scope": "everything"})), "is not valid"),
        ("a scope of another type", UserReply::Accept(json!({"scope": 1})), "is not valid"),
        ("another field", UserReply::Accept(json!({"approve": true})), "is not valid"),
        ("an additional field", UserReply::Accept(json!({"scope": "once", "x": 1})), "is not valid"),
        ("no form", UserReply::Accept(json!("once")), "is not valid"),
        ("megabytes", UserReply::Accept(json!({"scope": "x".repeat(1 << 20)})), "is not valid"),
    ];
    let mut table = Table::new("answers to the approval form");
    for (era, mode) in eras() {
        // The user approves a call after each refusal, because repeated refusals stop further questions.
        let then = refused.iter().flat_map(|(_, says, _)| [says, &UserReply::AcceptEmpty]);
        let all = approved.iter().map(|(_, says)| says).chain(then);
        let person = ClientUser::replying(UserReply::Sequence(all.cloned().collect()));
        let lockhouse = lockhouse("");
        // An inline table has no place for an additional rule.
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
            let [code, message] = [0, 1].map(|part| answer["value"][0][part].as_str().unwrap_or_default());
            let holds =
                code == "approval_declined" && message.contains(words) && message.contains("fixture.add");
            let record = &answer["calls"][0];
            let answered = record["outcome"] == "approval_declined" && record["changes"] == false;
            table.row(
                format!("{era}: {name}"),
                ensure(holds && answered && answer["value"][1] == reached, &answer),
            );
            reached += 1;
            let answer = session.run_asking(ONE).await;
            let then = format!("{era}: {name}: and then a yes");
            table.row(then, equal(answer["value"].clone(), json!([3, reached])));
        }
        let made = approved.len() + refused.len();
        table.row(
            format!("{era}: each call was asked about"),
            equal(person.received_requests().len(), made + refused.len()),
        );
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
async fn the_approval_form_has_one_field_and_describes_the_effect() {
    for (_, mode) in eras() {
        let person = ClientUser::replying(UserReply::Decline);
        let lockhouse = lockhouse("");
        let session = session(&lockhouse, &person, mode).await;
        session.run_asking("from mcp_tools import fixture\n\nfixture.delete_everything()").await;
        let prompts = &person.received_requests()[0];
        let properties = prompts["requestedSchema"]["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["scope"], "{prompts}");
        let scopes = properties["scope"]["enum"].as_array().unwrap();
        assert_eq!(scopes[..2], [json!("once"), json!("execution")]);
        assert_eq!(prompts["requestedSchema"].get("required"), None);
        let message = prompts["message"].as_str().unwrap();
        let policy = lockhouse.path("config/lockhouse/policy.toml");
        for words in [
            "Running code asks to call fixture.delete_everything without arguments.\n",
            "The server says: it may destroy or overwrite things.\n",
            "The program says: line 3. There its code, whose comments may be wrong, reads:\n    | fixture.delete_everything()\n",
            &format!("    | {}:5\n", policy.display()),
            "Hash: ",
        ] {
            assert!(message.contains(words), "{words:?} is not in {message}");
        }
    }
}

#[tokio::test]
async fn an_answer_for_the_execution_covers_its_tool_until_the_execution_ends() {
    let code = "\
from mcp_tools import fixture, ToolError
r = [fixture.add(a=i, b=1)['sum'] for i in range(4)]
try: fixture.echo(value=1)
except ToolError as e: r.append(e.code)
r
";
    for (_, mode) in eras() {
        let says = [UserReply::Accept(json!({"scope": "execution"})), UserReply::Decline];
        let person = ClientUser::replying(UserReply::Sequence([says.clone(), says].concat()));
        let lockhouse = lockhouse("");
        let session = session(&lockhouse, &person, mode).await;
        for asked in [2, 4] {
            let answer = session.run_asking(code).await;
            assert_eq!(answer["value"], json!([1, 2, 3, 4, "approval_declined"]), "{answer}");
            // One question for each tool, and again in the next execution.
            assert_eq!(person.received_requests().len(), asked);
        }
        let approvals: Vec<Value> =
            records(&lockhouse, "call").iter().map(|call| call["approval"].clone()).collect();
        assert_eq!(approvals, vec![json!("execution"); 8]);
    }
}

#[tokio::test]
async fn an_answer_is_valid_once_and_only_for_its_own_execution() {
    let lockhouse = lockhouse("");
    let session =
        session(&lockhouse, &ClientUser::replying(UserReply::NoReply), lockhouse_tests::Session::latest())
            .await;
    let call = async |parameters| session.peer().call_tool_once(parameters).await.unwrap();
    let CallToolResponse::InputRequired(required) = call(parameters(ONE)).await else {
        panic!("no question")
    };
    let key = required.input_requests.unwrap().into_keys().next().unwrap();
    let responses = [(key, json!({"action": "accept"}))];
    let mut table = Table::new("answers with a request state");
    // The answer is sent for code with other arguments, and for a question that was never asked.
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
async fn an_invalid_answer_declines_the_call() {
    let lockhouse = lockhouse("");
    let session =
        session(&lockhouse, &ClientUser::replying(UserReply::NoReply), lockhouse_tests::Session::latest())
            .await;
    let mut table = Table::new("answers with a forged or reused state");
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
            // An invalid request fails as a whole.
            Err(error) => table.row(name, ensure(error.to_string().contains("invalid"), error)),
            other => table.row(name, Err(format!("{other:?}"))),
        }
        // An approval in between resets the count of refusals, so that the next question is asked.
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
async fn a_client_whose_announced_elicitation_fails_leaves_the_question_to_local_approvers() {
    let lockhouse = lockhouse("");
    let person = ClientUser::replying(UserReply::MethodNotFound);
    let session = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
    let answer = session.run_asking(ONE).await;
    let reported = answer["value"][0][1].as_str().unwrap_or_default();
    assert!(reported.contains("nobody to ask (this AI client cannot ask its user a question)"), "{answer}");
}
