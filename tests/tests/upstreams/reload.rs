//! Tests of reloading the configuration on SIGHUP: the new configuration replaces the old one completely, or not at
//! all.

use lockhouse_tests::{
    Lockhouse, Session, Table, children, ensure, equal, fixture_server, is_alive, structured, wait_until,
};
use serde_json::{Value, json};

const CONFIG: &str = "config/lockhouse/config.toml";
const POLICY: &str = "config/lockhouse/policy.toml";

/// Writes a configuration: `rest`, followed by a table for each of these upstream servers with its arguments. Each
/// server runs through a symbolic link that has the server's name, so that the test can recognize its process.
fn write_servers(lockhouse: &Lockhouse, servers: &[(&str, &[&str])], rest: &str) {
    let mut config = rest.to_owned();
    for (name, arguments) in servers {
        let link = lockhouse.path(&format!("program-{name}"));
        if !link.exists() {
            std::os::unix::fs::symlink(fixture_server(), &link).unwrap();
        }
        config += &format!("[servers.{name}]\ncommand = {link:?}\nargs = {arguments:?}\n");
    }
    lockhouse.file(CONFIG, config);
}

fn policy(servers: &[(&str, &str)]) -> String {
    let server = |(name, allow): &(&str, &str)| format!("[servers.{name}]\nallow = [{allow}]\n");
    format!("version = 1\n{}", servers.iter().map(server).collect::<String>())
}

fn pid(session: &Session, server: &str) -> Option<u32> {
    let program = format!("program-{server}");
    children(session.pid()).into_iter().find(|child| child.command.contains(&program)).map(|child| child.pid)
}

/// Calls the tool `add` of an upstream server, and returns the sum or the error code.
async fn call_add(session: &Session, server: &str) -> Value {
    let code = format!(
        "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('{server}', 'add', {{'a': 1, 'b': 2}})['sum']\nexcept ToolError as e: r = e.code\nr"
    );
    session.run_code("python", &code).await["value"].clone()
}

#[tokio::test]
async fn a_new_policy_is_in_force_at_once() {
    let lockhouse = Lockhouse::new().policy(&policy(&[("one", "\"*\"")]));
    write_servers(&lockhouse, &[("one", &[])], "");
    let session = lockhouse.serve().await;
    let mut table = Table::new("a policy, before and after");
    table.row("allowed", equal(call_add(&session, "one").await, json!(3)));
    let code = "from mcp_tools.one import slow, add\nslow(ms=1500)\nadd(a=1, b=2)['sum']";
    let running = session.start_code("python", code);
    wait_until("the call goes out", async || (lockhouse.audit().len() >= 3).then_some(())).await;
    let server = pid(&session, "one");
    lockhouse.file(POLICY, policy(&[("one", "\"slow\"")]));
    let said = session.reload().await;
    table.row("it is told", ensure(said.contains("in force"), said));
    table.row("denied", equal(call_add(&session, "one").await, json!("denied")));
    let answer = structured(running.await.unwrap());
    table.row("what had begun loses it too", equal(answer["error"]["code"].clone(), json!("denied")));
    lockhouse.file(POLICY, policy(&[("one", "\"*\"")]));
    session.reload().await;
    table.row("allowed again", equal(call_add(&session, "one").await, json!(3)));
    table.row("by the same process", ensure(server.is_some() && pid(&session, "one") == server, server));
    table.finish();
}

