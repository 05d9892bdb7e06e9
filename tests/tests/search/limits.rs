//! How many results a search gives: the same numbers wherever it is asked for, and those that the reference has.

use lockhouse_protocol::{SEARCH_LIMIT_DEFAULT, SEARCH_LIMIT_MAX};
use lockhouse_tests::{Lockhouse, Table, ensure, equal, structured};
use serde_json::{Value, json};

/// One server with more tools than any search gives.
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
async fn a_client_and_a_person_have_the_limits_of_the_gate() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let found = structured(session.call("search_tools", json!({"query": "mail", "detail": "names"})).await);
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(SEARCH_LIMIT_DEFAULT as usize), "{found}");
    let shown = lockhouse.run(&["tools", "search", "mail", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(rows.len(), SEARCH_LIMIT_MAX as usize, "{shown:?}");
}

#[test]
fn the_reference_and_the_stubs_have_the_numbers() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let mut table = Table::new("the limits of a search");
    for (path, line) in [
        (
            "docs/configuration.md",
            format!(
                "| results of one search, of tools or skills: if no limit is said, and at most. `lockhouse tools search` shows {SEARCH_LIMIT_MAX} | {SEARCH_LIMIT_DEFAULT}; {SEARCH_LIMIT_MAX} |"
            ),
        ),
        ("supervisor/catalog/src/stubs/mcp_tools.pyi", format!("    limit: int = {SEARCH_LIMIT_DEFAULT},")),
    ] {
        table.row(path, ensure(read(path).lines().any(|written| written == line), line));
    }
    table.finish();
}
