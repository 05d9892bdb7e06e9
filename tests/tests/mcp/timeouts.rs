//! Tests of the timeouts that a program sets for its own calls, and of those of runs.

use std::time::Instant;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

#[tokio::test]
async fn code_can_shorten_or_extend_a_call_timeout_within_the_configured_limit() {
    let rows = [
        ("python", "shorter", "call_tool('fixture', 'slow', {'ms': 30000}, timeout=0.2)", "timeout"),
        ("python", "shorter, by name", "call_tool('fixture.slow', ms=30000, timeout=0.2)", "timeout"),
        ("python", "longer", "call_tool('fixture.slow', {'ms': 1500}, timeout=5)", "ok"),
        ("python", "as configured", "call_tool('fixture.slow', {'ms': 5000})", "timeout"),
        ("python", "above the maximum", "call_tool('fixture.slow', {'ms': 30000}, timeout=1e9)", "timeout"),
        ("python", "of 0", "call_tool('fixture.slow', {'ms': 1}, timeout=0)", "invalid_arguments"),
        ("python", "as text", "call_tool('fixture.slow', {'ms': 1}, timeout='5')", "invalid_arguments"),
        ("python", "async", "await aio.call_tool('fixture.slow', {'ms': 30000}, timeout=0.2)", "timeout"),
        (
            "typescript",
            "shorter",
            "await callTool('fixture', 'slow', {ms: 30000}, {timeout: 0.2})",
            "timeout",
        ),
        (
            "typescript",
            "shorter, by one name",
            "await callTool('fixture.slow', {ms: 30000}, {timeout: 0.2})",
            "timeout",
        ),
        ("typescript", "longer", "await callTool('fixture.slow', {ms: 1500}, {timeout: 5})", "ok"),
        ("typescript", "as configured", "await callTool('fixture.slow', {ms: 5000})", "timeout"),
        ("typescript", "of 0", "await callTool('fixture.slow', {ms: 1}, {timeout: 0})", "invalid_arguments"),
    ];
    let command = lockhouse_tests::fixture_server();
    let config = format!(
        "[servers.fixture]\ncommand = {command:?}\ncall_timeout_seconds = 1\ncall_timeout_max_seconds = 3\n"
    );
    let lockhouse = Lockhouse::with_fixture().config(&config);
    std::fs::remove_file(lockhouse.path("servers.json")).unwrap();
    lockhouse.file("servers.json", json!({"mcpServers": {}}).to_string());
    let session = lockhouse.serve().await;
    let mut table = Table::new("timeouts of single calls");
    for (language, name, expression, outcome) in rows {
        let imports =
            if language == "python" { "from mcp_tools import *\nfrom mcp_tools import aio\n" } else { "" };
        let begun = Instant::now();
        let answer = session.run_code(language, &format!("{imports}{expression}")).await;
        let code = answer["error"]["code"].as_str().unwrap_or("ok");
        let quick = begun.elapsed().as_secs() < 10;
        table.row(format!("{language}: {name}"), ensure(code == outcome && quick, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn the_longest_time_of_a_run_is_in_the_schema_and_in_the_error() {
    let lockhouse = Lockhouse::new().config("[limits]\ntimeout_seconds = 1\n");
    let session = lockhouse.serve().await;
    let tools = session.tools().await;
    let run_code = tools.iter().find(|tool| tool.name == "run_code").expect("run_code");
    let mut table = Table::new("the time of a run");
    let schema = run_code.input_schema["properties"]["timeout_s"].clone();
    table.row("the schema", equal(schema, json!({"type": "number", "maximum": 1})));
    for (asked, message, hint) in [
        (Some(7.5), "the code did not end within 1 s (7.5 s was asked for; at most 1 s is allowed)", None),
        (Some(1.0), "the code did not end within 1 s", None),
        (None, "the code did not end within 1 s", None),
        (Some(0.5), "the code did not end within 0.5 s", Some("timeout_s may be up to 1; or ")),
    ] {
        for (language, code) in [("python", "while True: pass"), ("typescript", "while (true) {}")] {
            let mut arguments = json!({"language": language, "code": code});
            arguments["timeout_s"] = asked.into();
            if asked.is_none() {
                arguments.as_object_mut().expect("an object").remove("timeout_s");
            }
            let error = session.run_with(arguments).await["error"].clone();
            let told = error["hint"].as_str().unwrap_or_default();
            let is_right = error["message"] == message && told.contains("timeout_s") == hint.is_some();
            let is_right = is_right && told.starts_with(hint.unwrap_or_default());
            table.row(format!("{language}: {asked:?}"), ensure(is_right, &error));
        }
    }
    table.finish();
}
