//! Tests of the audit records about administration: who approved a call, which policy was in effect, configuration
//! reloads, created and revoked tokens, accepted tool definitions, and refused runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use lockhouse_tests::{Approver, CommandOutput, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::audit::{ADD, POLICY, assert_verified};

const CONFIG: &str = "config/lockhouse/config.toml";
const POLICY_FILE: &str = "config/lockhouse/policy.toml";

fn records_of_event(lockhouse: &Lockhouse, event: &str) -> Vec<Value> {
    lockhouse.records().into_iter().filter(|record| record["event"] == event).collect()
}

fn sha256(lockhouse: &Lockhouse, file: &str) -> Value {
    let summed = CommandOutput::run(std::process::Command::new("sha256sum").arg(lockhouse.path(file)), b"");
    summed.stdout.split_whitespace().next().unwrap().into()
}

/// Returns the user id of the user who runs this test.
fn own_uid(lockhouse: &Lockhouse) -> u32 {
    std::fs::metadata(lockhouse.path("home")).unwrap().uid()
}

#[tokio::test]
async fn an_approval_is_recorded_with_its_channel_and_user() {
    let lockhouse =
        Lockhouse::new().server("fixture", &[]).policy("version = 1\n[servers.fixture]\nask = [\"add\"]\n");
    let session = lockhouse.serve().await;
    let mut approver = Approver::connected(&lockhouse).await;
    let (answer, ()) = tokio::join!(session.run_code("python", ADD), async {
        let question = approver.next("ask").await;
        approver.answer(&question, "approve", "execution").await;
        approver.next("taken").await;
    });
    assert_eq!(answer["value"], 3, "{answer}");
    let records = records_of_event(&lockhouse, "approval");
    let [question, answered] = &records[..] else { panic!("two records: {records:?}") };
    let mut table = Table::new("an approval at the control socket");
    table.row("its answer channel", equal(&answered["through"], &json!("local")));
    table.row("its scope", equal(&answered["outcome"], &json!("execution")));
    table.row(
        "its digest",
        ensure(answered["digest"].as_str().is_some_and(|digest| digest.len() == 64), answered),
    );
    table.row("the user", equal(&answered["uid"], &json!(own_uid(&lockhouse))));
    table.row("the process", ensure(answered["pid"].as_u64().is_some_and(|pid| pid > 1), answered));
    table.row(
        "no approver before the answer",
        ensure(question["uid"].is_null() && question["outcome"] == "asked", question),
    );
    table.finish();
    let printed = lockhouse.run(&["audit", "query", "--event", "approval", "--outcome", "execution"]).stdout;
    assert!(printed.contains(&format!("through local, user {}", own_uid(&lockhouse))), "{printed}");
}

#[tokio::test]
async fn the_policy_of_each_run_and_every_accepted_or_rejected_reload_are_recorded() {
    let lockhouse = Lockhouse::with_fixture().config("[limits]\ntimeout_seconds = 20\n");
    let session = lockhouse.serve().await;
    session.run_code("python", "1").await;
    let (first, configuration) = (sha256(&lockhouse, POLICY_FILE), sha256(&lockhouse, CONFIG));
    let mut table = Table::new("policies and configurations");
    table.row(
        "the policy of a run",
        equal(records_of_event(&lockhouse, "execution")[0]["policy"].clone(), first.clone()),
    );
    lockhouse.file(POLICY_FILE, POLICY);
    session.reload().await;
    let second = sha256(&lockhouse, POLICY_FILE);
    let loaded = records_of_event(&lockhouse, "reload");
    let expected = json!(["accepted", "signal", second, first]);
    let summary = |record: &Value| {
        json!([record["outcome"], record["cause"], record["policy"], record["policy_before"]])
    };
    table.row("an accepted policy", equal(loaded.first().map(summary), Some(expected)));
    let same = loaded[0]["configuration"] == loaded[0]["configuration_before"]
        && !loaded[0]["configuration"].is_null();
    table.row(
        "an unchanged configuration",
        ensure(same && loaded[0]["configuration"] != configuration, &loaded[0]),
    );
    session.run_code("python", "1").await;
    table.row(
        "the next run",
        equal(records_of_event(&lockhouse, "execution")[1]["policy"].clone(), second.clone()),
    );
    lockhouse.file(POLICY_FILE, "version = 1\ntoken = \"SEKRET-in-a-fault\"\n");
    session.reload().await;
    let refused = wait_until("the rejected reload is recorded", async || {
        records_of_event(&lockhouse, "reload").get(1).cloned()
    })
    .await;
    let holds =
        refused["outcome"] == "refused" && refused["policy"] == second && refused["policy_before"] == second;
    table.row("a policy with a fault", ensure(holds, &refused));
    let reason = refused["reason"].as_str().unwrap_or_default();
    table.row("why", ensure(reason.contains("1 faults in ") && reason.contains("policy.toml"), reason));
    table.row("and nothing of the file", ensure(!refused.to_string().contains("SEKRET"), &refused));
    table.finish();
    assert_eq!(session.close().await.status, Some(0));
    assert_verified(&lockhouse);
}

