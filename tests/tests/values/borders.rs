//! Tests that values cross the borders between servers and programs as the tables in docs/values.md say: each table row is
//! tried.

use std::path::{Path, PathBuf};

use lockhouse_tests::{HttpAnswer, HttpServer, Lockhouse, Table, ensure, equal, structured};
use serde_json::{Value, json};

use super::mapping::{code, expected, rows};

/// A Lockhouse with the upstream server `borders`, which answers with results byte for byte and shows the arguments that it
/// receives.
pub(super) struct Borders {
    pub(super) lockhouse: Lockhouse,
    results: PathBuf,
}

impl Borders {
    pub(super) fn new() -> Self {
        let lockhouse = Lockhouse::new();
        let results = lockhouse.path("results");
        std::fs::create_dir_all(&results).expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/borders.py");
        let entry = json!({"command": "python3", "args": ["-B", script, results]});
        let policy = "version = 1\n[servers.borders]\nallow = [\"*\"]\nresources = [\"x:*\"]\n";
        Self { lockhouse: lockhouse.servers_entry("borders", entry).policy(policy), results }
    }

    /// Sets the JSON text of the result that `give(NAME)` answers.
    pub(super) fn set_result(&self, name: &str, json: &str) {
        std::fs::write(self.results.join(name), json).expect("written");
    }
}

/// Returns the value of an answer, or its error as `TYPE: MESSAGE`.
pub(super) fn value_or_error(answer: &Value) -> Value {
    let part = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    match answer["error"].is_null() {
        true => answer["value"].clone(),
        false => format!("{}: {}", part("type"), part("message")).into(),
    }
}

/// Returns the program that shows the member `v` of the result of the tool `give` of a server, as a table cell does.
fn program(language: &str, server: &str, name: &str) -> String {
    match language {
        "python" => format!("from mcp_tools.{server} import give\nrepr(give(name='{name}')['v'])"),
        _ => format!("console.log({{ v: (await {server}.give({{ name: '{name}' }})).v }})"),
    }
}

/// Returns what a program of [`program`] shows.
fn shown(language: &str, answer: &Value) -> String {
    match language {
        "python" => value_or_error(answer).as_str().unwrap_or_default().to_owned(),
        _ => {
            let printed = answer["stdout"].as_str().unwrap_or_default();
            let line = printed.split_whitespace().collect::<Vec<_>>().join(" ");
            let inner = line.strip_prefix("{ v: ").and_then(|rest| rest.strip_suffix(" }"));
            inner.map_or_else(|| value_or_error(answer).to_string(), str::to_owned)
        }
    }
}

/// Returns the rows of the table of values from a server: JSON, and what Python and TypeScript show.
fn values_from_servers() -> Vec<(String, String, String)> {
    let text = |cell: &str| code(cell).expect("code").to_owned();
    let rows = rows("### From a server to a program", 3);
    rows.iter().map(|row| (text(&row[0]), text(&row[1]), text(&row[2]))).collect()
}

#[tokio::test]
async fn values_of_servers_reach_programs_as_documented() {
    let borders = Borders::new();
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("from a server to a program");
    for (index, (json, python, typescript)) in values_from_servers().into_iter().enumerate() {
        let object = format!("{{\"v\": {json}}}");
        let structured = format!("{{\"content\": [], \"structuredContent\": {object}}}");
        let text = format!("{{\"content\": [{{\"type\": \"text\", \"text\": {}}}]}}", Value::from(object));
        for (form, result) in [("structured", structured), ("text", text)] {
            let name = format!("{form}-{index}");
            borders.set_result(&name, &result);
            for (language, expected) in [("python", &python), ("typescript", &typescript)] {
                let answer = session.run_code(language, &program(language, "borders", &name)).await;
                table.row(format!("{language}: {form}: {json}"), equal(&shown(language, &answer), expected));
            }
        }
    }
    table.finish();
}

