//! Tests fronts and engines of different versions with each other. The test itself is the end of the other version, on a
//! socket. `tests/skew/run.sh` does the same with two builds.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use super::raw_peer::{CONNECTION_GRANT, RawPeer, frame, frame_of_kind, greeting, head, request, setup};
use super::{add, lockhouse, socket, the_engine};

/// A request to run a program, which follows as a part of its own.
fn run_code(member: Option<&str>) -> Value {
    let mut run = json!({
        "language": "python", "code": "", "timeout": null, "servers": null, "session": null, "for_program": false,
        "claims": {},
    });
    if let Some(member) = member {
        run[member] = json!({"unknown": [1]});
    }
    json!({"RunCode": run})
}

/// Tests a front of the next version with this engine.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_serves_a_front_of_the_next_version() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let socket = socket(&lockhouse);
    let mut table = Table::new("a newer front with this engine");
    let hello = json!({"Hello": {"version": 4, "oldest": 3, "setup": setup(&socket), "roles": ["run"]}});
    let (mut front, reply) = RawPeer::greet(&socket, &hello);
    table.row("the version of the connection", equal(reply["Welcome"]["version"].clone(), json!(3)));
    front.send(&request(1, &run_code(None), Some("40 + 2")));
    let known = front.response(1);
    table.row("control: a request of this version", ensure(is_ok(&known), &known));

    let mut head = head(&json!(CONNECTION_GRANT));
    (head["priority"], head["caller"]["device"]) = (json!(5), json!({"name": "x"}));
    let message = json!({"Request": [2, head, run_code(Some("future"))]}).to_string();
    front.send(&[frame_of_kind(1, 2, message.as_bytes()), frame(2, "40 + 2")].concat());
    let answer = front.response(2);
    table.row("unknown members of a request", ensure(is_ok(&answer), &answer));
    front.send(&request(3, &json!({"Surprise": {"a": 1}}), None));
    let refused = front.response(3);
    table.row("an unknown request", ensure(says_newer(&refused["Invalid"]), &refused));

    front.send(&request(4, &run_code(None), Some("import time\ntime.sleep(50)")));
    wait_until("the program runs", async || (the_engine(&lockhouse)["running"] == 1).then_some(())).await;
    front.send(&frame(4, &json!({"Input": [4, {"Surprise": 1}]}).to_string()));
    let refused = front.response(4);
    table.row("an unknown input", ensure(says_newer(&refused["Invalid"]), &refused));
    wait_until("the run of the refused input ends", async || {
        (the_engine(&lockhouse)["running"] == 0).then_some(())
    })
    .await;
    front.send(&[frame(0, r#"{"Surprise":{"a":1}}"#), frame(0, r#""Surprise""#)].concat());
    front.send(&request(5, &json!("Health"), None));
    let health = front.response(5);
    table.row("after unknown messages", ensure(health["Json"].is_object(), &health));

    let (_, reply) =
        RawPeer::greet(&socket, &json!({"Hello": {"version": 5, "oldest": 4, "setup": setup(&socket)}}));
    table.row("a front that is too new", equal(reply, json!({"Unsupported": {"version": 3}})));
    let (_, reply) = RawPeer::greet(&socket, &json!({"Hello": {"version": 2, "setup": setup(&socket)}}));
    table.row("a front of the previous version", equal(reply, json!({"Unsupported": {"version": 3}})));
    table.row("the client beside them", equal(add(&client).await, json!(42)));
    table.finish();
}

/// Whether the response to a run of `40 + 2` is a success.
fn is_ok(response: &Value) -> bool {
    response["Run"]["answer"]["error"].is_null() && response["Run"]["answer"]["value"].is_object()
}

fn says_newer(reason: &Value) -> bool {
    reason.as_str().is_some_and(|reason| reason.contains("newer version"))
}

/// Listens at a socket, and serves each connection with the next function.
fn listen(socket: &Path, connections: Vec<fn(RawPeer)>) -> JoinHandle<()> {
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for serve in connections {
            serve(RawPeer::new(listener.accept().unwrap().0));
        }
    })
}

fn welcome(engine: &mut RawPeer) {
    let hello = engine.read_greeting().unwrap();
    assert!(hello["Hello"]["version"] == 3 && hello["Hello"]["setup"].is_string(), "{hello}");
    let incarnation = "0199aaaa-0000-7000-8000-000000000000";
    engine.send(&greeting(&json!({"Welcome": {"version": 3, "incarnation": incarnation, "features": [1]}})));
    let settings = json!({
        "has_files": false, "has_direct": false, "code_servers": ["git"], "missing_protections": [],
        "tools": {"health": true, "prefix": "", "hidden": [], "colour": "red"},
        "wait": {"secs": 45, "nanos": 0}, "task_lifetime": {"secs": 60, "nanos": 0}, "future": {"a": [1]},
    });
    for message in [json!({"Settings": settings}), json!({"Surprise": 1}), json!({"Lifecycle": "Serving"})] {
        engine.send(&frame(0, &message.to_string()));
    }
}

