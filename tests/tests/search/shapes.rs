//! What results look like is learned from calls, and nothing of what they say.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, structured, wait_until};
use serde_json::{Value, json};

const DENIED: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"echo\"]\n";
/// Two results, with a person's data in keys and values.
const PROGRAM: &str = "\
from mcp_tools.fixture import echo, text
for n in range(2):
    echo(value={'id': n, 'owner': 'anna.secret', 'tags': ['x'], 'by_mail': {'anna@example.com': 1}, 'anna.secret': True, 'note': None if n else 'x'})
    echo(value={'id': n, 'owner': 'anna.secret', 'tags': ['x'], 'by_mail': {'anna@example.com': 1}})
    text(text='{\"zebra\": 1}')
";
const NICE: &str = "\
from mcp_tools.fixture import echo, text
for n in range(2):
    echo(value={'id': n, 'owner': 'anna.secret', 'tags': ['x'], 'by_mail': {'anna@example.com': 1}})
    text(text='{\"zebra\": 1}')
";

async fn full(session: &Session, tool: &str) -> Value {
    let asked = json!({"query": format!("fixture.{tool}"), "detail": "full"});
    structured(session.call("search_tools", asked).await)["tools"][0].clone()
}

async fn taught(lockhouse: &Lockhouse, program: &str) -> Value {
    let session = lockhouse.serve().await;
    let learned = wait_until("the results are learned", async || {
        // Results are learned from one at a time: what comes meanwhile is left out, so the program runs until both were heard.
        let answer = session.run_code("python", program).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        let tool = full(&session, "echo").await;
        (tool["observedOutput"].to_string().contains("value")
            && full(&session, "text").await.get("observedOutput").is_some())
        .then_some(tool)
    })
    .await;
    session.close().await;
    learned
}

#[tokio::test]
async fn fields_and_types_are_shown_as_observed_and_outlive_the_process() {
    let lockhouse = Lockhouse::with_fixture();
    let learned = taught(&lockhouse, NICE).await;
    let signature = learned["python"].as_str().unwrap();
    let mut table = Table::new("learned shapes");
    table.row(
        "the signature",
        ensure(signature.contains("id: int") && signature.contains("owner: str"), signature),
    );
    table.row("says that it is observed", ensure(signature.contains("# results as observed"), signature));
    let of_mail = &learned["observedOutput"]["properties"]["value"]["properties"]["by_mail"];
    let is_map = *of_mail == json!({"type": "object", "additionalProperties": {"type": "integer"}});
    table.row("a map has no keys", ensure(is_map, of_mail));
    let shown = lockhouse.run(&["tools", "shapes", "--json"]);
    let rows = shown.json();
    let tools: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["tool"]).collect();
    table.row("another process shows them", ensure(tools.contains(&&json!("echo")), &rows));
    let text = rows.as_array().unwrap().iter().find(|row| row["tool"] == "text").unwrap();
    table.row("a text is a text", ensure(text["observed"] == json!({"type": "string"}), text));
    let described = lockhouse.answer("python", "from mcp_tools import describe\ndescribe('fixture.echo')");
    table.row(
        "code is told",
        ensure(described["value"]["observedOutput"] == learned["observedOutput"], &described),
    );
    let kept = kept(&lockhouse);
    for value in ["anna", "secret", "example.com", "zebra"] {
        table.row(
            format!("nothing of {value}"),
            ensure(!kept.contains(value) && !rows.to_string().contains(value), &kept),
        );
    }
    let one = lockhouse.run(&["tools", "shapes", "--forget", "fixture.echo"]);
    table.row("one is forgotten", ensure(one.stdout.contains("1 tool"), &one.stdout));
    let left = lockhouse.run(&["tools", "shapes", "--json"]).json();
    table.row("the other is left", ensure(left.as_array().unwrap().len() == tools.len() - 1, &left));
    table.finish();
}

#[tokio::test]
async fn a_key_that_is_a_value_makes_a_map_of_its_object() {
    let lockhouse = Lockhouse::with_fixture();
    let learned = taught(&lockhouse, PROGRAM).await;
    let value = &learned["observedOutput"]["properties"]["value"];
    assert!(value.get("properties").is_none() && value.get("additionalProperties").is_some(), "{learned}");
    assert!(!kept(&lockhouse).contains("anna"), "{}", kept(&lockhouse));
}

#[tokio::test]
async fn who_may_not_call_a_tool_sees_nothing_of_its_results() {
    let lockhouse = Lockhouse::with_fixture();
    taught(&lockhouse, NICE).await;
    let lockhouse = lockhouse.policy(DENIED);
    let shown = lockhouse.run(&["tools", "shapes", "--json"]).json();
    assert!(!shown.to_string().contains("echo") && shown.to_string().contains("text"), "{shown}");
    let show = lockhouse.run(&["tools", "show", "fixture.echo"]);
    assert!(show.stdout.contains("deny") && !show.stdout.contains("owner"), "{}", show.stdout);
}

#[tokio::test]
async fn nothing_is_learned_where_that_is_switched_off() {
    let lockhouse = Lockhouse::with_fixture().config("[catalogue]\nlearn = false\n");
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", NICE).await["status"], "ok");
    assert!(full(&session, "echo").await.get("observedOutput").is_none());
    session.close().await;
    assert_eq!(kept(&lockhouse), "");
}

/// All that is kept of shapes.
fn kept(lockhouse: &Lockhouse) -> String {
    let Ok(files) = std::fs::read_dir(lockhouse.path("cache/lockhouse/shapes")) else { return String::new() };
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}
