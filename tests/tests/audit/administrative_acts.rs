//! Tests that each administrative act leaves exactly its record, whatever the way by which it comes about.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;

use lockhouse_tests::{
    Approver, Lockhouse, Page, Session, Table, ensure, equal, fixture_server, structured, wait_until,
};
use serde_json::{Value, json};

use crate::audit::{ADD, POLICY, assert_verified};

const CONFIG: &str = "config/lockhouse/config.toml";
const POLICY_FILE: &str = "config/lockhouse/policy.toml";
/// A policy that allows one tool.
const ONE_TOOL: &str = "version = 1\n[servers.fixture]\nallow = [\"add\"]\n";
/// The kinds of administrative records that this module is about.
const KINDS: [&str; 6] = ["change", "authentication", "termination", "server", "process", "action"];

/// The administrative records that were written since the last look.
struct Acts<'l> {
    lockhouse: &'l Lockhouse,
    seen: BTreeSet<String>,
}

impl<'l> Acts<'l> {
    fn new(lockhouse: &'l Lockhouse) -> Self {
        let mut acts = Self { lockhouse, seen: BTreeSet::new() };
        acts.next();
        acts
    }

    /// Returns the records since the last look.
    fn next(&mut self) -> Vec<Value> {
        let is_act = |record: &Value| KINDS.iter().any(|kind| record["event"] == *kind);
        let records = self.lockhouse.records().into_iter().filter(is_act);
        records.filter(|record| self.seen.insert(record.to_string())).collect()
    }

    /// Returns these members of the records since the last look.
    fn summaries(&mut self, members: &[&str]) -> Vec<Value> {
        let summary = |record: &Value| members.iter().map(|name| record[*name].clone()).collect();
        self.next().iter().map(summary).collect()
    }
}

const OF_CHANGE: [&str; 5] = ["target", "action", "through", "outcome", "severity"];

fn changed(target: &str, action: &str, through: &str) -> Value {
    json!([target, action, through, "changed", "warning"])
}

#[test]
fn each_command_that_changes_a_file_leaves_one_record() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(ONE_TOOL);
    lockhouse.file("home/.cursor/mcp.json", "{\"mcpServers\": {}}");
    lockhouse.file("other.json", json!({"mcpServers": {"imported": {"command": "true"}}}).to_string());
    let (fixture, other) =
        (fixture_server().display().to_string(), lockhouse.path("other.json").display().to_string());
    let mut acts = Acts::new(&lockhouse);
    let mut table = Table::new("commands, and their records");
    let rows: &[(&[&str], Vec<Value>)] = &[
        (&["policy", "allow", "fixture.env", "--unknown", "--dry-run"], vec![]),
        (&["policy", "check"], vec![]),
        (&["server", "list"], vec![]),
        (
            &["policy", "deny", "fixture.env", "--unknown"],
            vec![changed("policy", "deny fixture.env", "command")],
        ),
        (
            &["policy", "ask", "fixture.add", "--unknown"],
            vec![changed("policy", "ask fixture.add", "command")],
        ),
        (
            &["policy", "allow", "fixture.echo", "--unknown"],
            vec![changed("policy", "allow fixture.echo", "command")],
        ),
        (&["policy", "init", "--force"], vec![changed("policy", "init", "command")]),
        (
            &["server", "add", "mine", "--no-connect", "--", &fixture],
            vec![changed("configuration", "server add mine", "command")],
        ),
        (
            &["import", "--from", &other, "--yes", "--no-connect"],
            vec![changed("configuration", "import imported", "command")],
        ),
        (&["server", "remove", "mine"], vec![changed("configuration", "server remove mine", "command")]),
        (
            &["init", "--client", "cursor", "--yes", "--no-connect"],
            vec![changed("client", "init", "command")],
        ),
    ];
    for (arguments, expected) in rows {
        let finished = lockhouse.run(arguments);
        let name = arguments.join(" ");
        table.row(format!("{name}: it succeeds"), ensure(finished.status == Some(0), &finished));
        table.row(name, equal(acts.summaries(&OF_CHANGE), expected.clone()));
    }
    let uid = std::fs::metadata(lockhouse.path("home")).unwrap().uid();
    let records = lockhouse.records();
    let records = records.iter().filter(|record| record["event"] == "change");
    for record in records {
        let holds = record["uid"] == uid
            && record["pid"].as_u64().is_some_and(|pid| pid > 1)
            && record["host"].as_str().is_some_and(|host| !host.is_empty())
            && record["file"].as_str().is_some_and(|file| file.starts_with('/'))
            && record["digest"].as_str().is_some_and(|digest| digest.len() == 64);
        table.row(format!("{}: user, host, file and digest", record["action"]), ensure(holds, record));
    }
    table.finish();
    assert_verified(&lockhouse);
}