#[tokio::test]
async fn an_invalid_file_keeps_the_old_configuration_and_is_reported_with_its_line() {
    let lockhouse = Lockhouse::new().policy(&policy(&[("one", "\"*\""), ("two", "\"*\"")]));
    write_servers(&lockhouse, &[("one", &[])], "");
    lockhouse.file("requirements.toml", "");
    lockhouse.file("servers.json", "{\"mcpServers\": {}}");
    let mut command = lockhouse.command(&["serve"]);
    command.env("LOCKHOUSE_REQUIREMENTS", lockhouse.path("requirements.toml"));
    command.arg("--servers").arg(lockhouse.path("servers.json"));
    let session = Session::connect(command, Session::latest()).await;
    let mut table = Table::new("files with a fault");
    table.row("control", equal(call_add(&session, "one").await, json!(3)));
    let server = pid(&session, "one");
    // An additional server, which must not start while another file is invalid.
    write_servers(&lockhouse, &[("one", &[]), ("two", &[])], "");
    for (file, fault, place) in [
        (POLICY, "version = 1\n[servers.one]\nalow = []\n", "policy.toml:3"),
        (CONFIG, "[limits]\ntimeout = 3\n", "config.toml:2"),
        ("servers.json", "{\n  \"mcpServers\": {,}\n}", "servers.json:2"),
    ] {
        let sound = std::fs::read_to_string(lockhouse.path(file)).unwrap();
        lockhouse.file(file, fault);
        let said = session.reload().await;
        let told = said.contains("the previous one stays active") && said.contains(place);
        table.row(format!("{file}: told"), ensure(told && !said.contains("in force;"), said));
        let sums = [call_add(&session, "one").await, call_add(&session, "two").await];
        let outcome = equal(sums, [json!(3), json!("unknown_tool")]);
        table.row(format!("{file}: everything is as it was"), outcome);
        lockhouse.file(file, sound);
    }
    std::fs::remove_file(lockhouse.path(POLICY)).unwrap();
    std::fs::create_dir(lockhouse.path(POLICY)).unwrap();
    let said = session.reload().await;
    table.row("a policy that is no file", ensure(said.contains("it is not a regular file"), said));
    std::fs::remove_dir(lockhouse.path(POLICY)).unwrap();
    lockhouse.file(POLICY, policy(&[("one", "\"*\""), ("two", "\"*\"")]));
    session.reload().await;
    let sums = [call_add(&session, "one").await, call_add(&session, "two").await];
    table.row("without a fault: both", equal(sums, [json!(3), json!(3)]));
    table.row(
        "the first by the same process",
        ensure(server.is_some() && pid(&session, "one") == server, server),
    );
    lockhouse.file("requirements.toml", "[[denied]]\nname = \"one\"\n");
    let said = session.reload().await;
    table.row(
        "denied from now on: told",
        ensure(said.contains("denied by") && said.contains("requirements.toml:1"), said),
    );
    let sums = [call_add(&session, "one").await, call_add(&session, "two").await];
    table.row("denied from now on", equal(sums, [json!("unknown_tool"), json!(3)]));
    table.finish();
}

#[tokio::test]
async fn unchanged_servers_keep_their_process_and_changed_ones_are_replaced() {
    let all = ["kept", "changed", "removed", "added"].map(|name| (name, "\"*\""));
    let lockhouse = Lockhouse::new().policy(&policy(&all));
    write_servers(&lockhouse, &[("kept", &[]), ("changed", &[]), ("removed", &[])], "");
    let session = lockhouse.serve().await;
    let mut table = Table::new("servers, before and after");
    for server in ["kept", "changed", "removed"] {
        table.row(format!("{server} works"), equal(call_add(&session, server).await, json!(3)));
    }
    let [kept, changed, removed] =
        ["kept", "changed", "removed"].map(|server| pid(&session, server).unwrap());
    let audited = lockhouse.audit().len();
    let code = |server: &str| {
        format!("from mcp_tools.{server} import slow, add\nslow(ms=2000)\nadd(a=1, b=2)['sum']")
    };
    let running = ["kept", "changed", "removed"].map(|server| session.start_code("python", &code(server)));
    wait_until("the calls go out", async || (lockhouse.audit().len() >= audited + 3).then_some(())).await;

    // A different position in the file does not make it a different server.
    let rest = "# Another comment.\n\n[pool]\nidle = 3\n";
    write_servers(&lockhouse, &[("added", &[]), ("kept", &[]), ("changed", &["--legacy-only"])], rest);
    let said = session.reload().await;
    table.row(
        "what needs a restart is told",
        ensure(said.contains("changes in [pool] take effect when"), said),
    );
    let expected =
        [("kept", json!(3)), ("changed", json!(3)), ("added", json!(3)), ("removed", json!("unknown_tool"))];
    for (server, expected) in expected {
        table.row(format!("{server} afterwards"), equal(call_add(&session, server).await, expected));
    }
    let others = ensure(is_alive(changed) && is_alive(removed), (changed, removed));
    table.row("the old ones wait for what had begun", others);
    for (server, running) in ["kept", "changed", "removed"].into_iter().zip(running) {
        let answer = structured(running.await.unwrap());
        table.row(
            format!("{server}: what had begun ends as it began"),
            equal(answer["value"].clone(), json!(3)),
        );
    }
    for (server, pid) in [("changed", changed), ("removed", removed)] {
        wait_until("the old process goes", async || (!is_alive(pid)).then_some(())).await;
        table.row(format!("{server}: the old process is gone"), Ok(()));
    }
    table.row("kept has the same process", equal(pid(&session, "kept"), Some(kept)));
    table.row(
        "changed has another",
        ensure(pid(&session, "changed").is_some_and(|pid| pid != changed), changed),
    );
    table.row("removed has none", equal(pid(&session, "removed"), None));

    // A reload and then a shutdown while an old server still has a call in flight.
    let running = session.start_code("python", &code("kept").replace("2000", "60000"));
    let audited = lockhouse.audit().len();
    wait_until("the call goes out", async || (lockhouse.audit().len() > audited).then_some(())).await;
    write_servers(&lockhouse, &[("added", &[])], "");
    session.reload().await;
    let left: Vec<u32> = children(session.pid()).iter().map(|child| child.pid).collect();
    let ended = session.close().await;
    drop(running);
    table.row("it ends while old servers wait", ensure(ended.status == Some(0), ended));
    wait_until("nothing is left", async || left.iter().all(|pid| !is_alive(*pid)).then_some(())).await;
    table.finish();
}