#[tokio::test]
async fn values_over_http_are_the_same() {
    let values = values_from_servers();
    let members: Vec<String> =
        values.iter().enumerate().map(|(index, (json, ..))| format!("\"v{index}\":{json}")).collect();
    let result = format!("{{\"content\":[],\"structuredContent\":{{{}}}}}", members.join(","));
    let server = HttpServer::start(move |request| {
        let tool =
            json!({"name": "give", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
        if request.rpc() == "tools/list" {
            return HttpAnswer::json(200, &request.result(&json!({"tools": [tool]})));
        }
        if request.rpc() == "tools/call" {
            let body =
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", request.message()["id"]);
            return HttpAnswer::Full(200, vec![("Content-Type".into(), "application/json".into())], body);
        }
        request.as_mcp(true).unwrap_or_else(|| HttpAnswer::status(202))
    });
    let policy = "version = 1\n[servers.far]\nallow = [\"*\"]\n";
    let lockhouse = Lockhouse::new().servers_entry("far", json!({"url": server.url("/mcp")})).policy(policy);
    let session = lockhouse.serve().await;
    let mut table = Table::new("over HTTP");
    for (index, (json, python, typescript)) in values.iter().enumerate() {
        for (language, expected) in [("python", python), ("typescript", typescript)] {
            let of_all = program(language, "far", "x");
            let of_one =
                of_all.replace("['v']", &format!("['v{index}']")).replace(").v ", &format!(").v{index} "));
            let answer = session.run_code(language, &of_one).await;
            table.row(format!("{language}: {json}"), equal(&shown(language, &answer), expected));
        }
    }
    table.finish();
}

#[tokio::test]
async fn values_of_programs_reach_servers_as_documented() {
    let borders = Borders::new();
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("from a program to a server");
    for row in rows("### From a program to a server", 4) {
        let kind = &row[0];
        let (python, typescript) = expected(&row[3]);
        for (language, cell, expected) in [("python", &row[1], python), ("typescript", &row[2], typescript)] {
            let Some(argument) = code(cell) else { continue };
            let program = match language {
                "python" => {
                    format!("from mcp_tools.borders import *\ntake_{kind}(value={argument})")
                }
                _ => format!("await borders.take_{kind}({{ value: {argument} }})"),
            };
            let answer = session.run_code(language, &program).await;
            let sent = answer["value"].as_str().and_then(|text| text.strip_prefix("sent: "));
            let outcome = match &expected {
                Some(expected) => equal(sent.map(as_json), Some(expected.to_string())),
                None => ensure(answer["status"] == "error", &answer["value"]),
            };
            table.row(format!("{language}: {kind}: {argument}"), outcome);
        }
    }
    table.finish();
}

/// Converts the text in which the server shows an argument to JSON, with each number as it was written.
fn as_json(shown: &str) -> String {
    fn literal(value: &Value) -> String {
        let join = |parts: Vec<String>| parts.join(",");
        match value {
            Value::String(text) => match text.strip_prefix("int ").or_else(|| text.strip_prefix("float ")) {
                // In the form in which the test prints the expected number.
                Some(number) => serde_json::from_str::<Value>(number).expect("a number").to_string(),
                None => value.to_string(),
            },
            Value::Array(items) => format!("[{}]", join(items.iter().map(literal).collect())),
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| format!("{}:{}", json!(name), literal(value));
                format!("{{{}}}", join(members.iter().map(member).collect()))
            }
            other => other.to_string(),
        }
    }
    literal(&serde_json::from_str(shown).expect("JSON"))
}

/// A large integer passes every other way of a value into a program without loss: resources, stored results, sessions,
/// files, skills, descriptions.
#[tokio::test]
async fn large_integers_keep_their_digits_on_every_way() {
    let borders = Borders::new();
    let id = "7960607143101464577";
    let text = format!("{{\\\"id\\\": {id}}}");
    borders.set_result("one", &format!("{{\"structuredContent\": {{\"id\": {id}}}}}"));
    borders.set_result(
        "resource",
        &format!("{{\"contents\": [{{\"uri\": \"x:resource\", \"text\": \"{text}\"}}]}}"),
    );
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("ways into a program");
    let long = "'x' * 20_000";
    for (name, python, typescript) in [
        ("a result", "give(name='one')['id']", "(await borders.give({ name: 'one' })).id"),
        (
            "a resource",
            "__import__('json').loads(read_resource('borders', 'x:resource'))['id']",
            "JSON.parse(await readResource('borders', 'x:resource')).id",
        ),
        (
            "a file",
            "(open('/tmp/a', 'w').write('[7960607143101464577]'), __import__('json').load(open('/tmp/a'))[0])[1]",
            "(await files.write('/tmp/a', '[7960607143101464577]'), JSON.parse(await files.read('/tmp/a'))[0])",
        ),
        (
            "JSON that is written and read again",
            "__import__('json').loads(__import__('json').dumps(give(name='one')))['id']",
            "JSON.parse(JSON.stringify(await borders.give({ name: 'one' }))).id",
        ),
        (
            "JSON that a reviver reads",
            "__import__('json').loads('{\"id\": 7960607143101464577}', object_hook=dict)['id']",
            "JSON.parse('{\"id\": 7960607143101464577}', (key, value) => value).id",
        ),
        (
            "a copy",
            "__import__('copy').deepcopy(give(name='one'))['id']",
            "structuredClone(await borders.give({ name: 'one' })).id",
        ),
    ] {
        let python = format!(
            "from mcp_tools import read_resource\nfrom mcp_tools.borders import give\n[{python} == {id}, {python}]"
        );
        let typescript = format!("const v = {typescript};\nreturn [v === {id}n, v]");
        for (language, code) in [("python", &python), ("typescript", &typescript)] {
            let answer = session.run_code(language, code).await;
            table.row(format!("{language}: {name}"), equal(value_or_error(&answer), json!([true, id])));
        }
    }
    let stored = session.run_code("python", &format!("[{id}, {long}]")).await;
    let handle = stored["truncated"]["value"]["handle"].as_str().unwrap_or_default();
    let python = format!("from mcp_tools import load_result\nload_result('{handle}')[0] + 1 == {id} + 1");
    let typescript = format!("const [v] = await loadResult('{handle}'); return v === {id}n");
    for (language, code) in [("python", python), ("typescript", typescript)] {
        let answer = session.run_code(language, &code).await;
        table.row(format!("{language}: a stored result"), equal(value_or_error(&answer), json!(true)));
    }
    let largest = "18446744073709551615";
    let described = "describe('borders', 'list_pages')";
    for (language, code) in [
        (
            "python",
            format!(
                "from mcp_tools import describe\n{described}['inputSchema']['properties']['limit']['maximum'] == {largest}"
            ),
        ),
        ("typescript", format!("(await {described}).inputSchema.properties.limit.maximum === {largest}n")),
    ] {
        let answer = session.run_code(language, &code).await;
        table.row(format!("{language}: a description"), equal(value_or_error(&answer), json!(true)));
    }
    for (language, first, second) in [
        (
            "python",
            "from mcp_tools.borders import give\nkept = give(name='one')".to_owned(),
            format!("kept['id'] == {id}"),
        ),
        (
            "typescript",
            "const kept = await borders.give({ name: 'one' })".to_owned(),
            format!("kept.id === {id}n"),
        ),
    ] {
        let mut answer = json!(null);
        for code in [first, second] {
            let arguments = json!({"language": language, "code": code, "session": language});
            answer = structured(session.call("run_code", arguments).await);
        }
        table.row(format!("{language}: a session"), equal(value_or_error(&answer), json!(true)));
    }
    table.row("the model reads digits of a stored result", equal(&stored["preview"][0], &json!(id)));
    table.finish();
}

#[tokio::test]
async fn what_would_lose_digits_says_so() {
    let borders = Borders::new();
    borders.set_result("one", r#"{"structuredContent": {"id": 7960607143101464577}}"#);
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("programs that would lose digits");
    let mixed = "an integer beyond 2^53 in a result is a BigInt: calculate with BigInts alone, such as x + 1n, or use Number(x) where lost digits do not matter";
    for (code, message, hint) in [
        (
            "await borders.take_integer({ value: 7960607143101464577 })",
            "SyntaxError: 7960607143101464577 is beyond 2^53 and would become 7960607143101464576: write 7960607143101464577n, which is a BigInt and keeps all digits",
            None,
        ),
        (
            "await borders.take_integer({ value: Number((await borders.give({ name: 'one' })).id) })",
            "ToolError: take_integer: /value must be an integer, and 7.960607143101465e18 is a float beyond 2^53, which may have lost digits: pass the exact integer (an int in Python, a BigInt such as 9007199254740993n in TypeScript)",
            None,
        ),
        (
            "(await borders.give({ name: 'one' })).id + 1",
            "TypeError: cannot convert BigInt to number",
            Some(mixed),
        ),
        (
            "await borders.take_any({ value: [2n ** 70n] })",
            "ToolError: the arguments have an integer of more than 64 bits, which a number would round: pass it as text, \"1180591620717411303424\"",
            None,
        ),
    ] {
        let answer = session.run_code("typescript", code).await;
        let found = (value_or_error(&answer), answer["error"]["hint"].as_str());
        table.row(code, equal(found, (json!(message), hint)));
    }
    table.finish();
}