#[test]
fn setup_and_its_undo_record_each_file() {
    let lockhouse = Lockhouse::new();
    let fixture = fixture_server();
    lockhouse
        .file("home/.cursor/mcp.json", json!({"mcpServers": {"tools": {"command": fixture}}}).to_string());
    let mut acts = Acts::new(&lockhouse);
    let mut table = Table::new("setup, and its records");
    let dry = lockhouse.run(&["setup", "--dry-run"]);
    table.row("control: a dry run", ensure(dry.status == Some(0) && acts.next().is_empty(), &dry));
    let done = lockhouse.run(&["setup", "--yes"]);
    table.row("it succeeds", ensure(done.status == Some(0), &done));
    let steps = |action: &str, targets: [&str; 3]| -> Vec<Value> {
        targets.iter().map(|target| changed(target, action, "command")).collect()
    };
    table.row(
        "each file",
        equal(acts.summaries(&OF_CHANGE), steps("setup", ["configuration", "policy", "client"])),
    );
    let undone = lockhouse.run(&["setup", "--undo", "--yes"]);
    table.row("undo succeeds", ensure(undone.status == Some(0), &undone));
    table.row(
        "each file again",
        equal(acts.summaries(&OF_CHANGE), steps("setup --undo", ["client", "policy", "configuration"])),
    );
    table.finish();
    assert_verified(&lockhouse);
}

