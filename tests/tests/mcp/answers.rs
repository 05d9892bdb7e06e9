//! Tests of the forms of answers to `run_code`: the text that a model reads, and the first content block. The first
//! content block must never contain a truncated value that a program could parse as a complete one.

use lockhouse_tests::{LANGUAGES, Lockhouse, Session, Table, ensure, equal};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use crate::direct_tools::legacy;
use crate::direct_tools::raw_client::Pipe;

const CONFIG: &str = "[limits]\nshown_bytes = 1000\n";
/// A key in the `_meta` object of a tool result. Its value has those parts of the run's answer that the text for the
/// model omits.
const META_KEY: &str = "lockhouse/run";

async fn connect(lockhouse: &Lockhouse, form: &str) -> Session {
    Session::connect(lockhouse.command(&["serve", "--answer", form]), Session::latest()).await
}

async fn run(session: &Session, language: &str, code: &str) -> CallToolResult {
    session.call("run_code", json!({"language": language, "code": code})).await.unwrap()
}

/// Returns the text blocks of a result.
fn texts(result: &CallToolResult) -> Vec<String> {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.clone()).collect()
}

/// Parses the first text block of a result as JSON. Returns `None` if it is not JSON.
fn parsed(result: &CallToolResult) -> Option<Value> {
    serde_json::from_str(texts(result).first()?).ok()
}

fn meta(result: &CallToolResult) -> Value {
    serde_json::to_value(result).unwrap()["_meta"][META_KEY].clone()
}

