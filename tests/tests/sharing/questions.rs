//! Tests that a question of a shared upstream server reaches the AI client whose call it is about.

use futures_util::future::join_all;
use lockhouse_tests::{ClientUser, Lockhouse, Session, Table, UserReply, ensure, equal};
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use super::{SHARED, the_engine};

const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[servers.older]\nallow = [\"*\"]\n";
const CLIENTS: usize = 4;
const ROUNDS: usize = 3;

fn ask(server: &str) -> String {
    format!("from mcp_tools import call_tool\ncall_tool('{server}.ask', {{'what': 'form'}})['said']['name']")
}

/// Tests both kinds of servers: one that asks in its result, and one of an older protocol version, which asks by a request
/// that does not say for which call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_reaches_the_client_whose_call_asks_it() {
    let lockhouse = Lockhouse::new().server("fixture", &["--asking"]);
    let lockhouse = lockhouse.server("older", &["--asking", "--legacy-only"]).policy(POLICY).config(SHARED);
    let person =
        |number: usize| ClientUser::replying(UserReply::Accept(json!({"name": format!("person {number}")})));
    let people: Vec<ClientUser> = (0..CLIENTS).map(person).collect();
    let connect = |person: &ClientUser| {
        Session::connect_as(person.clone(), lockhouse.command(&["serve"]), ClientLifecycleMode::Initialize)
    };
    let clients = join_all(people.iter().map(connect)).await;
    let mut table = Table::new("questions of shared servers");
    table.row("one engine", equal(the_engine(&lockhouse)["clients"].as_array().map(Vec::len), Some(CLIENTS)));
    for server in ["fixture", "older"] {
        // A server of the older version is known to ask from its first question on.
        assert_eq!(clients[0].run_asking(&ask(server)).await["value"], "person 0", "{server}");
        for round in 0..ROUNDS {
            let code = ask(server);
            let answers = join_all(clients.iter().map(|client| client.run_asking(&code))).await;
            for (number, answer) in answers.iter().enumerate() {
                let expected: Value = format!("person {number}").into();
                table.row(
                    format!("{server}, round {round}, client {number}"),
                    ensure(answer["value"] == expected, answer),
                );
            }
        }
    }
    for (number, person) in people.iter().enumerate() {
        let expected = 2 * ROUNDS + if number == 0 { 2 } else { 0 };
        table.row(format!("questions to person {number}"), equal(person.received_requests().len(), expected));
    }
    table.finish();
}