#[tokio::test]
async fn a_hundred_reloads_leak_nothing() {
    let lockhouse = Lockhouse::new().policy(&policy(&[("one", "\"*\""), ("two", "\"*\"")]));
    write_servers(&lockhouse, &[("one", &[]), ("two", &[])], "");
    let session = lockhouse.serve().await;
    assert_eq!([call_add(&session, "one").await, call_add(&session, "two").await], [json!(3), json!(3)]);
    // Only root can count the descriptors of a process that is not dumpable.
    let descriptors =
        || std::fs::read_dir(format!("/proc/{}/fd", session.pid())).map_or(0, |entries| entries.count());
    let (one, before) = (pid(&session, "one"), descriptors());
    for round in 0..100 {
        let arguments: &[&str] = if round % 2 == 0 { &["--legacy-only"] } else { &[] };
        write_servers(&lockhouse, &[("one", &[]), ("two", arguments)], "");
        session.reload().await;
    }
    assert_eq!(call_add(&session, "two").await, json!(3));
    let is_of_two = |command: &str| command.contains("program-two");
    wait_until("one process is left", async || {
        let of_two = children(session.pid()).iter().filter(|child| is_of_two(&child.command)).count();
        (of_two == 1 && descriptors() <= before + 4).then_some(())
    })
    .await;
    assert_eq!(pid(&session, "one"), one);
}

/// Policy entries for tools that the server does not have are logged as warnings, as soon as the tools of the server
/// are known.
#[tokio::test]
async fn unknown_tool_names_in_the_policy_are_warned_about_at_start_and_reload() {
    let lockhouse =
        Lockhouse::new().policy(&policy(&[("one", "\"add\", \"ech\"")])).config("[http]\nauth = \"none\"\n");
    let config = format!("[http]\nauth = \"none\"\n[servers.one]\ncommand = {:?}\n", fixture_server());
    lockhouse.file(CONFIG, config);
    let daemon = lockhouse.daemon().await;
    let told = daemon.wait_for_log("one has no tool `ech`").await;
    assert!(told.contains("policy.toml:3:") && told.contains("did you mean `echo`?"), "{told}");
    assert!(!told.contains("no tool `add`"), "control: {told}");
    lockhouse.file(POLICY, policy(&[("one", "\"cuont\"")]));
    daemon.reload().await;
    daemon.wait_for_log("one has no tool `cuont`").await;
    daemon.terminate().await;
}