#[test]
fn without_a_record_only_what_takes_permissions_away_is_changed() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(ONE_TOOL);
    lockhouse.file("home/.cursor/mcp.json", "{\"mcpServers\": {}}");
    let fixture = fixture_server().display().to_string();
    let added = lockhouse.run(&["server", "add", "first", "--no-connect", "--", &fixture]);
    assert_eq!(added.status, Some(0), "control: {added:?}");
    // Creating a directory below a file always fails.
    let file = lockhouse.file("file", "");
    let config = std::fs::read_to_string(lockhouse.path(CONFIG)).unwrap();
    lockhouse.file(CONFIG, format!("[audit]\ndirectory = \"{}/audit\"\n{config}", file.display()));
    let mut table = Table::new("without a log");
    let state = || {
        [CONFIG, POLICY_FILE, "home/.cursor/mcp.json"]
            .map(|name| std::fs::read(lockhouse.path(name)).unwrap())
    };
    for arguments in [
        &["policy", "allow", "fixture.echo", "--unknown"][..],
        &["policy", "ask", "fixture.echo", "--unknown"],
        &["policy", "init", "--force"],
        &["server", "add", "second", "--no-connect", "--", &fixture],
        &["init", "--client", "cursor", "--yes", "--no-connect"],
        &["setup", "--yes", "--no-connect"],
    ] {
        let before = state();
        let refused = lockhouse.run(arguments);
        let holds = refused.status != Some(0) && refused.stderr.contains("audit log") && state() == before;
        table.row(arguments.join(" "), ensure(holds, &refused));
    }
    for arguments in [&["policy", "deny", "fixture.env", "--unknown"][..], &["server", "remove", "first"]] {
        let before = state();
        let done = lockhouse.run(arguments);
        let warned = done.stderr.contains("not recorded in the audit log");
        let holds = done.status == Some(0) && warned && state() != before;
        table.row(format!("{}: done, with a warning", arguments.join(" ")), ensure(holds, &done));
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_files_by_hand_are_recorded_when_they_are_loaded() {
    let lockhouse = Lockhouse::with_fixture().config("[limits]\ntimeout_seconds = 20\n");
    let mut acts = Acts::new(&lockhouse);
    let session = lockhouse.serve().await;
    session.run_code("python", "1").await;
    let edits = |acts: &mut Acts<'_>| {
        let records = acts.next();
        let changes = records.iter().filter(|record| record["event"] == "change");
        let of = ["target", "action", "through", "severity"];
        changes.map(|record| of.iter().map(|name| record[*name].clone()).collect()).collect::<Vec<Value>>()
    };
    let mut table = Table::new("edits of files");
    table.row("control: the first start", equal(edits(&mut acts), vec![]));
    session.reload().await;
    table.row("control: nothing was edited", equal(edits(&mut acts), vec![]));
    lockhouse.file(POLICY_FILE, POLICY);
    session.reload().await;
    let expected = json!(["policy", "edited", "file", "warning"]);
    table.row("the policy", equal(edits(&mut acts), vec![expected.clone()]));
    lockhouse.file(POLICY_FILE, "version = 1\nnonsense");
    session.reload().await;
    table.row("a policy with a fault", equal(edits(&mut acts), vec![expected.clone()]));
    std::fs::remove_file(lockhouse.path(CONFIG)).unwrap();
    lockhouse.file(POLICY_FILE, POLICY);
    assert_eq!(session.close().await.status, Some(0));
    let session = lockhouse.serve().await;
    let both = vec![json!(["configuration", "removed", "file", "warning"]), expected];
    wait_until("both are recorded", async || {
        let found = lockhouse.records();
        found.iter().any(|record| record["action"] == "removed").then_some(())
    })
    .await;
    table.row("seen at the next start", equal(edits(&mut acts), both));
    assert_eq!(session.close().await.status, Some(0));
    table.row("control: a change by a command", {
        let done = lockhouse.run(&["policy", "deny", "fixture.env", "--unknown"]);
        let made = edits(&mut acts);
        let session = lockhouse.serve().await;
        session.run_code("python", "1").await;
        let again = edits(&mut acts);
        ensure(done.status == Some(0) && made.len() == 1 && again.is_empty(), (done, made, again))
    });
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_and_ends_of_processes_and_servers_are_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let mut acts = Acts::new(&lockhouse);
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3);
    let of = ["event", "command", "server", "outcome"];
    let mut table = Table::new("processes and servers");
    let started =
        vec![json!(["process", "serve", null, "started"]), json!(["server", null, "fixture", "started"])];
    let records = acts.next();
    let summary = |records: &[Value]| -> Vec<Value> {
        records.iter().map(|record| of.iter().map(|name| record[*name].clone()).collect()).collect()
    };
    table.row("the start", equal(summary(&records), started));
    table.row(
        "with the digests in force",
        ensure(records[0]["policy"].as_str().is_some_and(|digest| digest.len() == 64), &records[0]),
    );
    let mut server = lockhouse_tests::children(session.pid()).into_iter();
    let server = server.find(|child| child.command.contains("fixture-server")).unwrap();
    lockhouse_tests::kill(server.pid);
    let lost = wait_until("the loss is recorded", async || {
        lockhouse.records().into_iter().find(|record| record["outcome"] == "lost")
    })
    .await;
    table.row("a server that was killed", ensure(lost["reason"].is_string(), &lost));
    assert_eq!(session.run_code("python", ADD).await["value"], 3, "it is started again");
    acts.next();
    assert_eq!(session.close().await.status, Some(0));
    let ends = acts.next();
    let stopped = ends.iter().find(|record| record["event"] == "server").cloned().unwrap_or_default();
    table.row("the server's end", equal(stopped["outcome"].clone(), json!("stopped")));
    let process = ends.iter().find(|record| record["event"] == "process").cloned().unwrap_or_default();
    let expected = json!(["stopped", "its AI client has disconnected"]);
    table.row("the process's end", equal(json!([process["outcome"], process["reason"]]), expected));
    let run = lockhouse.answer("python", ADD);
    table.row("control: `run` has none", ensure(run["value"] == 3 && acts.next().is_empty(), run));
    table.finish();
    assert_verified(&lockhouse);
}

async fn ended_by(lockhouse: &Lockhouse, execution: &Value) -> Value {
    let record = wait_until("the run has ended", async || {
        let mut records = lockhouse.records().into_iter();
        records.find(|record| record["event"] == "end" && record["execution"] == *execution)
    });
    record.await["ended_by"].clone()
}

/// Starts a run that does not end, and returns its execution id.
async fn endless(lockhouse: &Lockhouse, session: &Session) -> (Value, tokio::task::JoinHandle<Value>) {
    let before: BTreeSet<String> = executions(lockhouse);
    let running = session.start_code("python", "while True: pass");
    let execution = wait_until("the run has begun", async || {
        executions(lockhouse).into_iter().find(|execution| !before.contains(execution))
    })
    .await;
    let answer = async move { running.await.unwrap().map_or(Value::Null, |answer| structured(Ok(answer))) };
    (execution.into(), tokio::spawn(answer))
}

