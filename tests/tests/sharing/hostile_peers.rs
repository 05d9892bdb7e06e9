//! Tests of peers at the socket of a shared engine that are no proper clients: other users, and processes that violate the
//! protocol.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lockhouse_tests::{CommandOutput, Table, ensure, equal, is_alive, wait_until};
use serde_json::{Value, json};

use super::raw_peer::{CONNECTION_GRANT, frame, greeting, head, setup};
use super::{add, lockhouse, pid_of, socket, the_engine};

/// The user and group id of the user `nobody`.
const NOBODY: &str = "65534";
/// A Python program that connects to a socket, sends a frame, and prints what it receives.
const HELLO: &str = "
import json, socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
s.connect(sys.argv[1])
hello = json.dumps({'Hello': {'version': 3, 'setup': sys.argv[2]}}).encode()
try:
    s.sendall(struct.pack('>I', len(hello)) + hello)
    print(s.recv(100))
except (BrokenPipeError, ConnectionResetError):
    print(b'')
";

#[tokio::test(flavor = "multi_thread")]
async fn another_user_cannot_reach_the_engine_even_if_file_modes_permit_it() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let socket = socket(&lockhouse);
    let hello = |words: &[&str]| {
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).args(["/usr/bin/python3", "-c", HELLO]).arg(&socket).arg(setup(&socket));
        CommandOutput::run(&mut command, b"")
    };
    let mut table = Table::new("who connects to a shared engine");
    let own = hello(&["env"]);
    table.row("control: the same user", ensure(own.stdout.contains("Welcome"), own));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    table.row("the mode of the directory", equal(mode(socket.parent().unwrap()), 0o700));
    table.row("the mode of the key", equal(mode(&lockhouse.path("state/lockhouse/sharing.key")), 0o600));
    if nix::unistd::geteuid().is_root() {
        let nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        let kept_out = hello(&nobody);
        let is_kept_out = kept_out.stderr.contains("PermissionError");
        table.row("the directory mode excludes other users", ensure(is_kept_out, kept_out));
        let open =
            |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        socket.ancestors().take_while(|path| !path.ends_with("tmp")).for_each(open);
        let refused = hello(&nobody);
        table.row("peer credentials reject the other user", equal(refused.stdout.trim(), "b''"));
    }
    table.row("the client is still served", equal(add(&client).await, json!(42)));
    table.finish();
}

