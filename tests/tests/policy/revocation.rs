//! Tests of policy changes while a program runs: a permission that is removed is revoked at once, and a permission that
//! is added applies only to later executions.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, fixture_server, structured, wait_until};
use serde_json::{Value, json};

fn policy(allow: &str) -> String {
    format!("version = 1\n[servers.fixture]\nallow = [{allow}]\n")
}

/// A Python program that makes calls and lists tools, calls `slow`, and then repeats the same calls and lists. The test
/// changes the policy during the call of `slow`.
const PROGRAM: &str = "\
import mcp_tools
from mcp_tools import call_tool, list_servers, search_tools, ToolError
def now():
    codes = []
    for tool, arguments in [('add', {'a': 1, 'b': 2}), ('text', {'text': 'x'})]:
        try: call_tool('fixture', tool, arguments); codes.append('ok')
        except ToolError as error: codes.append(error.code)
    return codes + [list_servers()[0]['tools'], len(search_tools('add text slow', limit=50))]
before = now()
call_tool('fixture', 'slow', {'ms': 1500})
[before, now()]
";

async fn run_with_policy_change(lockhouse: &Lockhouse, before: &str, after: &str) -> (Value, String) {
    lockhouse.file("config/lockhouse/policy.toml", policy(before));
    let session = lockhouse.serve().await;
    let recorded = lockhouse.audit().len();
    let running = session.start_code("python", PROGRAM);
    wait_until("the slow call goes out", async || {
        let records = lockhouse.audit();
        records[recorded.min(records.len())..]
            .iter()
            .any(|record| record["event"] == "call" && record["tool"] == "slow")
            .then_some(())
    })
    .await;
    lockhouse.file("config/lockhouse/policy.toml", policy(after));
    let said = session.reload().await;
    (structured(running.await.unwrap())["value"].clone(), said)
}

#[tokio::test]
async fn a_new_policy_revokes_permissions_of_running_programs_and_grants_none() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let rows = [
        (
            "taken away",
            r#""slow", "add", "text""#,
            r#""slow", "text""#,
            json!([["ok", "ok", 3, 3], ["denied", "ok", 2, 2]]),
        ),
        (
            "all taken away",
            r#""slow", "add", "text""#,
            "",
            json!([["ok", "ok", 3, 3], ["denied", "denied", 0, 0]]),
        ),
        ("given", r#""slow", "add""#, r#""*""#, json!([["ok", "denied", 2, 2], ["ok", "denied", 2, 2]])),
        (
            "one for the other",
            r#""slow", "add""#,
            r#""slow", "text""#,
            json!([["ok", "denied", 2, 2], ["denied", "denied", 1, 1]]),
        ),
    ];
    let mut table = Table::new("a policy that changes during a run");
    for (name, before, after, expected) in rows {
        let (found, said) = run_with_policy_change(&lockhouse, before, after).await;
        table.row(name, equal(found, expected));
        table.row(format!("{name}: told"), ensure(said.contains("in force"), said));
    }
    table.finish();
}

#[tokio::test]
async fn a_queued_call_is_not_sent_once_it_is_revoked() {
    let of_both = |allow: &str| format!("{}[servers.other]\nallow = [\"text\"]\n", policy(allow));
    let fixture = fixture_server();
    let config = format!(
        "[servers.fixture]\ncommand = {fixture:?}\nparallel_calls = 1\n[servers.other]\ncommand = {fixture:?}\n"
    );
    let lockhouse = Lockhouse::new().policy(&of_both(r#""*""#)).config(&config);
    let session = lockhouse.serve().await;
    let recorded = async |event: &str, tool: &str| {
        wait_until(&format!("the {event} of {tool}"), async || {
            let mut records = lockhouse.audit().into_iter();
            records.any(|record| record["event"] == event && record["tool"] == tool).then_some(())
        })
        .await;
    };
    let slow = session.start_code("python", "import mcp_tools\nmcp_tools.fixture.slow(ms=2500)");
    recorded("call", "slow").await;
    let code = "import mcp_tools\nfrom mcp_tools import ToolError\nmcp_tools.other.text(text='x')\n\
                try: r = mcp_tools.fixture.add(a=1, b=2)['sum']\nexcept ToolError as e: r = e.code\nr";
    let waiting = session.start_code("python", code);
    recorded("outcome", "text").await;
    // Lockhouse handles the program's next call before the server answers this one.
    session.run_code("python", "1").await;
    lockhouse.file("config/lockhouse/policy.toml", of_both(r#""slow""#));
    session.reload().await;
    assert!(!slow.is_finished(), "the turn came too early");
    assert_eq!(structured(waiting.await.unwrap())["value"], "denied");
    assert_eq!(structured(slow.await.unwrap())["status"], "ok");
    let made =
        lockhouse.audit().into_iter().any(|record| record["event"] == "call" && record["tool"] == "add");
    assert!(!made, "{:?}", lockhouse.audit());
}
