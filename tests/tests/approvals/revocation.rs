//! Tests of policies, symbolic links in paths, and tool definitions that change while an approval is pending: the
//! approval does not permit a call that the policy denies after the change.

use std::path::Path;

use lockhouse_tests::{Approver, ClientUser, Lockhouse, Session, Table, ensure, equal};
use serde_json::json;

use crate::approvals::{ONE, lockhouse, records, session};

#[tokio::test]
async fn an_approval_is_void_once_the_policy_denies_its_call() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut table = Table::new("approvals of calls that a new policy denies");
    let rows = [
        ("denied", "allow = [\"count\"]\ndeny = [\"add\"]\n", false),
        ("no longer listed", "allow = [\"count\"]\n", false),
        ("still requires approval", "allow = [\"count\"]\nask = [\"add\", \"text\"]\n", true),
        ("allowed", "allow = [\"count\", \"add\"]\n", true),
    ];
    let before = std::fs::read_to_string(lockhouse.path("config/lockhouse/policy.toml")).unwrap();
    for (name, lists, made) in rows {
        lockhouse.file("config/lockhouse/policy.toml", &before);
        session.reload().await;
        let made_before = records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count();
        let mut approver = Approver::connected(&lockhouse).await;
        let running = session.start_code("python", ONE);
        let question = approver.next("ask").await;
        lockhouse.file("config/lockhouse/policy.toml", format!("version = 1\n[servers.fixture]\n{lists}"));
        let log = session.reload().await;
        approver.answer(&question, "approve", "once").await;
        let answer = lockhouse_tests::structured(running.await.unwrap());
        let value = &answer["value"][0];
        let outcome = if made { *value == 3 } else { value[0] == "denied" };
        table.row(name, ensure(outcome && log.contains("in force"), format!("{answer} {log}")));
        let calls = records(&lockhouse, "call").iter().filter(|call| call["tool"] == "add").count();
        table.row(format!("{name}: calls"), equal(calls - made_before, usize::from(made)));
    }
    let control = session.run_code("python", "import mcp_tools\nmcp_tools.fixture.count()").await;
    table.row("what arrived", equal(control["value"]["add"].clone(), json!(2)));
    table.finish();
}

#[tokio::test]
async fn an_approval_of_a_path_covers_only_the_target_it_resolved_to() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let (kept, link) = (lockhouse.path("kept"), lockhouse.path("kept/link"));
    for folder in ["kept/inner", "kept/second", "other"] {
        std::fs::create_dir_all(lockhouse.path(folder)).unwrap();
    }
    let rule = format!(
        "[[servers.fixture.rules]]\ntool = \"text\"\nwhen = {{ text = {{ under = {kept:?} }} }}\neffect = \"ask\"\n"
    );
    lockhouse
        .file("config/lockhouse/policy.toml", format!("version = 1\n[servers.fixture]\nallow = []\n{rule}"));
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let code = format!(
        "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('fixture', 'text', {{'text': {:?}}})\nexcept ToolError as e: r = e.code\nr",
        link.join("file")
    );
    let point_at = |folder: &str| {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(lockhouse.path(folder), &link).unwrap();
    };
    let mut table = Table::new("a link that changes while an approval of its target is pending");
    for (meanwhile, made) in [("kept/inner", true), ("kept/second", false), ("other", false)] {
        point_at("kept/inner");
        let mut approver = Approver::connected(&lockhouse).await;
        let running = session.start_code("python", &code);
        let question = approver.next("ask").await;
        point_at(meanwhile);
        approver.answer(&question, "approve", "once").await;
        let answer = lockhouse_tests::structured(running.await.unwrap());
        table.row(meanwhile, ensure((answer["value"] == "denied") != made, answer));
    }
    table.finish();
}

#[tokio::test]
async fn an_approval_of_a_changed_tool_is_void_once_the_policy_blocks_changed_tools() {
    let policy = |on_change: &str| {
        format!("version = 1\n[servers.scripted]\nask = [\"*\"]\non_change = \"{on_change}\" # {on_change}\n")
    };
    let tools = |description: &str| {
        json!([{"name": "echo", "description": description, "inputSchema": {"type": "object"}}]).to_string()
    };
    let lockhouse = Lockhouse::new().policy(&policy("warn"));
    let path = lockhouse.file("scripted/tools.json", tools("Says it."));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/scripted.py");
    let arguments = json!([script, path.parent().unwrap()]);
    let lockhouse =
        lockhouse.config(&format!("[servers.scripted]\ncommand = \"python3\"\nargs = {arguments}\n"));
    let before = lockhouse.serve().await;
    before.run_code("python", "from mcp_tools import scripted\nscripted.list_tools()").await;
    before.close().await;
    lockhouse.file("scripted/tools.json", tools("Says it to everybody."));

    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let code = "from mcp_tools import scripted, ToolError\n\
        try: r = scripted.echo(text='x')\nexcept ToolError as e: r = [e.code, str(e)]\nr";
    let mut table = Table::new("approval of a changed tool under a new policy");
    for (on_change, made) in [("warn", true), ("block", false)] {
        let mut approver = Approver::connected(&lockhouse).await;
        let running = session.start_code("python", code);
        let question = approver.next("ask").await;
        lockhouse.file("config/lockhouse/policy.toml", policy(on_change));
        session.reload().await;
        approver.answer(&question, "approve", "once").await;
        let answer = lockhouse_tests::structured(running.await.unwrap());
        let value = &answer["value"];
        let message = value[1].as_str().unwrap_or_default();
        let refused = value[0] == "denied" && message.contains("on_change is \"block\"");
        table.row(on_change, ensure(if made { *value == "x" } else { refused }, &answer));
    }
    table.row("calls", equal(records(&lockhouse, "call").len(), 1));
    table.finish();
}
