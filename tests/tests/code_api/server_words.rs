//! Tests of what programs and users can read of a server's own words: its instructions, and the rules in its descriptions.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

fn with_borders() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    let results = lockhouse.path("results");
    std::fs::create_dir_all(&results).expect("a directory");
    std::fs::write(
        results.join("row"),
        r#"{"content": [{"type": "text", "text": "{\"id\": 1, \"name\": \"a\"}"}]}"#,
    )
    .expect("written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/borders.py");
    let entry = json!({"command": "python3", "args": ["-B", script, results]});
    lockhouse.servers_entry("borders", entry).policy("version = 1\n[servers.borders]\nallow = [\"*\"]\n")
}

#[tokio::test]
async fn a_server_is_described_with_its_instructions() {
    let lockhouse = with_borders();
    let session = lockhouse.serve().await;
    let mut table = Table::new("describe(SERVER)");
    let expected = json!({
        "server": "borders", "state": "connected", "tools": 7, "program": "borders 1", "begins": "Call list_pages first. Then",
        "characters": 4_000, "instructions_cut": true, "note": "program and instructions are the server's own words",
    });
    let python = |argument: &str| {
        format!(
            "import mcp_tools.borders\nfrom mcp_tools import describe\nd = describe({argument})\ni = d.pop('instructions')\n\
             {{**d, 'begins': i[:27], 'characters': len(i)}}"
        )
    };
    let typescript = |argument: &str| {
        format!(
            "const {{ instructions: i, ...d }} = await describe({argument});\nreturn {{ ...d, begins: i.slice(0, 27), characters: i.length }}"
        )
    };
    for (language, code) in [
        ("python", python("'borders'")),
        ("python", python("mcp_tools.borders")),
        ("typescript", typescript("'borders'")),
        ("typescript", typescript("borders")),
    ] {
        let mut answer = session.run_code(language, &code).await;
        let begins = answer["value"]["begins"].as_str().unwrap_or_default().trim_end().to_owned();
        answer["value"]["begins"] = begins.into();
        table.row(format!("{language}: {code}"), equal(&answer["value"], &expected));
    }
    let unknown = session.run_code("typescript", "await describe('nowhere')").await;
    table.row("an unknown server", ensure(unknown["status"] == "error", &unknown["value"]));
    let shown = lockhouse.run(&["server", "get", "borders", "--json"]).json();
    table.row(
        "server get",
        ensure(
            shown["instructions"].as_str().is_some_and(|text| text.starts_with("Call list_pages first.")),
            &shown["instructions"],
        ),
    );
    table.finish();
}

#[tokio::test]
async fn a_rule_about_pages_is_in_the_summary() {
    let lockhouse = with_borders();
    let session = lockhouse.serve().await;
    let summary = "Lists the pages. Repeat with next_cursor until it is null.";
    let code = "await borders.listTools();\nreturn (await searchTools('pages'))[0].summary";
    assert_eq!(session.run_code("typescript", code).await["value"], summary);
}

/// The signature of a parameter with `nullable: true` has `| null`, and null is sent.
#[tokio::test]
async fn a_nullable_parameter_takes_null() {
    let lockhouse = with_borders();
    let session = lockhouse.serve().await;
    let mut table = Table::new("nullable");
    for (language, code) in [
        ("python", "from mcp_tools.borders import list_pages\nlist_pages(cursor=None)"),
        ("typescript", "await borders.list_pages({ cursor: null })"),
    ] {
        let answer = session.run_code(language, code).await;
        table.row(language, equal(&answer["value"], &json!("sent: {\"cursor\": null}")));
    }
    table.finish();
}

#[tokio::test]
async fn stubs_have_the_types_of_earlier_results() {
    let lockhouse = with_borders();
    let session = lockhouse.serve().await;
    let before = lockhouse.path("before");
    let written = lockhouse.run(&["stubs", "--out", &before.to_string_lossy()]);
    assert_eq!(written.status, Some(0), "{}", written.stderr);
    session
        .run_code("python", "from mcp_tools.borders import give\nfor _ in range(3): give(name='row')")
        .await;
    session.close().await;
    let after = lockhouse.path("after");
    let written = lockhouse.run(&["stubs", "--out", &after.to_string_lossy()]);
    assert_eq!(written.status, Some(0), "{}", written.stderr);
    let mut table = Table::new("stubs");
    let note = "The type of the result was observed, and not declared.";
    for (file, kind) in [
        ("python/mcp_tools/borders.pyi", "-> GiveResult"),
        ("typescript/mcp_tools/borders.d.ts", "export type GiveResult = {"),
    ] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(file)).expect("a stub");
        let has = |text: String| [text.contains(kind), text.contains(note)];
        table.row(file, equal([has(read(&before)), has(read(&after))], [[false, false], [true, true]]));
    }
    table.finish();
}
