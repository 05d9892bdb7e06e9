//! Tests of stored results: a truncated value can be read in full by the AI client that got it, for a limited time and
//! up to a total size.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, structured};
use serde_json::{Value, json};

const CONFIG: &str = "[limits]\nshown_bytes = 1000\n";
const ROWS: [(&str, &str); 2] = [
    ("python", "[{'id': i, 'name': f'row {i}'} for i in range(1000)]"),
    ("typescript", "Array.from({length: 1000}, (_, id) => ({id, name: `row ${id}`}))"),
];

fn handle(answer: &Value, part: &str) -> String {
    answer["truncated"][part]["handle"].as_str().unwrap_or_else(|| panic!("no handle: {answer}")).to_owned()
}

async fn get_result(session: &Session, arguments: Value) -> Value {
    structured(session.call("get_result", arguments).await)
}

/// Fetches a stored result with `get_result`, chunk by chunk, and returns the answers with the chunks.
async fn get_all_chunks(session: &Session, handle: &str) -> Vec<Value> {
    let (mut parts, mut offset) = (Vec::new(), json!(0));
    while !offset.is_null() {
        let part = get_result(session, json!({"handle": handle, "offset": offset})).await;
        offset = part["next_offset"].clone();
        parts.push(part);
        assert!(parts.len() < 1000, "it goes on and on: {:?}", parts.last());
    }
    parts
}

#[tokio::test]
async fn get_result_returns_consecutive_chunks() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let mut table = Table::new("parts");
    for (language, code) in ROWS {
        let answer = session.run_code(language, code).await;
        let parts = get_all_chunks(&session, &handle(&answer, "value")).await;
        let rows: Vec<Value> =
            parts.iter().flat_map(|part| part["value"].as_array().cloned().unwrap()).collect();
        let whole: Vec<Value> = (0..1000).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
        table.row(format!("{language}: a list by items"), ensure(rows == whole, parts.first()));
        let small = parts.iter().all(|part| part["value"].to_string().len() <= 1000);
        table.row(
            format!("{language}: in parts of the limit"),
            ensure(small && parts.len() > 10, parts.len()),
        );
        let told = (&parts[0]["offset"], &parts[0]["of"], &parts[0]["unit"]);
        table.row(
            format!("{language}: that say of what"),
            equal(told, (&json!(0), &json!(1000), &json!("items"))),
        );
    }
    let text = async |handle: String| -> String {
        get_all_chunks(&session, &handle)
            .await
            .iter()
            .map(|part| part["value"].as_str().unwrap().to_owned())
            .collect()
    };
    let answer = session.run_code("python", "for i in range(300): print('ž line', i)\n'ž' * 3000").await;
    table.row("text by characters", equal(text(handle(&answer, "value")).await, "ž".repeat(3000)));
    let printed: String = (0..300).map(|i| format!("ž line {i}\n")).collect();
    table.row("output by characters", equal(text(handle(&answer, "stdout")).await, printed));
    let answer = session.run_code("python", "{'a': list(range(1000))}").await;
    let object = json!({"a": (0..1000).collect::<Vec<u32>>()}).to_string();
    table.row("an object as JSON, by characters", equal(text(handle(&answer, "value")).await, object));
    let answer = session.run_code("python", "[1, 'x' * 5000, 2]").await;
    let parts = get_all_chunks(&session, &handle(&answer, "value")).await;
    table.row("an item that is too long is cut", ensure(parts[1]["cut"][0]["characters"] == 5000, &parts));
    table.finish();
}

#[tokio::test]
async fn invalid_handles_and_offsets_are_reported() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let answer = session.run_code(ROWS[0].0, ROWS[0].1).await;
    let known = handle(&answer, "value");
    let mut table = Table::new("arguments that get_result refuses");
    for (arguments, words) in [
        (json!({}), "handle is missing"),
        (json!({"handle": 5}), "handle is missing, or is not a string"),
        (json!({"handle": ""}), "is not valid"),
        (json!({"handle": "../../etc/passwd"}), "is not valid"),
        (json!({"handle": "0".repeat(32)}), "there is no result 00000000000000000000000000000000:"),
        (
            json!({"handle": known, "offset": 1000}),
            "offset 1000 is beyond the end: the result has 1000 items",
        ),
        (json!({"handle": known, "offset": u64::MAX}), "is beyond the end"),
        (json!({"handle": known, "offset": -1}), "offset must be a whole number"),
        (json!({"handle": known, "offset": 1.5}), "offset must be a whole number"),
        (json!({"handle": known, "offset": "10"}), "offset must be a whole number"),
        (json!({"handle": known, "offset": [0]}), "offset must be a whole number"),
    ] {
        let told = get_result(&session, arguments.clone()).await;
        let message = told["error"]["message"].as_str().unwrap_or_default();
        table.row(arguments.to_string(), ensure(told["status"] == "error" && message.contains(words), &told));
    }
    let told = get_result(&session, json!({"handle": known, "offset": 999})).await;
    table.row("the control: the last item", equal(&told["value"], &json!([{"id": 999, "name": "row 999"}])));
    table.finish();
}

