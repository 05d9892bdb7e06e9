//! Tests of the result shapes (field names and types) that Lockhouse observes in the results of calls. A shape must
//! contain no values of the results.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, structured, wait_until};
use serde_json::{Value, json};

const DENYING_POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"echo\"]\n";
/// A Python program that calls two tools, whose results have personal data in their keys and values.
const PROGRAM: &str = "\
from mcp_tools.fixture import echo, text
for n in range(2):
    echo(value={'id': n, 'owner': 'anna.secret', 'tags': ['x'], 'by_mail': {'anna@example.com': 1}, 'anna.secret': True, 'note': None if n else 'x'})
    echo(value={'id': n, 'owner': 'anna.secret', 'tags': ['x'], 'by_mail': {'anna@example.com': 1}})
    text(text='a zebra')
";
const ORDINARY_PROGRAM: &str = "\
from mcp_tools.fixture import echo, text
for n in range(2):
    echo(value={'id': n, 'owner': 'anna.secret', 'tags': ['x'], 'by_mail': {'anna@example.com': 1}})
    text(text='a zebra')
";

async fn search_in_full(session: &Session, tool: &str) -> Value {
    let asked = json!({"query": format!("fixture.{tool}"), "detail": "full"});
    structured(session.call("search_tools", asked).await)["tools"][0].clone()
}

async fn learn_shapes(lockhouse: &Lockhouse, program: &str) -> Value {
    let session = lockhouse.serve().await;
    let learned = wait_until("the results are learned", async || {
        // Lockhouse learns from one result at a time and skips others meanwhile, so the program runs until both were
        // observed.
        let answer = session.run_code("python", program).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        let tool = search_in_full(&session, "echo").await;
        (tool["observedOutput"].to_string().contains("value")
            && search_in_full(&session, "text").await.get("observedOutput").is_some())
        .then_some(tool)
    })
    .await;
    session.close().await;
    learned
}

#[tokio::test]
async fn fields_and_types_are_shown_as_observed_and_outlive_the_process() {
    let lockhouse = Lockhouse::with_fixture();
    let learned = learn_shapes(&lockhouse, ORDINARY_PROGRAM).await;
    let signature = learned["python"].as_str().unwrap();
    let mut table = Table::new("learned shapes");
    table.row(
        "the signature",
        ensure(signature.contains("id: int") && signature.contains("owner: str"), signature),
    );
    table.row("says that it is observed", ensure(signature.contains("# observed"), signature));
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
    let kept = stored_shapes(&lockhouse);
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
async fn an_object_with_values_as_keys_is_shown_as_a_map() {
    let lockhouse = Lockhouse::with_fixture();
    let learned = learn_shapes(&lockhouse, PROGRAM).await;
    let value = &learned["observedOutput"]["properties"]["value"];
    assert!(value.get("properties").is_none() && value.get("additionalProperties").is_some(), "{learned}");
    assert!(!stored_shapes(&lockhouse).contains("anna"), "{}", stored_shapes(&lockhouse));
}

#[tokio::test]
async fn without_permission_to_call_a_tool_its_result_shape_is_hidden() {
    let lockhouse = Lockhouse::with_fixture();
    learn_shapes(&lockhouse, ORDINARY_PROGRAM).await;
    let lockhouse = lockhouse.policy(DENYING_POLICY);
    let shown = lockhouse.run(&["tools", "shapes", "--json"]).json();
    assert!(!shown.to_string().contains("echo") && shown.to_string().contains("text"), "{shown}");
    let show = lockhouse.run(&["tools", "show", "fixture.echo"]);
    assert!(show.stdout.contains("deny") && !show.stdout.contains("owner"), "{}", show.stdout);
}

#[tokio::test]
async fn no_shapes_are_learned_if_learning_is_disabled() {
    let lockhouse = Lockhouse::with_fixture().config("[catalogue]\nlearn = false\n");
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ORDINARY_PROGRAM).await["status"], "ok");
    assert!(search_in_full(&session, "echo").await.get("observedOutput").is_none());
    session.close().await;
    assert_eq!(stored_shapes(&lockhouse), "");
}

/// Returns the concatenated texts of all stored result shapes.
fn stored_shapes(lockhouse: &Lockhouse) -> String {
    let Ok(files) = std::fs::read_dir(lockhouse.path("cache/lockhouse/shapes")) else { return String::new() };
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}
