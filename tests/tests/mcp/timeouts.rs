//! Tests of the timeouts that a program sets for its own calls.

use std::time::Instant;

use lockhouse_tests::{Lockhouse, Table, ensure};
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
