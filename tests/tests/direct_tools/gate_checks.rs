//! Tests that a call of a directly exposed tool is treated like a call from a program: the policy decides on
//! it, and the audit log records it.

use lockhouse_tests::{Approver, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use super::raw_client::Pipe;
use super::{ALL, legacy, lockhouse, modern};

const DIRECT: &str = "expose = \"direct\"";
const SOME: &str = "version = 1\n[servers.fixture]\nallow = [\"test_simple_text\", \"test_elicitation\"]\n\
    ask = [\"test_image_content\"]\nresources = [\"test://static-text\"]\nprompts = [\"test_simple_prompt\"]\n";

fn call(tool: &str) -> Value {
    json!({"name": format!("fixture__{tool}"), "arguments": {}})
}

fn names(list: &Value, of: &str) -> Vec<String> {
    let entries = list["result"][of].as_array().cloned().unwrap_or_default();
    let name =
        |entry: &Value| entry["uri"].as_str().or(entry["name"].as_str()).unwrap_or_default().to_owned();
    entries.iter().map(name).collect()
}

/// Returns a text `KIND NAME` for each audit record that is about a call, in the order of the log.
fn recorded(lockhouse: &Lockhouse) -> Vec<String> {
    let name = |record: &Value| {
        let named =
            ["tool", "resource", "prompt", "name", "item"].iter().find_map(|key| record[*key].as_str());
        format!(
            "{} {}",
            record["type"].as_str().or(record["kind"].as_str()).unwrap_or("?"),
            named.unwrap_or("?")
        )
    };
    lockhouse.audit().iter().map(name).collect()
}

#[tokio::test]
async fn denied_items_are_neither_listed_nor_reachable() {
    let lockhouse = lockhouse("--modern", DIRECT, SOME);
    let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
    let mut id = 0;
    let mut ask = async |method: &str, parameters: Value| {
        id += 1;
        pipe.answer(&modern(id, method, parameters, &json!({}))).await
    };
    let mut table = Table::new("direct access to what is denied, each with its positive control");
    let tools = names(&ask("tools/list", json!({})).await, "tools");
    table.row(
        "tools/list shows what is permitted, and no more",
        equal(
            tools,
            ["run_code", "search_tools", "get_result"]
                .iter()
                .map(ToString::to_string)
                .chain(
                    ["test_simple_text", "test_image_content", "test_elicitation"]
                        .map(|name| format!("fixture__{name}")),
                )
                .collect(),
        ),
    );
    let resources = names(&ask("resources/list", json!({})).await, "resources");
    table.row("resources/list", equal(resources, vec!["test://static-text".to_owned()]));
    let templates = names(&ask("resources/templates/list", json!({})).await, "resourceTemplates");
    table.row("resources/templates/list", equal(templates, Vec::new()));
    let prompts = names(&ask("prompts/list", json!({})).await, "prompts");
    table.row("prompts/list", equal(prompts, vec!["fixture__test_simple_prompt".to_owned()]));

    let permitted = ask("tools/call", call("test_simple_text")).await;
    let is_said = permitted["result"]["content"][0]["text"] == "This is a simple text response for testing.";
    table.row("a permitted tool answers", ensure(is_said, &permitted));
    let denied = ask("tools/call", call("strange_result")).await;
    let text = denied["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let is_denied = denied["result"]["isError"] == true && text.starts_with("denied: ");
    table.row("a denied tool does not", ensure(is_denied, &denied));
    // This client has no elicitation capability.
    let unasked = ask("tools/call", call("test_image_content")).await;
    let text = unasked["result"]["content"][0]["text"].as_str().unwrap_or_default();
    table.row("a tool that requires approval", ensure(text.starts_with("approval_declined: "), &unasked));

    for (kind, method, good, bad) in [
        (
            "resource",
            "resources/read",
            json!({"uri": "test://static-text"}),
            json!({"uri": "test://strange"}),
        ),
        (
            "prompt",
            "prompts/get",
            json!({"name": "fixture__test_simple_prompt"}),
            json!({"name": "fixture__test_prompt_with_image"}),
        ),
        (
            "completion",
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "fixture__test_simple_prompt"}, "argument": {"name": "a", "value": "p"}}),
            json!({"ref": {"type": "ref/prompt", "name": "fixture__test_prompt_with_image"}, "argument": {"name": "a", "value": "p"}}),
        ),
    ] {
        let good = ask(method, good).await;
        table.row(format!("a permitted {kind}"), ensure(good.get("result").is_some(), &good));
        let bad = ask(method, bad).await;
        table.row(format!("a denied {kind}"), ensure(bad["error"]["data"]["code"] == "denied", &bad));
    }
    let unknown = ask("tools/call", json!({"name": "fixture__no_such_tool", "arguments": {}})).await;
    table.row("an unknown tool", equal(unknown["error"]["code"].clone(), json!(-32602)));
    drop(pipe);
    let text = serde_json::to_string(&lockhouse.audit()).expect("JSON");
    for (kind, name) in [
        ("call", "test_simple_text"),
        ("denial", "strange_result"),
        ("denial", "test_image_content"),
        ("denial", "test://strange"),
    ] {
        table.row(
            format!("the log has a {kind} of {name}"),
            ensure(text.contains(kind) && text.contains(name), recorded(&lockhouse)),
        );
    }
    table.finish();
}

