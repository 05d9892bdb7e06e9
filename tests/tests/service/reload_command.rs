//! Tests of `lockhouse reload`, with which an operator reloads the configuration of running processes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::service::{OPEN, health, wait_until_ready};

const CODE: &str = "from mcp_tools import fixture\nfixture.add(1, 2)['sum']";

#[tokio::test]
async fn a_reload_reports_for_each_process_whether_the_configuration_is_in_force() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).config(OPEN).policy("version = 1\n");
    let mut table = Table::new("lockhouse reload");
    let none = lockhouse.run(&["reload"]);
    let told = none.status == Some(7) && none.stdout.contains("No Lockhouse is running.");
    table.row("nothing runs", ensure(told, &none));
    let (first, second) = (lockhouse.daemon().await, lockhouse.daemon().await);
    wait_until_ready(&first).await;
    wait_until_ready(&second).await;
    let client = first.http_client(None);
    table.row("control: denied", equal(&client.run_code("python", CODE).await["status"], &json!("error")));
    let changed = lockhouse.run(&["policy", "allow", "fixture.add"]);
    table.row("control: the policy is changed", equal(changed.status, Some(0)));
    let reloaded = lockhouse.run(&["reload"]);
    let told = [first.pid(), second.pid()].iter().all(|pid| {
        reloaded.stdout.contains(&format!("process {pid}: the configuration is in force (generation 2)"))
    });
    table.row("all processes", ensure(reloaded.status == Some(0) && told, &reloaded));
    table.row("in force", equal(&client.run_code("python", CODE).await["value"], &json!(3)));
    let causes: Vec<Value> = lockhouse
        .records()
        .into_iter()
        .filter(|record| record["event"] == "reload")
        .map(|record| record["cause"].clone())
        .collect();
    table.row("recorded", equal(causes, vec![json!("operator"); 2]));
    let mut one = lockhouse.run(&["reload", "--pid", &first.pid().to_string(), "--json"]).json();
    let digests = one[0].as_object_mut().and_then(|report| report.remove("digests")).unwrap_or_default();
    table.row("the digest in force", equal(digests["policy"].as_str().map(str::len), Some(64)));
    let expected = json!([{
        "pid": first.pid(), "version": env!("CARGO_PKG_VERSION"), "outcome": "in_force", "in_force": true,
        "generation": 3, "restart_required": [], "error": null,
    }]);
    table.row("one process", equal(one, expected));
    table.row("not the other", equal(&health(&second).await["configuration"]["generation"], &json!(2)));
    let other = lockhouse.run(&["reload", "--pid", "1"]);
    table.row(
        "no such process",
        ensure(other.status == Some(7) && other.stderr.contains("process 1"), &other),
    );
    let lockhouse = lockhouse.config(&format!("{OPEN}[limits]\nprinted_bytes = 2000\n"));
    let restart = lockhouse.run(&["reload"]);
    table.row(
        "a restart is required",
        ensure(restart.stdout.contains("changes in [limits] take effect when"), &restart),
    );

    let lockhouse = lockhouse.policy("version = 1\n[servers.fixture]\nalow = []\n");
    let invalid = lockhouse.run(&["reload"]);
    let told = invalid.status == Some(2)
        && invalid.stderr.contains("keeps the previous configuration")
        && invalid.stderr.contains("alow");
    table.row("an invalid policy", ensure(told, &invalid));
    let json = lockhouse.run(&["reload", "--json"]).json();
    let row = &json[0];
    let told = row["outcome"] == "invalid"
        && row["in_force"] == false
        && row["error"].as_str().is_some_and(|error| error.contains("policy.toml:3"));
    table.row("as JSON", ensure(told, &json));
    table.row("the previous policy holds", equal(&client.run_code("python", CODE).await["value"], &json!(3)));
    table.finish();
}

/// Serves one connection to a control socket as a version of Lockhouse that knows only lines.
fn serve_older_version(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut line = Vec::new();
    BufReader::new(&stream).read_until(b'\n', &mut line).unwrap();
    let answer = json!({"refused": {"id": null, "reason": "the first line must be {\"watch\": 1} in this version of lockhouse"}});
    stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
}

#[test]
fn a_process_that_does_not_know_the_request_or_does_not_answer_is_reported() {
    let lockhouse = Lockhouse::new();
    std::fs::create_dir_all(lockhouse.path("run/lockhouse")).unwrap();
    let listen =
        |pid: u32| UnixListener::bind(lockhouse.path(&format!("run/lockhouse/control-{pid}.sock"))).unwrap();
    let older = listen(4_000_001);
    let mut table = Table::new("other processes");
    let serving = std::thread::spawn(move || serve_older_version(&older));
    let told = lockhouse.run(&["reload"]);
    let holds = told.status == Some(7)
        && told.stderr.contains("process 4000001")
        && told.stderr.contains("this version of Lockhouse does not know the request; `kill -HUP 4000001`");
    table.row("an older version", ensure(holds, &told));
    serving.join().unwrap();
    let _silent = listen(4_000_002);
    let told = lockhouse.run(&["reload", "--json"]);
    let rows = told.json();
    let expected = (Some(7), json!([4_000_002, "no_answer", false]));
    table.row(
        "no answer",
        equal((told.status, json!([rows[0]["pid"], rows[0]["outcome"], rows[0]["in_force"]])), expected),
    );
    table.finish();
}
