//! Tests that programs reach everything of a result, also of a failed one, and that results which MCP does not permit are
//! errors of the tool.

use lockhouse_tests::{Table, equal};
use serde_json::{Value, json};

use super::borders::{Borders, value_or_error};

const PYTHON: &str =
    "from mcp_tools import ToolError, call_tool, full_result\nfrom mcp_tools.borders import give\n";

/// Returns a Python and a TypeScript program that make `full` from the result of `give(NAME)` and return an expression.
fn programs(name: &str, python: &str, typescript: &str) -> [(&'static str, String); 2] {
    [
        (
            "python",
            format!(
                "{PYTHON}try:\n  value = give(name='{name}')\nexcept ToolError as error:\n  value = error\nfull = full_result(value)\n{python}"
            ),
        ),
        (
            "typescript",
            format!(
                "let value;\ntry {{ value = await borders.give({{ name: '{name}' }}) }} catch (error) {{ value = error }}\n\
                 const full = fullResult(value);\nreturn {typescript}"
            ),
        ),
    ]
}

#[tokio::test]
async fn content_and_meta_of_a_result_can_be_read() {
    let borders = Borders::new();
    let text = |text: &str| json!({"type": "text", "text": text});
    let (a, b) = (text("a"), text("b"));
    let noted = json!({"type": "text", "text": "a", "annotations": {"priority": 1}});
    let link = json!({"type": "resource_link", "uri": "x:y", "name": "y"});
    let rows = json!({"rows": 3});
    let mut table = Table::new("result → value, content, structured content, _meta");
    let session = borders.lockhouse.serve().await;
    for (index, (result, value, full)) in [
        (
            json!({"content": [a, link], "structuredContent": rows, "_meta": {"page": 2}}),
            rows.clone(),
            json!([[a, link], rows, {"page": 2}]),
        ),
        (
            json!({"content": [text("{\"rows\": 3}")], "structuredContent": rows}),
            rows.clone(),
            json!([[], rows, null]),
        ),
        (json!({"content": [a], "structuredContent": {}}), json!("a"), json!([[a], null, null])),
        (json!({"content": [], "structuredContent": {}}), json!({}), json!([[], {}, null])),
        (json!({"content": [a]}), json!("a"), json!([[a], null, null])),
        (
            json!({"content": [text("[1]")], "_meta": {"n": 1}}),
            json!([1]),
            json!([[text("[1]")], null, {"n": 1}]),
        ),
        (json!({"content": [noted]}), json!("a"), json!([[noted], null, null])),
        (json!({"content": [a, b]}), json!(["a", "b"]), json!([[a, b], null, null])),
        (json!({"content": []}), json!([]), json!([[], null, null])),
        (json!({"content": [], "_meta": {"n": 1}}), json!([]), json!([[], null, {"n": 1}])),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("r{index}");
        borders.set_result(&name, &result.to_string());
        let python = "[value, [full['content'], full.get('structuredContent'), full.get('_meta')]]";
        let typescript = "[value, [full.content, full.structuredContent ?? null, full._meta ?? null]]";
        for (language, code) in programs(&name, python, typescript) {
            let answer = session.run_code(language, &code).await;
            table.row(format!("{language}: {result}"), equal(value_or_error(&answer), json!([value, full])));
        }
    }
    table.finish();
}

#[tokio::test]
async fn bytes_of_content_are_bytes() {
    let borders = Borders::new();
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let file = json!({"type": "resource", "resource": {"uri": "x:y", "blob": "aG8", "mimeType": "a/b"}});
    borders
        .set_result("bytes", &json!({"content": [image, file], "structuredContent": {"n": 1}}).to_string());
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("bytes in content");
    let python = "[bytes(full['content'][0]['data']).decode(), bytes(full['content'][1]['resource']['blob']).decode(), full['content'][1]['resource']['uri']]";
    let typescript = "[String.fromCharCode(...full.content[0].data), String.fromCharCode(...full.content[1].resource.data), full.content[1].resource.uri]";
    for (language, code) in programs("bytes", python, typescript) {
        let answer = session.run_code(language, &code).await;
        table.row(language, equal(value_or_error(&answer), json!(["hi", "ho", "x:y"])));
    }
    table.finish();
}

/// Equal values of several calls: the latest call counts. A result of an earlier run of a session is found, too.
#[tokio::test]
async fn the_content_of_equal_values_is_that_of_the_latest_call() {
    let borders = Borders::new();
    let rich = json!({"content": [{"type": "text", "text": "more"}], "structuredContent": {"result": 5}});
    borders.set_result("rich", &rich.to_string());
    borders.set_result("null", r#"{"content": [{"type": "text", "text": "null"}], "_meta": {"n": 1}}"#);
    borders.set_result("plain-null", r#"{"content": [{"type": "text", "text": "null"}]}"#);
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("equal values");
    for (language, code, expected) in [
        (
            "python",
            format!("{PYTHON}first = full_result(give(name='null'))\nsecond = full_result(give(name='plain-null'))\n[first['_meta'], '_meta' in second]"),
            json!([{"n": 1}, false]),
        ),
        (
            "typescript",
            "const first = fullResult(await borders.give({ name: 'null' }));\nconst second = fullResult(await borders.give({ name: 'plain-null' }));\n\
             return [first._meta, '_meta' in second]"
                .to_owned(),
            json!([{"n": 1}, false]),
        ),
        (
            "python",
            format!("{PYTHON}many = [give(name='rich') for _ in range(300)]\n[full_result(many[-1])['content'][0]['text'], full_result(many[0])]"),
            json!("LookupError: this result is no longer kept: full_result knows the latest 256 results, up to 8 MiB; use it right after the call"),
        ),
        (
            "typescript",
            "const many = [];\nfor (let i = 0; i < 300; i++) many.push(await borders.give({ name: 'rich' }));\n[fullResult(many[299]).content[0].text, fullResult(many[0])]"
                .to_owned(),
            json!("Error: this result is no longer kept: fullResult knows the latest 256 results, up to 8 MiB; use it right after the call"),
        ),
    ] {
        let answer = session.run_code(language, &code).await;
        table.row(format!("{language}: {code}"), equal(value_or_error(&answer), expected));
    }
    table.finish();
}

#[tokio::test]
async fn a_failure_keeps_its_payload() {
    let borders = Borders::new();
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let text = json!({"type": "text", "text": "quota"});
    let silent = "the tool failed and did not say why";
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("failed result → message, content, structured content");
    for (index, (result, message, full)) in [
        (json!({"content": [text]}), "quota", json!([[text], null])),
        (json!({"content": []}), silent, json!([[{"type": "text", "text": silent}], null])),
        (json!({"content": [], "structuredContent": {"code": 7}}), "{\"code\":7}", json!([[], {"code": 7}])),
        (json!({"content": [text], "structuredContent": {"left": 0}}), "quota", json!([[text], {"left": 0}])),
        (
            json!({"content": [image]}),
            "the tool failed, and its result has no text: full_result(error) has its content",
            json!([["image"], null]),
        ),
        (json!({"content": [text, text]}), "quota\nquota", json!([[text, text], null])),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("f{index}");
        let mut failed = result.clone();
        failed["isError"] = true.into();
        borders.set_result(&name, &failed.to_string());
        let python = "[str(value), [[b if b['type'] == 'text' else b['type'] for b in full['content']], full.get('structuredContent')]]";
        let typescript = "[value.message, [full.content.map((b) => (b.type === 'text' ? b : b.type)), full.structuredContent ?? null]]";
        for (language, code) in programs(&name, python, typescript) {
            let answer = session.run_code(language, &code).await;
            table
                .row(format!("{language}: {result}"), equal(value_or_error(&answer), json!([message, full])));
        }
    }
    table.finish();
}

#[tokio::test]
async fn malformed_results_are_errors_of_the_tool() {
    let borders = Borders::new();
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("malformed results");
    for (index, (result, what)) in [
        (json!({"content": "plain"}), "its content is no list"),
        (json!({"content": [1]}), "block 1 of its content is no object"),
        (json!({"content": [null]}), "block 1 of its content is no object"),
        (json!({"content": [{"type": "text"}]}), "block 1 of its content has no valid text"),
        (
            json!({"content": [{"type": "resource", "resource": null}]}),
            "block 1 of its content has no valid resource",
        ),
        (
            json!({"content": [{"type": "image", "data": "a!", "mimeType": "image/png"}]}),
            "the bytes of type image/png are not valid base64",
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:y", "blob": "a"}}]}),
            "the bytes of type application/octet-stream are not valid base64",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("m{index}");
        borders.set_result(&name, &result.to_string());
        let python = format!(
            "{PYTHON}try:\n  give(name='{name}')\nexcept ToolError as e:\n  r = [e.code, str(e), e.server, e.tool]\nr"
        );
        let typescript = format!(
            "try {{ await borders.give({{ name: '{name}' }}) }} catch (e) {{ return [e.code, e.message, e.server, e.tool] }}"
        );
        let expected =
            json!(["tool_failed", format!("the server's result is malformed: {what}"), "borders", "give"]);
        for (language, code) in [("python", python), ("typescript", typescript)] {
            let answer = session.run_code(language, &code).await;
            table.row(format!("{language}: {result}"), equal(value_or_error(&answer), expected.clone()));
        }
    }
    for (result, what) in [
        ("{\"contents\": [null]}", "item 1 of its contents is no object"),
        ("{\"contents\": 1}", "its contents are no list"),
    ] {
        borders.set_result("resource", result);
        for (language, code) in [
            ("python", "from mcp_tools import read_resource\nread_resource('borders', 'x:resource')"),
            ("typescript", "await readResource('borders', 'x:resource')"),
        ] {
            let answer = session.run_code(language, code).await;
            let expected = format!("ToolError: the server's result is malformed: {what}");
            table.row(format!("{language}: {result}"), equal(value_or_error(&answer), json!(expected)));
        }
    }
    table.finish();
}

/// The answer says which calls had content beside their values, as JSON and in the text for models.
#[tokio::test]
async fn the_answer_names_content_that_was_left_aside() {
    let borders = Borders::new();
    let rich = json!({"content": [{"type": "text", "text": "all rows"}], "structuredContent": {"rows": 3}});
    borders.set_result("rich", &rich.to_string());
    borders.set_result("plain", r#"{"structuredContent": {"rows": 3}}"#);
    let session = borders.lockhouse.serve().await;
    let mut table = Table::new("calls");
    for (name, expected) in [("rich", json!([true])), ("plain", json!([null]))] {
        let code = format!("(await borders.give({{ name: '{name}' }})).rows");
        let answer = session.run_code("typescript", &code).await;
        let aside: Vec<&Value> =
            answer["calls"].as_array().into_iter().flatten().map(|call| &call["content_aside"]).collect();
        table.row(name, equal(json!([answer["value"], aside]), json!([3, expected])));
    }
    table.finish();
}