#[tokio::test]
async fn direct_calls_ask_for_approval_through_the_client_once_per_call() {
    let lockhouse = lockhouse("--modern", DIRECT, SOME);
    let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
    let able = json!({"elicitation": {"form": {}}});
    let mut table = Table::new("a direct call that requires approval");
    for (number, (reply_text, expected)) in
        [("once", "image"), ("deny", "approval_declined")].into_iter().enumerate()
    {
        let id = number as u64 * 10;
        let asked = pipe.answer(&modern(id + 1, "tools/call", call("test_image_content"), &able)).await;
        let (key, question) = asked["result"]["inputRequests"]
            .as_object()
            .and_then(|requests| requests.iter().next())
            .unwrap_or_else(|| panic!("a question: {asked}"));
        let printed = question["params"]["message"].as_str().unwrap_or_default();
        table.row(
            format!("{reply_text}: the question names the tool"),
            ensure(printed.contains("test_image_content"), printed),
        );
        let field = question["params"]["requestedSchema"]["properties"]
            .as_object()
            .and_then(|fields| fields.keys().next());
        let answer = match reply_text {
            "once" => json!({"action": "accept", "content": {field.expect("a field"): "once"}}),
            _ => json!({"action": "decline"}),
        };
        let mut again = call("test_image_content");
        again["requestState"] = asked["result"]["requestState"].clone();
        again["inputResponses"] = json!({key: answer});
        let mut other = again.clone();
        other["name"] = "fixture__test_simple_text".into();
        let other = pipe.answer(&modern(id + 2, "tools/call", other, &able)).await;
        table
            .row(format!("{reply_text}: not for another call"), ensure(other.get("error").is_some(), &other));
        let answered = pipe.answer(&modern(id + 3, "tools/call", again.clone(), &able)).await;
        table.row(
            format!("{reply_text}: the answer"),
            ensure(answered.to_string().contains(expected), &answered),
        );
        let twice = pipe.answer(&modern(id + 4, "tools/call", again, &able)).await;
        table.row(format!("{reply_text}: not twice"), ensure(twice.get("error").is_some(), &twice));
    }
    table.finish();
}

#[tokio::test]
async fn direct_exposure_is_configured_per_server() {
    let mut table = Table::new("expose");
    let program = "from mcp_tools import list_servers\n[server['name'] for server in list_servers()]";
    for (expose, directly, imported) in [("code", false, true), ("direct", true, false), ("both", true, true)]
    {
        let keys = format!("expose = \"{expose}\"");
        let lockhouse = lockhouse("--modern", &keys, ALL);
        let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
        let tools = names(&pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await, "tools");
        let has = tools.contains(&"fixture__test_simple_text".to_owned());
        table.row(format!("{expose}: among the client's tools"), equal(has, directly));
        let called = pipe.answer(&modern(2, "tools/call", call("test_simple_text"), &json!({}))).await;
        table.row(format!("{expose}: called directly"), equal(called.get("result").is_some(), directly));
        let prompts = pipe.answer(&modern(3, "prompts/list", json!({}), &json!({}))).await;
        table.row(format!("{expose}: prompts"), equal(prompts.get("result").is_some(), directly));
        let code = json!({"name": "run_code", "arguments": {"language": "python", "code": program}});
        let ran = pipe.answer(&modern(4, "tools/call", code, &json!({}))).await;
        let servers = ran["result"]["structuredContent"]["value"].clone();
        table.row(
            format!("{expose}: known to code ({servers})"),
            equal(servers.to_string().contains("fixture"), imported),
        );
    }
    table.finish();
}