#[test]
fn created_and_revoked_tokens_are_recorded_with_the_user_and_without_the_secret() {
    let lockhouse = Lockhouse::new();
    let created = lockhouse.run(&["token", "create", "desk", "--only", "files", "--expires", "90d"]);
    assert_eq!(created.status, Some(0), "{created:?}");
    assert_eq!(lockhouse.run(&["token", "create", "desk"]).status, Some(2), "the token exists already");
    assert_eq!(lockhouse.run(&["token", "revoke", "desk"]).status, Some(0));
    let records = records_of_event(&lockhouse, "token");
    let reported: Vec<Value> =
        records.iter().map(|record| json!([record["token"], record["outcome"], record["uid"]])).collect();
    let uid = own_uid(&lockhouse);
    assert_eq!(reported, [json!(["desk", "created", uid]), json!(["desk", "revoked", uid])], "{records:?}");
    assert!(records[0]["only"] == json!(["files"]) && records[0]["expires"].is_string(), "{records:?}");
    let token = created.stdout.trim();
    assert!(!format!("{records:?}").contains(&token[3..12]), "{records:?}");
    assert_verified(&lockhouse);
}

#[test]
fn without_an_audit_record_no_token_is_created_but_revocation_works() {
    let lockhouse = Lockhouse::new();
    assert_eq!(lockhouse.run(&["token", "create", "desk"]).status, Some(0), "control");
    // Creating a directory below a file always fails.
    let file = lockhouse.file("file", "");
    lockhouse.file(CONFIG, format!("[audit]\ndirectory = \"{}/audit\"\n", file.display()));
    let refused = lockhouse.run(&["token", "create", "other"]);
    let reported = refused.stderr.contains("no token was created") && refused.stdout.is_empty();
    assert!(refused.status == Some(7) && reported, "{refused:?}");
    let listed = lockhouse.run(&["token", "list"]).stdout;
    assert!(listed.contains("desk") && !listed.contains("other"), "{listed}");
    let revoked = lockhouse.run(&["token", "revoke", "desk"]);
    let warned =
        revoked.stderr.contains("WARNING") && revoked.stderr.contains("not recorded in the audit log");
    assert!(revoked.status == Some(0) && warned, "{revoked:?}");
    assert!(lockhouse.run(&["token", "list"]).stdout.contains("revoked"));
}

#[test]
fn accepted_tool_definitions_are_recorded_with_their_hash() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/scripted.py");
    let lockhouse = Lockhouse::new().policy("version = 1\n[servers.scripted]\nallow = [\"*\"]\n");
    let location = lockhouse.path("");
    let lockhouse =
        lockhouse.servers_entry("scripted", json!({"command": "python3", "args": [script, location]}));
    let diff = || lockhouse.run(&["server", "diff", "scripted", "--json"]).json();
    assert_eq!(diff()["changes"], json!([]), "the first meeting");
    lockhouse.file(
        "tools.json",
        r#"[{"name": "echo", "description": "another", "inputSchema": {"type": "object"}}]"#,
    );
    let digest = diff()["digest"].as_str().unwrap().to_owned();
    let accepted = lockhouse.run(&["server", "accept", "scripted", "--digest", &digest]);
    assert_eq!(accepted.status, Some(0), "{accepted:?}");
    let records = records_of_event(&lockhouse, "definition");
    let [record] = &records[..] else { panic!("one record: {records:?}") };
    let holds = record["server"] == "scripted"
        && record["tools"] == json!(["echo"])
        && record["uid"] == own_uid(&lockhouse)
        && record["digest"] == digest;
    assert!(holds, "{record}");
}

#[tokio::test]
async fn rejected_runs_are_recorded_at_a_limited_rate() {
    let lockhouse = Lockhouse::new().config("[clients]\nruns = \"1/h\"\n");
    let made = |name: &str| lockhouse.run(&["token", "create", name]).stdout.trim().to_owned();
    let (much, little) = (made("much"), made("little"));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("refused runs");
    for token in [&much, &little] {
        let first = daemon.http_client(Some(token)).run_code("python", "1").await;
        table.row("control: the first run", equal(first["value"].clone(), json!(1)));
    }
    for _ in 0..40 {
        daemon.http_client(Some(&much)).run_code("python", "2").await;
    }
    daemon.http_client(Some(&little)).run_code("python", "2").await;
    let records = records_of_event(&lockhouse, "refusal");
    let count = |client: &str| records.iter().filter(|record| record["client"] == client).count();
    table.row("records of a client that repeats rejected runs", equal(count("much"), 20));
    table.row("records of another client", equal(count("little"), 1));
    let record = &records[0];
    let reason = record["reason"].as_str().unwrap_or_default();
    let holds = record["outcome"] == "RateLimited"
        && record["language"] == "python"
        && reason.contains("rate limit for runs");
    table.row("the printed reason", ensure(holds && record["execution"].is_string(), record));
    let id = record["execution"].as_str().unwrap_or_default();
    let printed = lockhouse.run(&["audit", "show", id]);
    table.row(
        "shown by its id",
        ensure(printed.status == Some(0) && printed.stdout.contains("refusal"), &printed),
    );
    table.finish();
}
