//! Tests of MCP elicitation: Lockhouse forwards the questions of upstream servers to AI clients that have the
//! elicitation capability, and declines them for other AI clients.

use std::time::{Duration, Instant};

use lockhouse_tests::{ClientUser, Lockhouse, Session, Table, UserReply, ensure, wait_until};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[servers.older]\nallow = [\"*\"]\n";
const ASK: &str = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('SERVER.ask', {'what': 'WHAT'})\n\
    except ToolError as e: r = [e.code, str(e)]\nr";

/// Returns a Lockhouse test fixture with this configuration and two upstream servers: `fixture`, which supports the
/// newest MCP version, and `older`, which supports only earlier versions.
fn lockhouse(config: &str) -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &["--asking"]);
    lockhouse.server("older", &["--asking", "--legacy-only"]).policy(POLICY).config(config)
}

fn eras() -> [(&'static str, ClientLifecycleMode); 2] {
    [("initialize", ClientLifecycleMode::Initialize), ("discover", Session::latest())]
}

fn ask(server: &str, what: &str) -> String {
    ASK.replace("SERVER", server).replace("WHAT", what)
}

async fn session(lockhouse: &Lockhouse, person: &ClientUser, mode: ClientLifecycleMode) -> Session {
    Session::connect_as(person.clone(), lockhouse.command(&["serve"]), mode).await
}

#[tokio::test]
async fn elicitation_works_between_clients_and_servers_of_every_era() {
    let lockhouse = lockhouse("");
    let mut table = Table::new("answers of the approver");
    for (era, mode) in eras() {
        for server in ["fixture", "older"] {
            for (says, expected) in [
                (UserReply::Accept(json!({"name": "Ada"})), json!({"said": {"name": "Ada"}})),
                (UserReply::Decline, json!(["tool_failed", "the person said decline"])),
                (UserReply::Cancel, json!(["tool_failed", "the person said cancel"])),
            ] {
                let name = format!("{era}, {server}: {says:?}");
                let person = ClientUser::replying(says);
                let session = session(&lockhouse, &person, mode.clone()).await;
                let answer = session.run_asking(&ask(server, "form")).await;
                let asked = person.received_requests();
                let words = format!("Server {server} asks: Your\u{fffd}[31m name?");
                let shown = asked.len() == 1 && asked[0]["message"] == words.as_str();
                table.row(name, ensure(answer["value"] == expected && shown, format!("{answer} {asked:?}")));
            }
        }
    }
    table.finish();
    let outcomes: Vec<Value> =
        lockhouse.audit().into_iter().filter(|record| record["event"] == "question").collect();
    assert_eq!(outcomes.len(), 12, "{outcomes:?}");
    assert!(outcomes.iter().all(|record| record["execution"].is_string() && record["server"].is_string()));
    let text = serde_json::to_string(&lockhouse.audit()).unwrap();
    assert!(text.contains("\"accept\"") && text.contains("\"decline\"") && !text.contains("Ada"), "{text}");
}

#[tokio::test]
async fn without_the_elicitation_capability_the_call_fails_at_once() {
    let lockhouse = lockhouse("");
    let form_only =
        || ClientUser::new(json!({"elicitation": {"form": {}}}), UserReply::Accept(json!({"name": "Ada"})));
    let url_only = || ClientUser::new(json!({"elicitation": {"url": {}}}), UserReply::Accept(json!({})));
    let rows: [(&str, ClientUser, &str); 3] = [
        ("nobody", ClientUser::default(), "form"),
        ("forms alone", form_only(), "url"),
        ("URLs alone", url_only(), "form"),
    ];
    let mut table = Table::new("clients without the elicitation capability");
    for (era, mode) in eras() {
        for server in ["fixture", "older"] {
            for (name, person, what) in &rows {
                let session = session(&lockhouse, person, mode.clone()).await;
                let begun = Instant::now();
                let answer = session.run_asking(&ask(server, what)).await;
                let told = answer["value"][1].as_str().unwrap_or_default();
                let clear = told.contains("asks for input from a person, and this AI client cannot ask one");
                let quick = begun.elapsed() < Duration::from_secs(10);
                table.row(
                    format!("{era}, {server}: {name}"),
                    ensure(clear && quick && person.received_requests().is_empty(), answer),
                );
            }
        }
        // This client declares the elicitation capability and fails every request.
        let person = ClientUser::replying(UserReply::MethodNotFound);
        let session = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
        let answer = session.run_asking(&ask("older", "form")).await;
        let told = answer["value"][1].as_str().unwrap_or_default();
        table.row(format!("{era}: method not found"), ensure(told.contains("cannot ask"), answer));
    }
    let control = session(&lockhouse, &form_only(), Session::latest()).await;
    let answer = control.run_asking(&ask("older", "form")).await;
    table.row("control", ensure(answer["value"]["said"]["name"] == "Ada", answer));
    table.finish();
    // On the command line nobody can answer either.
    let answer = lockhouse.answer("python", &ask("older", "form"));
    assert!(answer["value"][1].as_str().is_some_and(|told| told.contains("cannot ask")), "{answer}");
}

#[tokio::test]
async fn url_elicitation_shows_the_host_and_refuses_script_urls() {
    let lockhouse = lockhouse("");
    for (_, mode) in eras() {
        for server in ["fixture", "older"] {
            let person = ClientUser::replying(UserReply::Accept(json!({})));
            let session = session(&lockhouse, &person, mode.clone()).await;
            let answer = session.run_asking(&ask(server, "url")).await;
            assert!(answer["value"].get("said").is_some(), "{answer}");
            let asked = person.received_requests();
            let words = format!("Server {server} asks you to open a page of login.example.com: Sign in");
            assert_eq!(
                (asked[0]["message"].as_str(), asked[0]["url"].as_str()),
                (Some(&*words), Some("https://login.example.com/in"))
            );
            for what in ["script", "huge", "roots"] {
                let answer = session.run_asking(&ask(server, what)).await;
                assert_eq!(answer["value"][0], "tool_failed", "{what}: {answer}");
            }
            assert_eq!(person.received_requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn waiting_for_an_answer_does_not_count_towards_the_timeout() {
    let config = "[limits]\ntimeout_seconds = 2\n";
    let lockhouse = lockhouse(config);
    let mut table = Table::new("an answer after three seconds in an execution with a timeout of two");
    for (era, mode) in eras() {
        for server in ["fixture", "older"] {
            let says = UserReply::Delayed(Duration::from_secs(3), json!({"name": "Ada"}));
            let session = session(&lockhouse, &ClientUser::replying(says), mode.clone()).await;
            let code = format!(
                "from mcp_tools import call_tool\ncall_tool('{server}.ask', {{'what': 'form'}}, timeout=1)"
            );
            let answer = session.run_asking(&code).await;
            table.row(format!("{era}, {server}"), ensure(answer["value"]["said"]["name"] == "Ada", answer));
        }
    }
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let answer = session.run_asking("import time\ntime.sleep(9)").await;
    table.row("control", ensure(answer["status"] == "timeout", answer));
    table.finish();
}

#[tokio::test]
async fn an_unanswered_question_times_out() {
    let lockhouse = lockhouse("[limits]\nquestion_seconds = 0.5\n");
    for server in ["fixture", "older"] {
        let session =
            session(&lockhouse, &ClientUser::replying(UserReply::NoReply), ClientLifecycleMode::Initialize)
                .await;
        let answer = session.run_asking(&ask(server, "form")).await;
        assert_eq!(answer["value"], json!(["tool_failed", "the person said cancel"]), "{answer}");
    }
}

fn parameters(code: &str) -> CallToolRequestParams {
    let arguments = json!({"language": "python", "code": code}).as_object().cloned().unwrap();
    CallToolRequestParams::new("run_code").with_arguments(arguments)
}

#[tokio::test]
async fn a_client_that_never_returns_with_the_answer_ends_its_execution() {
    let lockhouse = lockhouse("[limits]\nquestion_seconds = 0.5\n");
    let session = session(&lockhouse, &ClientUser::replying(UserReply::NoReply), Session::latest()).await;
    let code = ask("fixture", "form");
    let first = session.peer().call_tool_once(parameters(&code)).await.unwrap();
    let CallToolResponse::InputRequired(required) = first else { panic!("{first:?}") };
    let handle = required.request_state.expect("a state");
    assert!(handle.len() >= 64, "{handle}");
    wait_until("the call is given up", async || {
        lockhouse.audit().iter().find(|record| record["outcome"] == "unknown").cloned()
    })
    .await;
    // An answer that arrives too late, and one with a state that Lockhouse never issued.
    for state in [handle, "0".repeat(64)] {
        let mut again = parameters(&code);
        again.request_state = Some(state);
        let CallToolResponse::Complete(result) = session.peer().call_tool_once(again).await.unwrap() else {
            panic!("asked again");
        };
        let told = result.structured_content.unwrap_or_default().to_string();
        assert!(result.is_error == Some(true) && told.contains("no request waits for this answer"), "{told}");
    }
    assert_eq!(session.run_code("python", "1 + 1").await["value"], 2);
}

#[tokio::test]
async fn an_answer_is_valid_once_and_for_its_own_call_only() {
    let lockhouse = lockhouse("");
    let session = session(&lockhouse, &ClientUser::replying(UserReply::NoReply), Session::latest()).await;
    let code = ask("fixture", "form");
    let CallToolResponse::InputRequired(required) =
        session.peer().call_tool_once(parameters(&code)).await.unwrap()
    else {
        panic!("no question");
    };
    let key = required.input_requests.unwrap().into_keys().next().unwrap();
    let responses = [(key, json!({"action": "accept", "content": {"name": "Ada"}}))];
    let mut other = parameters("1");
    other.request_state.clone_from(&required.request_state);
    let CallToolResponse::Complete(refused) = session.peer().call_tool_once(other).await.unwrap() else {
        panic!()
    };
    assert!(refused.structured_content.unwrap_or_default().to_string().contains("the same arguments"));
    let mut again = parameters(&code);
    again.request_state.clone_from(&required.request_state);
    again.input_responses = Some(responses.into());
    let CallToolResponse::Complete(result) = session.peer().call_tool_once(again.clone()).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(result.structured_content.unwrap_or_default()["value"]["said"]["name"], "Ada");
    let CallToolResponse::Complete(twice) = session.peer().call_tool_once(again).await.unwrap() else {
        panic!()
    };
    assert_eq!(twice.is_error, Some(true));
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_question_leaves_nothing_behind() {
    let lockhouse = lockhouse("");
    for (_, mode) in eras() {
        let person = ClientUser::replying(UserReply::NoReply);
        let session = session(&lockhouse, &person, mode).await;
        let peer = session.peer().clone();
        let call = parameters(&ask("older", "form"));
        let calling = tokio::spawn(async move { peer.call_tool_once(call).await });
        let calls = async || lockhouse.audit().iter().find(|record| record["event"] == "call").cloned();
        wait_until("a call", calls).await;
        let begun = Instant::now();
        let ended = session.close().await;
        assert!(ended.status == Some(0) && begun.elapsed() < Duration::from_secs(10), "{ended:?}");
        let _ = calling.await;
    }
}

#[tokio::test]
async fn hostile_questions_are_declined_or_bounded() {
    let lockhouse = lockhouse("");
    let person = ClientUser::replying(UserReply::Accept(json!({"name": "Ada"})));
    let session = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
    // A thousand questions in sequence, from one call.
    let answer = session.run_asking(&ask("older", "thousand")).await;
    assert_eq!(answer["value"], json!({"accepted": 20}), "{answer}");
    assert_eq!(person.received_requests().len(), 20);
    // Endless questions through the results of the newer protocol era.
    let answer = session.run_asking(&ask("fixture", "again")).await;
    assert!(
        answer["value"][1].as_str().is_some_and(|told| told.contains("asked for input 10 times")),
        "{answer}"
    );
    // Questions while no call is in flight.
    let before = person.received_requests().len();
    session.run_asking(&ask("older", "later")).await;
    let code = "import time\nfrom mcp_tools import call_tool\nfor _ in range(50):\n    time.sleep(0.1)\n    \
        c = call_tool('older.count')\n    if any(k.startswith('later') for k in c): break\n[k for k in c if k.startswith('later')]";
    let answer = session.run_asking(code).await;
    assert_eq!(answer["value"], json!(["later: decline"]), "{answer}");
    assert_eq!(person.received_requests().len(), before);
}

#[tokio::test]
async fn a_question_that_could_belong_to_two_executions_is_declined() {
    let lockhouse = lockhouse("");
    let person = ClientUser::replying(UserReply::Accept(json!({"name": "Ada"})));
    let session = session(&lockhouse, &person, ClientLifecycleMode::Initialize).await;
    let slow = session.start_code("python", "from mcp_tools import older\nolder.slow(ms=3000)");
    let slow_call = async || lockhouse.audit().iter().find(|record| record["tool"] == "slow").cloned();
    wait_until("the slow call", slow_call).await;
    let answer = session.run_asking(&ask("older", "form")).await;
    assert_eq!(answer["value"], json!(["tool_failed", "the person said decline"]), "{answer}");
    assert!(person.received_requests().is_empty());
    slow.await.unwrap().unwrap();
    let control = session.run_asking(&ask("older", "form")).await;
    assert_eq!(control["value"]["said"]["name"], "Ada", "{control}");
}