#[tokio::test]
async fn elicitation_is_translated_between_all_protocol_forms() {
    let mut table = Table::new("elicitation by an upstream server during a call");
    let able = json!({"elicitation": {"form": {}}});
    let mut asking = call("test_elicitation");
    asking["arguments"] = json!({"message": "Who are you?"});
    let content = json!({"action": "accept", "content": {"username": "ada", "email": "a@b.c"}});
    for era in ["--legacy", "--modern"] {
        let lockhouse = lockhouse(era, DIRECT, ALL);
        let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
        let asked = pipe.answer(&modern(1, "tools/call", asking.clone(), &able)).await;
        let requests = asked["result"]["inputRequests"].as_object().cloned().unwrap_or_default();
        let (key, question) = requests.iter().next().unwrap_or_else(|| panic!("a question: {asked}"));
        let message = question["params"]["message"].clone();
        table.row(
            format!("{era} to a modern client: the question names its server"),
            equal(message, json!("Server fixture asks: Who are you?")),
        );
        let mut again = asking.clone();
        again["inputResponses"] = json!({key: content});
        if let Some(state) = asked["result"].get("requestState") {
            again["requestState"] = state.clone();
        }
        let answered = pipe.answer(&modern(2, "tools/call", again, &able)).await;
        table.row(
            format!("{era} to a modern client: the answer arrives"),
            ensure(answered.to_string().contains("ada"), &answered),
        );
        let mut pipe = Pipe::initialized(lockhouse.command(&["serve"]), able.clone()).await;
        pipe.send(&legacy(5, "tools/call", asking.clone())).await;
        let question: Value =
            serde_json::from_str(&pipe.line_with("elicitation/create").await).expect("JSON");
        pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": content})).await;
        let answered = pipe.line_with("User response").await;
        table.row(
            format!("{era} to an older client: the answer arrives"),
            ensure(answered.contains("ada"), &answered),
        );
    }
    table.finish();
}

/// What an AI client sends beside the arguments of a direct call reaches the server, so the approval covers it.
#[tokio::test]
async fn an_approver_sees_what_a_direct_call_sends_beside_its_arguments() {
    let lockhouse = lockhouse("--modern", DIRECT, SOME);
    let mut pipe = Pipe::open(lockhouse.command(&["serve"]));
    pipe.answer(&modern(1, "tools/list", json!({}), &json!({}))).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let mut table = Table::new("direct calls");
    let mut digests = Vec::new();
    for (number, (beside, words)) in [
        (json!({}), "without arguments.\n"),
        (
            json!({"inputResponses": {"k": {"action": "accept", "content": {"to": "eve"}}}, "requestState": "s"}),
            "\"(beside the arguments)\": {\n    |     \"inputResponses\": {",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut parameters = call("test_image_content");
        parameters.as_object_mut().unwrap().extend(beside.as_object().cloned().unwrap());
        let request = modern(number as u64 + 2, "tools/call", parameters, &json!({}));
        let answering = async {
            let question = approver.next("ask").await;
            approver.answer(&question, "approve", "once").await;
            question["ask"].clone()
        };
        let (_, question) = tokio::join!(pipe.answer(&request), answering);
        let text = question["text"].as_str().unwrap_or_default();
        table.row(format!("{beside}"), ensure(text.contains(words), text));
        let is_complete = number == 0 || text.contains("\"to\": \"eve\"") && text.contains("\"requestState\": \"s\"");
        table.row(format!("{beside}: all of it"), ensure(is_complete, text));
        digests.push(question["digest"].clone());
    }
    let records = lockhouse.audit();
    let calls: Vec<&Value> = records.iter().filter(|record| record["event"] == "call").collect();
    table.row("calls", equal(calls.len(), 2));
    let hashes: Vec<&Value> = calls.iter().map(|call| &call["arguments_hash"]).collect();
    table.row("the log covers it", ensure(hashes.first() != hashes.last(), &hashes));
    table.finish();
}
