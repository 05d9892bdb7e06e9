//! Tests of the records of changed files.

use std::os::unix::fs::MetadataExt as _;

use lockhouse_tests::{Approver, Lockhouse, Table, ensure, equal, fixture_server, wait_until};
use serde_json::{Value, json};

use super::{Acts, OF_CHANGE, ONE_TOOL, changed};
use crate::audit::{ADD, POLICY, assert_verified};

const CONFIG: &str = "config/lockhouse/config.toml";
const POLICY_FILE: &str = "config/lockhouse/policy.toml";

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

#[test]
fn changes_of_skills_are_recorded_with_their_digests() {
    let lockhouse = Lockhouse::new();
    let draft =
        "import skills\nskills.save('mine', 'A skill.', ['tag'], code='def mine():\\n    return 1\\n')";
    assert_eq!(lockhouse.answer("python", draft)["value"]["state"], "draft");
    let mut acts = Acts::new(&lockhouse);
    let mut table = Table::new("skills");
    assert_eq!(lockhouse.run(&["skills", "approve", "mine"]).stderr.matches("--yes").count(), 1);
    table.row("unasked", equal(acts.next(), vec![]));
    for action in ["approve", "remove"] {
        let finished = lockhouse.run(&["skills", action, "mine", "--yes"]);
        table.row(format!("{action}: it succeeds"), ensure(finished.status == Some(0), &finished));
        let records = acts.next();
        let [record] = &records[..] else { panic!("{records:?}") };
        let summary: Value = OF_CHANGE.iter().map(|name| record[*name].clone()).collect();
        table.row(action, equal(summary, changed("skill", &format!("{action} mine"), "command")));
        let digests = [&record["digest_before"], &record["digest"]];
        let known = digests.map(|digest| digest.as_str().is_some_and(|digest| digest.len() == 64));
        table.row(format!("{action}: digests"), equal(known, [action == "remove", action == "approve"]));
    }
    table.finish();
}

#[test]
fn no_skill_is_approved_without_a_record() {
    let lockhouse = Lockhouse::new();
    let draft =
        "import skills\nskills.save('mine', 'A skill.', ['tag'], code='def mine():\\n    return 1\\n')";
    let mut table = Table::new("skills without an audit log");
    for (action, is_made) in [("approve", false), ("remove", true)] {
        lockhouse.file(CONFIG, "");
        assert_eq!(lockhouse.answer("python", draft)["value"]["state"], "draft");
        lockhouse.file("in-the-way", "");
        lockhouse.file(
            CONFIG,
            format!("[audit]\ndirectory = \"{}\"\n", lockhouse.path("in-the-way/log").display()),
        );
        let finished = lockhouse.run(&["skills", action, "mine", "--yes"]);
        let said = finished.stderr.contains(if is_made { "not recorded" } else { "nothing was changed" });
        table.row(action, ensure(said && (finished.status == Some(0)) == is_made, &finished));
    }
    table.finish();
}
