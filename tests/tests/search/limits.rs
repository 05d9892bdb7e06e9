//! Tests of the limits on the number of search results: they are equal for AI clients, programs and the command line,
//! and in the reference documentation.

use lockhouse_protocol::{SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX};
use lockhouse_tests::{Lockhouse, Table, ensure, equal, structured};
use serde_json::{Value, json};

/// Returns a Lockhouse test fixture with one upstream server that has more tools than a search may return at most.
fn lockhouse() -> Lockhouse {
    let tool = |number| json!({"name": format!("list_mail_{number:02}"), "inputSchema": {"type": "object"}});
    let tools: Vec<Value> = (0..SEARCH_LIMIT_MAX + 10).map(tool).collect();
    let lockhouse = Lockhouse::new();
    let path = lockhouse.file("mail.json", json!({"tools": tools}).to_string());
    lockhouse.adding_catalogues(&[("mail".to_owned(), path)])
}

#[tokio::test]
async fn code_of_both_languages_has_the_same_limits() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let expected = json!([SEARCH_LIMIT_DEFAULT, 3, 1, SEARCH_LIMIT_MAX, SEARCH_LIMIT_MAX]);
    let mut table = Table::new("results of a search: without a limit, 3, 0, 1000, all");
    for (language, code) in [
        (
            "python",
            "from mcp_tools import discover_mcp_tools, search_tools\n\
             [len(found) for found in (search_tools('mail'), search_tools('mail', 3), search_tools('mail', limit=0), \
             search_tools('mail', 1000), discover_mcp_tools(search=['mail']))]",
        ),
        (
            "typescript",
            "const found = await Promise.all([searchTools('mail'), searchTools('mail', 3), searchTools('mail', -1), \
             searchTools({query: 'mail', limit: 1000}), discoverMCPTools({search: ['mail']})]);\n\
             return found.map((rows) => rows.length)",
        ),
    ] {
        let answer = session.run_code(language, code).await;
        table.row(language, equal(answer["value"].clone(), expected.clone()));
    }
    table.finish();
}

#[tokio::test]
async fn an_ai_client_can_set_a_limit_within_the_range() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let mut table = Table::new("limit of search_tools");
    let default = Value::from(SEARCH_LIMIT_DEFAULT);
    for (limit, expected) in
        [(Value::Null, &default), (json!(1), &json!(1)), (json!(SEARCH_LIMIT_MAX), &json!(SEARCH_LIMIT_MAX))]
    {
        let asked = json!({"query": "mail", "detail": "names", "limit": limit});
        let found = structured(session.call("search_tools", asked).await);
        let count = found["tools"].as_array().map(Vec::len);
        table.row(format!("{limit}"), equal(json!(count), expected.clone()));
    }
    let told = format!("limit must be a whole number from 1 to {SEARCH_LIMIT_MAX}");
    for limit in [json!(0), json!(SEARCH_LIMIT_MAX + 1), json!(-1), json!(1.5), json!("3"), json!(u64::MAX)] {
        let refused = session.call("search_tools", json!({"query": "mail", "limit": limit})).await.unwrap();
        let text = serde_json::to_string(&refused).unwrap();
        table.row(format!("{limit}"), ensure(refused.is_error == Some(true) && text.contains(&told), text));
    }
    table.finish();
}

#[test]
fn the_command_line_can_set_a_limit_within_the_range() {
    let lockhouse = lockhouse();
    let mut table = Table::new("lockhouse tools search --limit");
    let max = SEARCH_LIMIT_MAX.to_string();
    for (limit, expected) in
        [(&[][..], SEARCH_LIMIT_MAX), (&["--limit", "3"], 3), (&["--limit", &max], SEARCH_LIMIT_MAX)]
    {
        let shown = lockhouse.run(&[&["tools", "search", "mail", "--json"], limit].concat());
        let rows: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        table.row(limit.join(" "), equal(rows.as_array().map(Vec::len), Some(expected as usize)));
    }
    let above = (SEARCH_LIMIT_MAX + 1).to_string();
    for limit in ["0", &above, "x"] {
        let refused = lockhouse.run(&["tools", "search", "mail", "--limit", limit]);
        let is_told = limit == "x" || refused.stderr.contains(&format!("is not in 1..={SEARCH_LIMIT_MAX}"));
        table.row(limit, ensure(refused.status == Some(2) && is_told && refused.stdout.is_empty(), &refused));
    }
    table.finish();
}

#[test]
fn the_reference_and_the_stubs_document_the_limits() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let mut table = Table::new("the limits of a search");
    for (path, line) in [
        (
            "docs/for-models.md",
            format!(
                "| `limit` | the maximum number of tools: 1 to {SEARCH_LIMIT_MAX}, default {SEARCH_LIMIT_DEFAULT} |"
            ),
        ),
        ("supervisor/catalog/src/stubs/mcp_tools.pyi", format!("    limit: int = {SEARCH_LIMIT_DEFAULT},")),
    ] {
        table.row(path, ensure(read(path).lines().any(|written| written == line), line));
    }
    table.finish();
}