fn executions(lockhouse: &Lockhouse) -> BTreeSet<String> {
    let records = lockhouse.records().into_iter().filter(|record| record["event"] == "execution");
    records.filter_map(|record| record["execution"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ended_a_run_or_a_session_is_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let uid = std::fs::metadata(lockhouse.path("home")).unwrap().uid();
    let mut table = Table::new("who ended a run");
    let by_itself = session.run_code("python", "1").await["execution"].clone();
    table.row("control: its program", equal(ended_by(&lockhouse, &by_itself).await, Value::Null));
    let mut acts = Acts::new(&lockhouse);
    let late = session
        .run_with(json!({"language": "python", "code": "while True: pass", "timeout_s": 1}))
        .await["execution"]
        .clone();
    table.row("its deadline", equal(ended_by(&lockhouse, &late).await, json!("deadline")));
    let (execution, running) = endless(&lockhouse, &session).await;
    let ended = lockhouse.run(&["runs", "end", execution.as_str().unwrap()]);
    assert_eq!(running.await.unwrap()["status"], "cancelled", "{ended:?}");
    table.row("an operator", equal(ended_by(&lockhouse, &execution).await, json!("operator")));
    let of = ["event", "target", "execution", "session", "through", "uid", "severity"];
    let expected = vec![json!(["termination", "run", execution, null, "operator", uid, "warning"])];
    table.row("with the user", equal(acts.summaries(&of), expected));
    session.run_in("notes", "python", "x = 1").await;
    assert_eq!(lockhouse.run(&["sessions", "end", "notes"]).status, Some(0));
    let expected = vec![json!(["termination", "session", null, "notes", "operator", uid, "warning"])];
    table.row("a session", equal(acts.summaries(&of), expected));
    let (execution, running) = endless(&lockhouse, &session).await;
    session.close().await;
    drop(running);
    table.row("its client, which is gone", {
        let ended = ended_by(&lockhouse, &execution).await;
        ensure(ended == "client" || ended == "shutdown", ended)
    });
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn lockhouse_stop_ends_runs_with_its_reason_and_is_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("lockhouse stop");
    let none = lockhouse.run(&["stop"]);
    table.row(
        "control: nothing runs",
        ensure(none.status == Some(7) && none.stdout.contains("No Lockhouse"), &none),
    );
    let session = lockhouse.serve().await;
    let other = lockhouse.run(&["stop", "--pid", "1"]);
    table.row("control: another process", ensure(other.status == Some(7), &other));
    assert_eq!(session.run_code("python", "1").await["value"], 1, "it still runs");
    let (execution, running) = endless(&lockhouse, &session).await;
    let stopped = lockhouse.run(&["stop", "--reason", "a fire drill"]);
    table.row("it succeeds", ensure(stopped.status == Some(0), &stopped));
    let answer = running.await.unwrap();
    let error = answer["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "the run reads why",
        ensure(error.contains("a person stopped Lockhouse: a fire drill"), &answer),
    );
    table.row("and who", equal(ended_by(&lockhouse, &execution).await, json!("operator")));
    assert_eq!(session.close().await.status, Some(0));
    let records = lockhouse.records();
    let of =
        |event: &str| records.iter().rfind(|record| record["event"] == event).cloned().unwrap_or_default();
    let termination = of("termination");
    let expected = json!(["process", "operator", "a fire drill"]);
    let found = json!([termination["target"], termination["through"], termination["reason"]]);
    table.row("its record", equal(found, expected));
    let reason = of("process")["reason"].as_str().unwrap_or_default().to_owned();
    table.row("the end of the process", ensure(reason.contains("a fire drill"), reason));
    table.finish();
    assert_verified(&lockhouse);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_changes_the_policy_is_a_change_too() {
    let policy = "version = 1\n[servers.fixture]\nask = [\"add\"]\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(policy);
    let session = lockhouse.serve().await;
    let mut approver = Approver::connected(&lockhouse).await;
    let mut acts = Acts::new(&lockhouse);
    let mut table = Table::new("approvals");
    for (scope, expected) in
        [("once", vec![]), ("always", vec![changed("policy", "allow fixture.add", "approval")])]
    {
        let (answer, ()) = tokio::join!(session.run_code("python", ADD), async {
            let question = approver.next("ask").await;
            approver.answer(&question, "approve", scope).await;
            approver.next("taken").await;
        });
        assert_eq!(answer["value"], 3, "{answer}");
        let changes: Vec<Value> = acts.next();
        let changes = changes.iter().filter(|record| record["event"] == "change");
        let changes: Vec<Value> =
            changes.map(|record| OF_CHANGE.iter().map(|name| record[*name].clone()).collect()).collect();
        table.row(scope, equal(changes, expected));
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_on_the_page_is_recorded_with_its_viewer() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3, "its server has started");
    let mut acts = Acts::new(&lockhouse);
    let page = Page::start(&lockhouse, &[]).await;
    let mut table = Table::new("the page");
    let of = ["event", "through", "outcome", "action", "command"];
    let found = async |acts: &mut Acts<'_>, count: usize| {
        let mut found = Vec::new();
        wait_until("its records", async || {
            found.extend(acts.summaries(&of));
            (found.len() >= count).then_some(())
        })
        .await;
        found
    };
    let started = json!(["process", null, "started", null, "page"]);
    table.row("its start", equal(found(&mut acts, 1).await, vec![started]));
    page.log_in("0000").await;
    let refused = json!(["authentication", "page", "refused", null, null]);
    table.row("a login that fails", equal(found(&mut acts, 1).await, vec![refused]));
    let browser = page.browser().await;
    let accepted = json!(["authentication", "page", "accepted", null, null]);
    table.row("a login", equal(found(&mut acts, 1).await, vec![accepted]));
    let (execution, running) = endless(&lockhouse, &session).await;
    let ended =
        browser.post("/api/runs/end", json!({"supervisor": session.pid(), "execution": execution})).await;
    assert_eq!(ended.status, 200, "{ended:?}");
    running.await.unwrap();
    let action = format!("end run {}", execution.as_str().unwrap());
    let expected = vec![
        json!(["action", "page", "requested", action, null]),
        json!(["termination", "operator", "ended", null, null]),
    ];
    table.row("an action", equal(found(&mut acts, 2).await, expected));
    let change = json!({"server": "fixture", "tool": "env", "effect": "deny"});
    let preview = browser.post("/api/policy/preview", change.clone()).await.json();
    table.row("control: a preview", equal(acts.next(), vec![]));
    let mut apply = change;
    apply["digest"] = preview["digest"].clone();
    assert_eq!(browser.post("/api/policy/apply", apply.clone()).await.status, 200);
    let requested = json!(["action", "page", "requested", "policy Deny fixture.env", null]);
    let expected = vec![requested.clone(), json!(["change", "page", "changed", "deny fixture.env", null])];
    table.row("a change of the policy", equal(found(&mut acts, 2).await, expected));
    apply["digest"] = format!("sha256:{}", "0".repeat(64)).into();
    assert_eq!(browser.post("/api/policy/apply", apply).await.error_code(), "stale");
    let expected = vec![requested, json!(["action", "page", "failed", "policy Deny fixture.env", null])];
    table.row("one that fails", equal(found(&mut acts, 2).await, expected));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_recorded_at_a_limited_rate() {
    let lockhouse = Lockhouse::with_fixture();
    let token = lockhouse.run(&["token", "create", "desk"]).stdout.trim().to_owned();
    let daemon = lockhouse.daemon().await;
    let mut acts = Acts::new(&lockhouse);
    let mut table = Table::new("credentials over HTTP");
    let run = daemon.http_client(Some(&token)).run_code("python", "1").await;
    let refusals = |acts: &mut Acts<'_>| -> Vec<Value> {
        acts.next().into_iter().filter(|record| record["event"] == "authentication").collect()
    };
    table.row("control: a valid token", ensure(run["value"] == 1 && refusals(&mut acts).is_empty(), run));
    let wrong = format!("{}0", &token[..token.len() - 1]);
    let client = daemon.http_client(Some(&wrong));
    for _ in 0..30 {
        let reply = client.request("tools/list", json!({})).await;
        assert!([401, 429].contains(&reply.status), "{reply:?}");
    }
    let found = refusals(&mut acts);
    table.row("at most 20 records", ensure((1..=20).contains(&found.len()), found.len()));
    let record = found.first().cloned().unwrap_or_default();
    let expected = json!(["http", "refused", "warning"]);
    table.row(
        "one of them",
        equal(json!([record["through"], record["outcome"], record["severity"]]), expected),
    );
    table.row("without the token", ensure(!format!("{found:?}").contains(&wrong[3..12]), found));
    table.finish();
}