/// Returns the responses to the questions of a front before it runs programs. `None` if the request is another one.
fn respond_at_start(id: u64, request: &Value) -> Option<Vec<u8>> {
    let response = if request == "DescribeCatalogue" {
        json!({"Text": "tools"})
    } else if request["Authenticate"] == "Connection" {
        json!({"Access": {"Ok": {
            "grant": CONNECTION_GRANT, "owner": 7, "name": null, "client": null, "only": null, "roles": ["run"],
            "expires_in": null, "future": 1,
        }}})
    } else {
        return None;
    };
    Some(frame(id, &json!({"Response": [id, response]}).to_string()))
}

/// Returns the frames of an answer to a run whose value is 42, with unknown members.
fn answer_42(id: u64) -> Vec<u8> {
    let text = json!({"text": "", "cut": null});
    let answer = json!({
        "execution": 42, "status": "Ok", "value": {"json": null, "cut": null}, "no_value": null, "stdout": text,
        "stderr": text, "error": null, "session": null, "usage": null, "sandbox": null, "cut_hint": null,
        "files": [], "future": 1,
    });
    let run = json!({
        "execution": 42, "cancelled": false, "begun": "then", "ended": "now", "answer": answer, "files": [],
        "future": 1,
    });
    let run = json!({"Response": [id, {"Run": run}]}).to_string();
    let parts = [run.as_bytes(), b"42", b""].map(|part| frame_of_kind(1, id, part)).concat();
    [parts, frame(id, "")].concat()
}

/// Serves a front as an engine of the next version does.
fn serve_as_newer_engine(mut engine: RawPeer) {
    welcome(&mut engine);
    while let Ok((id, parts)) = engine.read() {
        let message: Value = serde_json::from_slice(&parts[0]).unwrap();
        let request = &message["Request"][2];
        if let Some(response) = respond_at_start(id, request) {
            engine.send(&response);
        } else if request["RunCode"].is_object() {
            engine.send(&frame(id, &json!({"Begun": id}).to_string()));
            engine.send(&frame(id, &json!({"Event": [id, {"Surprise": 1}]}).to_string()));
            engine.send(&match parts[1].as_slice() {
                b"known" => answer_42(id),
                _ => frame(id, &json!({"Response": [id, {"Surprise": {"a": 1}}]}).to_string()),
            });
        }
    }
}

/// Tests this front with an engine of the next version.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_is_served_by_an_engine_of_the_next_version() {
    let lockhouse = lockhouse();
    let engine = listen(&lockhouse.path("run/lockhouse/engine.sock"), vec![serve_as_newer_engine]);
    let client = lockhouse.serve().await;
    let mut table = Table::new("this front with a newer engine");
    let value = async || client.run_code("python", "known").await["value"].clone();
    table.row("control: a known response", equal(value().await, json!(42)));
    let error = client.run_code("python", "surprise").await["error"].to_string();
    table.row("an unknown response", ensure(error.contains("newer version"), &error));
    table.row("the connection stays", equal(value().await, json!(42)));
    table.row("the tools", equal(client.tools().await.len(), 4));
    table.finish();
    client.close().await;
    engine.join().unwrap();
}

fn refuse_as_older_engine(mut engine: RawPeer) {
    engine.read_greeting().unwrap();
    engine.send(&greeting(&json!({"Unsupported": {"version": 2}})));
}

/// Serves a front until it sends a program, and then closes the connection.
fn serve_briefly(mut engine: RawPeer) {
    welcome(&mut engine);
    while let Ok((id, parts)) = engine.read() {
        let message: Value = serde_json::from_slice(&parts[0]).unwrap();
        match respond_at_start(id, &message["Request"][2]) {
            Some(response) => engine.send(&response),
            None if message["Request"][2]["RunCode"].is_object() => return,
            None => {}
        }
    }
}

/// Tests this front with an engine of the previous version.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_says_what_to_do_about_an_engine_of_the_previous_version() {
    let lockhouse = lockhouse();
    let first = lockhouse.serve().await;
    assert_eq!(add(&first).await, json!(42));
    let (socket, pid) = (socket(&lockhouse), super::pid_of(&the_engine(&lockhouse)));
    first.close().await;
    wait_until("the engine ends", async || (!lockhouse_tests::is_alive(pid)).then_some(())).await;
    let advice = "restart this MCP server in your AI client";
    let mut table = Table::new("this front with an older engine");

    let engine = listen(&socket, vec![refuse_as_older_engine]);
    let own = connect(&lockhouse).await;
    table.row("at the start: its own engine", equal(add(&own).await, json!(42)));
    let log = own.wait_for_log("an engine of its own").await;
    table.row("and says why", ensure(log.contains("version 2") && log.contains(advice), log));
    own.close().await;
    engine.join().unwrap();

    std::fs::remove_file(&socket).unwrap();
    let engine = listen(&socket, vec![serve_briefly, refuse_as_older_engine, refuse_as_older_engine]);
    let later = connect(&lockhouse).await;
    let error = later.run_code("python", "1").await["error"].to_string();
    table.row("later: the error of a request", ensure(error.contains(advice), &error));
    table.finish();
    drop(engine);
}

async fn connect(lockhouse: &Lockhouse) -> Session {
    Session::connect(lockhouse.command(&["serve"]), Session::latest()).await
}
