//! Tests of the requests of operators: what an operator's connection can do, and what that of an AI client can.

use std::path::Path;

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use super::hostile_peers::converse;
use super::raw_peer::{CONNECTION_GRANT, frame, frame_of_kind, greeting, head, setup};
use super::{add, lockhouse, pid_of, socket, the_engine};

/// Sends a greeting and a request, and returns everything that is received until the end.
fn ask(socket: &Path, hello: &Value, request: &Value, body: Option<&str>, expected: &str) -> String {
    let request = json!({"Request": [1, head(&json!(CONNECTION_GRANT)), request]}).to_string();
    let frames = match body {
        Some(body) => {
            [frame_of_kind(1, 1, request.as_bytes()), frame_of_kind(2, 1, body.as_bytes())].concat()
        }
        None => frame(1, &request),
    };
    converse(socket, &[greeting(&json!({"Hello": hello})), frames].concat(), expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_gets_what_its_roles_permit_and_a_client_nothing_of_it() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let clients = socket(&lockhouse);
    let pid = pid_of(&the_engine(&lockhouse));
    let operators = lockhouse.path(&format!("run/lockhouse/control-{pid}.sock"));
    let as_client = json!({"version": 3, "setup": setup(&clients)});
    let as_operator = json!({"version": 3});
    let code = json!({
        "language": "python", "code": "", "timeout": null, "servers": null, "session": null, "for_program": false,
    });
    let run = json!({"RunCode": code});
    let mut table = Table::new("requests of an operator and of a client");
    for (case, request, role, answer) in [
        ("the health", json!({"Operator": "health"}), "operate", r#"{"Operator":{"health":{"#),
        ("the runs", json!({"Operator": "list_runs"}), "operate", r#"{"Operator":{"runs":[]}}"#),
        (
            "the end of all runs",
            json!({"Operator": {"end_runs": "all"}}),
            "operate",
            r#"{"Operator":{"ended_runs":[]}}"#,
        ),
        ("the sessions", json!({"Operator": "list_sessions"}), "operate", r#"{"Operator":{"sessions":[]}}"#),
        (
            "the end of a session",
            json!({"Operator": {"end_sessions": {"named": "work"}}}),
            "operate",
            r#"{"Operator":{"ended_sessions":[]}}"#,
        ),
        ("a reload", json!({"Operator": "reload"}), "operate", r#"{"Operator":{"reloaded":{"in_force":true"#),
        ("the results", json!({"Operator": "list_results"}), "audit", r#"{"Operator":{"results":[]}}"#),
        ("a file", json!({"Operator": {"find_file": "x"}}), "audit", "there is no such file"),
        (
            "a part of a file",
            json!({"Operator": {"read_file": {"handle": "x", "offset": 0}}}),
            "audit",
            "there is no such file",
        ),
        ("the questions", json!({"WatchApprovals": "approver"}), "approve", r#"{"Approval":"watching"}"#),
        ("the metrics", json!("Metrics"), "operate", r#"{"Text":"#),
    ] {
        let refusal = format!(r#"{{"Refused":{{"MissingRole":"{role}"}}}}"#);
        let refused = ask(&clients, &as_client, &request, None, r#"{"Response":[1,"#);
        table.row(format!("{case}: a client"), ensure(refused.contains(&refusal), refused));
        let answered = ask(&operators, &as_operator, &request, None, answer);
        table.row(format!("{case}: an operator"), ensure(answered.contains(answer), answered));
    }
    let refusal = r#"{"Refused":{"MissingRole":"run"}}"#;
    for (case, request, body, answer) in [
        ("a program", &run, Some("40 + 2"), r#"{"Response":[1,{"Run":"#),
        ("the search", &json!("DescribeCatalogue"), None, r#"{"Response":[1,{"Text":"#),
    ] {
        let answered = ask(&clients, &as_client, request, body, answer);
        table.row(format!("{case}: control: a client"), ensure(answered.contains(answer), answered));
        let refused = ask(&operators, &as_operator, request, body, r#"{"Response":[1,"#);
        table.row(format!("{case}: an operator"), ensure(refused.contains(refusal), refused));
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_of_the_control_socket_that_violates_the_protocol_harms_nobody_else() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let pid = pid_of(&the_engine(&lockhouse));
    let operators = lockhouse.path(&format!("run/lockhouse/control-{pid}.sock"));
    let hello = greeting(&json!({"Hello": {"version": 3}}));
    let health = json!({"Request": [1, head(&json!(CONNECTION_GRANT)), {"Operator": "health"}]}).to_string();
    let after_hello = |bytes: &[u8]| [&hello[..], bytes].concat();
    let long = frame(1, &" ".repeat(100_000));
    let mut table = Table::new("peers of the control socket");
    for (case, bytes, expected) in [
        ("control: a request", after_hello(&frame(1, &health)), r#""Operator":{"health""#),
        ("another version", greeting(&json!({"Hello": {"version": 99, "oldest": 99}})), "Unsupported"),
        ("a huge greeting", vec![0, 0xff, 0xff, 0xff], ""),
        ("no greeting", greeting(&json!("Hello")), ""),
        ("an incomplete frame", after_hello(&[0, 0, 1, 0, 2, b'x']), "Welcome"),
        ("a message that is too long", after_hello(&[&long[..], &frame(2, &health)].concat()), "Welcome"),
        (
            "an unknown request",
            after_hello(&frame(1, &health.replace("health", "surprise"))),
            "newer version",
        ),
        ("an answer to no question", after_hello(&frame(9, r#"{"Input":[9,"Cancel"]}"#)), "Welcome"),
    ] {
        let received = converse(&operators, &bytes, expected);
        let is_right = if expected.is_empty() { received.is_empty() } else { received.contains(expected) };
        let is_ended = !case.contains("too long") || !received.contains("Operator");
        table.row(case, ensure(is_right && is_ended, received));
    }
    table.row("the client is still served", equal(add(&client).await, json!(42)));
    table.row("and operators", equal(pid_of(&the_engine(&lockhouse)), pid));
    table.finish();
}