#[tokio::test]
async fn load_result_returns_the_complete_value_to_code() {
    // No permission of the policy and no tool call is needed.
    let lockhouse = Lockhouse::new().config(CONFIG);
    let session = lockhouse.serve().await;
    let mut table = Table::new("load_result");
    for (maker, code) in ROWS {
        let answer = session.run_code(maker, code).await;
        let rows = handle(&answer, "value");
        let answer = session.run_code("python", "print('x' * 5000)").await;
        let text = handle(&answer, "stdout");
        for (language, code, expected) in [
            (
                "python",
                format!(
                    "from mcp_tools import load_result\nr = load_result('{rows}')\n[len(r), r[999]['name']]"
                ),
                json!([1000, "row 999"]),
            ),
            (
                "python",
                format!(
                    "from mcp_tools import Text, load_result\nr = load_result('{text}')\n[isinstance(r, Text), len(r)]"
                ),
                json!([true, 5001]),
            ),
            (
                "typescript",
                format!("const r = await loadResult('{rows}'); [r.length, r[999].name]"),
                json!([1000, "row 999"]),
            ),
            (
                "typescript",
                format!("import {{ load_result }} from 'mcp_tools'; (await load_result('{text}')).length"),
                json!(5001),
            ),
        ] {
            let answer = session.run_code(language, &code).await;
            let right = answer["value"] == expected && answer["calls"] == json!([]);
            table.row(format!("{language} reads what {maker} made: {expected}"), ensure(right, &answer));
        }
    }
    for (language, code) in [
        (
            "python",
            "from mcp_tools import load_result, ToolError\ntry: load_result('HANDLE')\nexcept ToolError as e: r = [e.code, str(e)]\nr",
        ),
        ("typescript", "try { await loadResult('HANDLE') } catch (e) { return [e.code, e.message] }"),
    ] {
        for handle in ["0".repeat(32), "../x".to_owned()] {
            let answer = session.run_code(language, &code.replace("HANDLE", &handle)).await;
            table.row(
                format!("{language}: {handle} is not found"),
                ensure(answer["value"][0] == "not_found", &answer),
            );
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_client_cannot_read_results_of_another_client() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let (one, other) = (lockhouse.serve().await, lockhouse.serve().await);
    let made = one.run_code(ROWS[0].0, ROWS[0].1).await;
    let handle = handle(&made, "value");
    let ask = json!({"handle": handle});
    let code = format!("from mcp_tools import load_result\nlen(load_result('{handle}'))");
    let mut table = Table::new("two clients");
    table.row("the control: its own client", ensure(get_result(&one, ask.clone()).await["of"] == 1000, ()));
    table.row("another's get_result", ensure(get_result(&other, ask).await["status"] == "error", ()));
    table.row(
        "the control: its own client's code",
        equal(&one.run_code("python", &code).await["value"], &json!(1000)),
    );
    table.row(
        "another's code",
        equal(&other.run_code("python", &code).await["error"]["code"], &json!("not_found")),
    );
    let found = lockhouse.run(&["result", &handle]);
    table.row("lockhouse result", ensure(found.status == Some(2) && found.stdout.is_empty(), &found));
    let again = other.run_code(ROWS[0].0, ROWS[0].1).await;
    table.row(
        "each handle is another",
        ensure(again["truncated"]["value"]["handle"] != handle.as_str(), &again),
    );
    table.finish();
}

#[tokio::test]
async fn stored_results_are_bounded() {
    let lockhouse = Lockhouse::new().config("[limits]\nshown_bytes = 1000\n[results]\nkeep_mib = 1\n");
    let session = lockhouse.serve().await;
    let mut handles = Vec::new();
    for _ in 0..6 {
        handles.push(handle(&session.run_code("python", "'x' * 250_000").await, "value"));
    }
    let mut there = Vec::new();
    for handle in &handles {
        there.push(get_result(&session, json!({"handle": handle})).await["of"] == 250_000);
    }
    assert_eq!(there, [false, false, true, true, true, true], "the oldest go first");
    let answer = session.run_code("python", "'x' * 270_000").await;
    let cut = &answer["truncated"];
    assert!(
        cut["value"]["handle"].is_null() && cut["hint"].as_str().unwrap().contains("return or print less"),
        "{cut}"
    );

    let lockhouse = Lockhouse::new().config("[limits]\nshown_bytes = 1000\n[results]\nkeep_seconds = 1\n");
    let session = lockhouse.serve().await;
    let known = handle(&session.run_code("python", "'x' * 5000").await, "value");
    lockhouse_tests::wait_until("its time is over", async || {
        let told = get_result(&session, json!({"handle": known})).await;
        let message = told["error"]["message"].as_str().unwrap_or_default().to_owned();
        message.contains("until this client disconnects, for at most 1 s").then_some(())
    })
    .await;

    let lockhouse = Lockhouse::new().config("[limits]\nshown_bytes = 1000\n[results]\nkeep_mib = 0\n");
    let answer = lockhouse.serve().await.run_code("python", "'x' * 5000").await;
    assert!(answer["truncated"]["value"]["handle"].is_null(), "{answer}");
}

#[test]
fn results_of_lockhouse_run_are_stored_in_separate_files() {
    let lockhouse = Lockhouse::new().config(CONFIG);
    let mut table = Table::new("lockhouse run and lockhouse result");
    let answer = lockhouse.answer("python", "print('ž' * 2000)\n[{'id': i} for i in range(1000)]");
    let (rows, text) = (handle(&answer, "value"), handle(&answer, "stdout"));
    let directory = lockhouse.path("state/lockhouse/results");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    table.row(
        "two files of the user alone",
        ensure(files.len() == 2 && files.iter().all(|file| mode(file) == 0o600), &files),
    );
    table.row("in a directory of the user alone", equal(mode(&directory), 0o700));
    let whole = lockhouse.run(&["result", &rows]);
    let parsed: Value = serde_json::from_str(&whole.stdout).unwrap_or_default();
    table.row(
        "a value, whole",
        ensure(parsed.as_array().is_some_and(|rows| rows.len() == 1000), &whole.stderr),
    );
    table.row(
        "a text, whole",
        equal(lockhouse.run(&["result", &text]).stdout, format!("{}\n\n", "ž".repeat(2000))),
    );
    let part = lockhouse.run(&["result", &rows, "--offset", "998", "--json"]).json();
    table.row(
        "a part",
        equal(part, json!({"value": [{"id": 998}, {"id": 999}], "offset": 998, "of": 1000, "unit": "items"})),
    );
    let part = lockhouse.run(&["result", &text, "--offset", "1999"]);
    table.row("a part of a text", equal(part.stdout, "ž\n\n".to_owned()));
    let of_prefix = lockhouse.run(&["result", &rows[..16], "--json"]).json();
    table.row("by a prefix of its handle", equal(&of_prefix["of"], &json!(1000)));
    let twin = format!("{}{}", &rows[..31], if rows.ends_with('0') { '1' } else { '0' });
    std::fs::write(directory.join(format!("{twin}.json")), "1").unwrap();
    let several = lockhouse.run(&["result", &rows[..31]]);
    let listed = several.status == Some(2)
        && several.stdout.is_empty()
        && several.stderr.contains(&rows)
        && several.stderr.contains(&twin);
    table.row("an ambiguous prefix", ensure(listed, &several));
    table.row("one of both, whole", equal(lockhouse.run(&["result", &twin]).stdout, "1\n".to_owned()));
    std::fs::remove_file(directory.join(format!("{twin}.json"))).unwrap();
    let none = lockhouse.run(&["result", &"0".repeat(32)]);
    table
        .row("none of that name", ensure(none.status == Some(2) && none.stderr.contains("no result"), &none));
    let none = lockhouse.run(&["result", "../audit/segments"]);
    table.row("no path", ensure(none.status == Some(2) && none.stderr.contains("not valid"), &none));
    let answer = lockhouse.answer("typescript", &format!("(await loadResult('{rows}')).length"));
    table.row("read by the code of a later run", equal(&answer["value"], &json!(1000)));

    let long_ago = SystemTime::now() - Duration::from_secs(3_601);
    std::fs::File::options()
        .write(true)
        .open(directory.join(format!("{text}.json")))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    let none = lockhouse.run(&["result", &text]);
    table.row(
        "not beyond its time",
        ensure(none.status == Some(2) && none.stderr.contains("no result"), &none),
    );
    table.row("when its file goes", ensure(!directory.join(format!("{text}.json")).exists(), ()));
    table.row("the control: the other stays", equal(lockhouse.run(&["result", &rows]).status, Some(0)));
    table.finish();
}