#[tokio::test]
async fn the_first_block_parses_exactly_if_the_value_is_whole() {
    let whole = [
        ("a number", ["6 * 7", "6 * 7"], json!(42)),
        ("a text with quotes", ["'\"a\"\\n'", "'\"a\"\\n'"], json!("\"a\"\n")),
        ("null in a list", ["[None, {'a': 1}]", "[null, {a: 1}]"], json!([null, {"a": 1}])),
        ("a value after output", ["print('[1]')\n{'a': 1}", "console.log('[1]'); ({a: 1})"], json!({"a": 1})),
        (
            "a list with the words of a cut",
            ["['… 9 more items …']", "['… 9 more items …']"],
            json!(["… 9 more items …"]),
        ),
    ];
    let not_whole = [
        ("a cut list", ["list(range(6000))", "Array.from({length: 6000}, (_, i) => i)"], "Value cut: "),
        ("a cut text", ["'1' * 5000", "'1'.repeat(5000)"], "Value cut: 5,000 bytes"),
        (
            "a cut object",
            ["{'a': list(range(6000))}", "({a: Array.from({length: 6000}, (_, i) => i)})"],
            "Value cut: ",
        ),
        ("no value", ["x = 1", "const x = 1;"], "No value: end with an expression"),
        ("output alone", ["print('[1, 2]')", "console.log('[1, 2]')"], "No value, only printed output"),
        ("an error", ["raise ValueError('[1]')", "throw new RangeError('[1]')"], "Error: [1] (line 1)"),
        ("a syntax error", ["(", "("], "SyntaxError: "),
        ("a time limit", ["while True: pass", "while (true) {}"], "TimeoutError: the code did not end"),
    ];
    let lockhouse = Lockhouse::new().config(CONFIG);
    let mut table = Table::new("the first block");
    for form in ["text", "value"] {
        let session = connect(&lockhouse, form).await;
        for (index, language) in LANGUAGES.into_iter().enumerate() {
            for (name, code, value) in &whole {
                let result = run(&session, language, code[index]).await;
                table
                    .row(format!("{form}, {language}: {name}"), equal(parsed(&result).as_ref(), Some(value)));
            }
            for (name, code, words) in &not_whole {
                let timeout = if *name == "a time limit" { 0.5 } else { 30.0 };
                let arguments = json!({"language": language, "code": code[index], "timeout_s": timeout});
                let result = session.call("run_code", arguments).await.unwrap();
                let said = texts(&result).first().is_some_and(|text| text.contains(words));
                table.row(
                    format!("{form}, {language}: {name}"),
                    ensure(parsed(&result).is_none() && said, texts(&result)),
                );
            }
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_run_that_is_still_running_has_a_sentence_with_its_handle() {
    let lockhouse = Lockhouse::new().config("[runs]\nwait_seconds = 0.3\n");
    let programs = ["import time\ntime.sleep(4)\n7", "await new Promise(done => setTimeout(done, 4000)); 7"];
    let mut table = Table::new("runs that outlive their request");
    for form in ["text", "value"] {
        let session = connect(&lockhouse, form).await;
        for (language, code) in LANGUAGES.into_iter().zip(programs) {
            let running = run(&session, language, code).await;
            let handle = meta(&running)["handle"].clone();
            let text = texts(&running).remove(0);
            let named = text.starts_with("Still running (")
                && handle.as_str().is_some_and(|handle| text.contains(handle));
            table.row(
                format!("{form}, {language}: running"),
                ensure(named && parsed(&running).is_none(), &text),
            );
            let ended = session.call("get_result", json!({"handle": handle, "wait_s": 30})).await.unwrap();
            table.row(format!("{form}, {language}: its answer"), equal(parsed(&ended), Some(json!(7))));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_cut_value_is_read_in_parts_that_do_not_look_whole() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = connect(&lockhouse, "text").await;
    let cut = run(&session, "python", "list(range(2000))").await;
    let handle = meta(&cut)["truncated"]["value"]["handle"].clone();
    let (mut items, mut offset, mut table) = (Vec::new(), json!(0), Table::new("parts"));
    let named = texts(&cut)[0].contains(handle.as_str().unwrap_or("no handle"));
    table.row("the sentence has the handle", ensure(named, texts(&cut)));
    while !offset.is_null() {
        let part = session.call("get_result", json!({"handle": handle, "offset": offset})).await.unwrap();
        let text = texts(&part).remove(0);
        table.row(
            format!("the part from {offset}"),
            ensure(parsed(&part).is_none() && text.starts_with("Part of the value: items "), &text),
        );
        let (_, list) = text.split_once('\n').expect("a sentence and the part");
        items.extend(serde_json::from_str::<Vec<u64>>(list).unwrap());
        offset = meta(&part)["next_offset"].clone();
    }
    table.row("all parts are the whole", equal(items, (0..2000).collect()));
    table.finish();
}

#[tokio::test]
async fn text_has_output_and_changes_and_value_has_the_value_alone() {
    let lockhouse = Lockhouse::with_fixture();
    let code = "import sys\nfrom mcp_tools.fixture import text\nprint('out')\nprint('err', file=sys.stderr)\ntext(text='x')";
    let mut table = Table::new("blocks of an answer");
    let text = connect(&lockhouse, "text").await;
    let result = run(&text, "python", code).await;
    let blocks = texts(&result);
    table.row("text: the value", equal(blocks[0].as_str(), "\"x\""));
    table.row("text: the output", equal(blocks.get(1).map(String::as_str), Some("\nout\nstderr:\nerr\n")));
    let members = meta(&result);
    let ids = members["execution"].is_string()
        && members["status"] == "ok"
        && members["calls"][0]["tool"] == "text";
    table.row("text: the rest is in _meta", ensure(ids && members.get("stdout").is_none(), &members));
    table.row("text: nothing is structured", ensure(result.structured_content.is_none(), &result));
    let value = connect(&lockhouse, "value").await;
    let result = run(&value, "python", code).await;
    table.row("value: the value alone", equal(texts(&result), vec!["\"x\"".to_owned()]));
    table.row("value: the output is in _meta", equal(&meta(&result)["stdout"], &json!("out\n")));
    table.finish();
}

#[tokio::test]
async fn an_output_schema_comes_only_with_structured_content() {
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("schemas and structured content");
    for (form, is_structured) in [("text", false), ("value", false), ("structured", true)] {
        let session = connect(&lockhouse, form).await;
        for tool in session.tools().await {
            table.row(
                format!("{form}: schema of {}", tool.name),
                equal(tool.output_schema.is_some(), is_structured),
            );
        }
        for (tool, arguments) in [
            ("run_code", json!({"language": "python", "code": "1"})),
            ("run_code", json!({"language": "python", "code": "1 / 0"})),
            ("run_code", json!({"language": "cobol", "code": "1"})),
            ("get_result", json!({"handle": "0".repeat(32)})),
            ("get_result", json!({})),
            ("search_tools", json!({"query": "add"})),
            ("search_tools", json!({"query": 3})),
        ] {
            let result = session.call(tool, arguments.clone()).await.unwrap();
            let has_text = texts(&result).first().is_some_and(|text| !text.is_empty());
            let outcome = has_text && result.structured_content.is_some() == is_structured;
            table.row(format!("{form}: {tool} {arguments}"), ensure(outcome, &result));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_search_answers_with_lines() {
    let lockhouse = Lockhouse::with_fixture();
    let session = connect(&lockhouse, "text").await;
    let search = async |arguments| texts(&session.call("search_tools", arguments).await.unwrap()).remove(0);
    let mut table = Table::new("searches");
    let found = search(json!({"query": "add numbers"})).await;
    table.row(
        "python",
        ensure(found.starts_with("fixture.add(a: float, b: float)") && found.contains("  # "), &found),
    );
    let found = search(json!({"query": "add numbers", "language": "typescript"})).await;
    table.row("typescript", ensure(found.starts_with("fixture.add({ a: number, b: number })"), &found));
    let found = search(json!({"query": "add numbers", "detail": "names"})).await;
    table.row("names", ensure(found.lines().next() == Some("fixture.add"), &found));
    let found = search(json!({"query": "add", "detail": "full"})).await;
    table.row("full", ensure(found.contains("\"inputSchema\""), &found));
    let found = search(json!({"query": "zebra"})).await;
    table.row("nothing", ensure(found.starts_with("No match among ") && found.contains("fixture "), &found));
    let found = search(json!({"query": "server:fixture"})).await;
    table.row("all tools of a server, as the sentence says", ensure(found.starts_with("fixture."), &found));
    table.finish();
}

#[tokio::test]
async fn over_http_each_client_has_its_form() {
    let lockhouse = Lockhouse::new().config("[http.answers]\nreader = \"value\"\nprogram = \"structured\"\n");
    let daemon = lockhouse_tests::Daemon::open(lockhouse.command(&[
        "serve",
        "--answer",
        "text",
        "--listen",
        "127.0.0.1:0",
    ]))
    .await;
    let mut table = Table::new("forms of clients");
    for (name, blocks, is_structured) in [("reader", 1, false), ("program", 1, true), ("other", 2, false)] {
        let created = lockhouse.run(&["token", "create", name]);
        let client = daemon.http_client(Some(created.stdout.trim()));
        let mut message = client.calling("run_code", json!({"language": "python", "code": "print(1)\n2"}));
        // A client cannot select its form by the name that it reports.
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] =
            json!({"name": "program", "version": "0"});
        let result = client.post(&message).await.answer()["result"].clone();
        let outcome = (result["content"].as_array().map(Vec::len), result["structuredContent"].is_object());
        table.row(name, equal(outcome, (Some(blocks), is_structured)));
    }
    table.finish();
}

#[test]
fn an_unknown_form_is_refused() {
    let lockhouse = Lockhouse::new();
    let refused = lockhouse.run(&["serve", "--answer", "json"]);
    assert!(
        refused.status == Some(2) && refused.stderr.contains("text, value, labelled or structured"),
        "{refused:?}"
    );
    let lockhouse = Lockhouse::new().config("[http.answers]\nada = \"json\"\n");
    let refused = lockhouse.run(&["config", "check"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("structured"), "{refused:?}");
    let lockhouse = Lockhouse::new().config("[http.answers]\nada = \"value\"\n");
    assert_eq!(lockhouse.run(&["config", "check"]).status, Some(0), "the control");
}

/// Codex sends the id of its own call in `_meta`. The id begins with `exec-` if a program of its code mode makes the call.
#[tokio::test]
async fn a_program_of_codex_gets_the_value_alone() {
    let lockhouse = Lockhouse::new();
    let serve = lockhouse.command(&["serve", "--answer", "text"]);
    let mut pipe = Pipe::initialized(serve, json!({})).await;
    let mut table = Table::new("callId");
    let (whole, value) = (json!(["42", "\n1\n"]), json!(["42"]));
    for (number, (meta, expected)) in [
        (json!({"callId": "exec-7"}), &value),
        (json!({"callId": "call_7"}), &whole),
        (json!({"callId": "7-exec-"}), &whole),
        (json!({"callId": 7}), &whole),
        (json!({}), &whole),
    ]
    .into_iter()
    .enumerate()
    {
        let arguments = json!({"language": "python", "code": "print(1)\n42"});
        let call = json!({"name": "run_code", "arguments": arguments, "_meta": meta});
        let answer = pipe.answer(&legacy(number as u64 + 1, "tools/call", call)).await;
        let blocks = answer["result"]["content"].as_array().cloned().unwrap_or_default();
        let texts: Value = blocks.into_iter().map(|block| block["text"].clone()).collect();
        table.row(meta.to_string(), equal(&texts, expected));
    }
    table.finish();
}