/// Connects, sends bytes, waits for a text (unless it is empty), closes the sending direction, and returns what is received
/// until the end.
pub(super) fn converse(socket: &Path, bytes: &[u8], expected: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The engine may close the connection while this is written.
    let _ = stream.write_all(bytes);
    let mut received = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&received).contains(expected) {
        match stream.read(&mut part) {
            Ok(count @ 1..) => received.extend_from_slice(&part[..count]),
            _ => break,
        }
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut received);
    String::from_utf8_lossy(&received).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_violates_the_protocol_harms_nobody_else() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let (socket, pid) = (socket(&lockhouse), pid_of(&the_engine(&lockhouse)));
    let hello = greeting(&json!({"Hello": {"version": 3, "setup": setup(&socket)}}));
    let after_hello = |bytes: &[u8]| [&hello[..], bytes].concat();
    let head = head(&json!(CONNECTION_GRANT));
    let health = frame(1, &json!({"Request": [1, head, "Health"]}).to_string());
    let counters = json!({
        "responses": {"65535": u64::MAX}, "refusals": {"rate": u64::MAX}, "authentication_failures": u64::MAX,
        "opened_connections": u64::MAX, "open_connections": u64::MAX,
    });
    let reports = [
        json!({"Counters": counters}),
        json!({"InFlight": {"requests": u64::MAX}}),
        json!({"InFlight": {"requests": 0}}),
        json!({"BeginSpan": [1, {"tool": "x".repeat(10_000), "context": null}]}),
        json!({"EndSpan": [2, "Ok"]}),
        json!("Listening"),
    ];
    let frames = |messages: &[Value]| -> Vec<u8> {
        messages.iter().flat_map(|message| frame(0, &message.to_string())).collect()
    };
    let reports = after_hello(&frames(&reports));
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let deep = frame(5, &format!(r#"{{"Request":[5,{head},{{"Call":{deep}}}]}}"#));
    let mut table = Table::new("peers of a shared engine");
    for (case, bytes, expected) in [
        ("control: a request", after_hello(&health), "lockhouse-tests"),
        ("control: reports and a request", [&reports, &health[..]].concat(), "lockhouse-tests"),
        ("nothing", Vec::new(), ""),
        ("no frame", b"GET / HTTP/1.1\r\n\r\n".to_vec(), ""),
        ("a huge length", vec![0xff; 64], ""),
        ("another first message", health.clone(), ""),
        ("another setup", greeting(&json!({"Hello": {"version": 3, "setup": "0".repeat(32)}})), "OtherSetup"),
        ("no setup", greeting(&json!({"Hello": {"version": 3, "setup": null}})), "OtherSetup"),
        (
            "another version",
            greeting(&json!({"Hello": {"version": 99, "setup": setup(&socket)}})),
            "Unsupported",
        ),
        ("an incomplete frame", after_hello(&[0, 0, 1, 0, 2, b'x']), "Welcome"),
        ("a frame that is too long", after_hello(&[0xff; 13]), "Welcome"),
        (
            "an unknown request",
            after_hello(&frame(6, &json!({"Request": [6, head, "Surprise"]}).to_string())),
            "newer version",
        ),
        ("an unknown message", after_hello(&frame(0, r#"{"Surprise":1}"#)), "Welcome"),
        ("a request that is nested too deeply", after_hello(&deep), "nested too deeply"),
        ("an input for no request", after_hello(&frame(9, r#"{"Input":[9,"Cancel"]}"#)), "Welcome"),
    ] {
        let received = converse(&socket, &bytes, expected);
        let is_right = if expected.is_empty() { received.is_empty() } else { received.contains(expected) };
        table.row(case, ensure(is_right, received));
    }
    table.row("the client is still served", equal(add(&client).await, json!(42)));
    wait_until("only the client is connected", async || {
        let engine = the_engine(&lockhouse);
        (engine["clients"].as_array().map(Vec::len) == Some(1) && pid_of(&engine) == pid).then_some(())
    })
    .await;
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_gets_only_what_the_engine_granted_on_its_connection() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    let socket = socket(&lockhouse);
    let hello = greeting(&json!({"Hello": {"version": 3, "setup": setup(&socket)}}));
    let ask = |grant: &Value, request: &Value| {
        let request = frame(1, &json!({"Request": [1, head(grant), request]}).to_string());
        converse(&socket, &[&hello[..], &request].concat(), r#"{"Response":[1,"#)
    };
    let (own, none) = (json!(CONNECTION_GRANT), Value::Null);
    let invented = json!("01932c07-209c-7401-b8a2-5c5b2a8e0a11");
    let credential = |credential: Value| json!({"Authenticate": credential});
    let mut table = Table::new("requests of a peer of a shared engine");
    for (case, grant, request, expected) in [
        ("control: the grant of the connection", &own, json!("Health"), r#"{"Json":{"#),
        ("an invented grant", &invented, json!("Health"), r#"{"Refused":"EndedGrant"}"#),
        ("no grant", &none, json!("Health"), r#"{"Refused":"EndedGrant"}"#),
        ("the metrics", &own, json!("Metrics"), r#"{"Refused":{"MissingRole":"operate"}}"#),
        ("the readiness", &own, json!("Readiness"), r#"{"Refused":{"MissingRole":"operate"}}"#),
        (
            "the report for operators",
            &own,
            json!("ServiceHealth"),
            r#"{"Refused":{"MissingRole":"operate"}}"#,
        ),
        ("control: its own credential", &none, credential(json!("Connection")), r#"{"Access":{"Ok":{"#),
        ("the user id of root", &none, credential(json!({"Peer": {"uid": 0}})), "the request cannot be read"),
        (
            "a connection of a Unix domain socket",
            &none,
            credential(json!({"UnixConnection": 1})),
            r#"{"Access":{"Err":"CredentialNotAccepted"}}"#,
        ),
        (
            "a token",
            &none,
            credential(json!({"Bearer": "lh_x"})),
            r#"{"Access":{"Err":"CredentialNotAccepted"}}"#,
        ),
        ("no credential", &none, credential(json!("None")), r#"{"Access":{"Err":"CredentialNotAccepted"}}"#),
    ] {
        let received = ask(grant, &request);
        table.row(case, ensure(received.contains(expected), received));
    }
    let access = ask(&none, &credential(json!("Connection")));
    table.row("its role", ensure(access.contains(r#""roles":["run"]"#), &access));
    table.row("its identity", ensure(access.contains(r#""name":null,"client":null"#), &access));
    table.finish();
}

/// Tests that a drain waits for a front that may have requests of AI clients in flight, and no longer than the front lives.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_dies_does_not_hold_up_a_drain() {
    let mut table = Table::new("a drain with a front that does not report");
    for (front, messages, is_waited_for) in [
        ("one that listens", vec![json!("Listening")], true),
        ("control: one that does not", Vec::new(), false),
    ] {
        let lockhouse = lockhouse();
        let client = lockhouse.serve().await;
        assert_eq!(add(&client).await, json!(42));
        let (socket, pid) = (socket(&lockhouse), pid_of(&the_engine(&lockhouse)));
        let mut peer = UnixStream::connect(&socket).unwrap();
        let hello = json!({"Hello": {"version": 3, "setup": setup(&socket)}});
        let frames = messages.iter().flat_map(|message| frame(0, &message.to_string()));
        peer.write_all(&greeting(&hello).into_iter().chain(frames).collect::<Vec<u8>>()).unwrap();
        wait_until("the front is connected", async || {
            let engine = the_engine(&lockhouse);
            (engine["clients"].as_array().map(Vec::len) == Some(2)).then_some(())
        })
        .await;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGTERM)
            .unwrap();
        if is_waited_for {
            tokio::time::sleep(Duration::from_secs(2)).await;
            table.row(format!("{front}: the drain waits"), ensure(is_alive(pid), "the engine has ended"));
            drop(peer);
        }
        let signalled = std::time::Instant::now();
        wait_until("the engine ends", async || (!is_alive(pid)).then_some(())).await;
        let took = signalled.elapsed();
        table.row(format!("{front}: the end"), ensure(took < Duration::from_secs(10), took));
    }
    table.finish();
}
