//! Tests of tool search: the levels of detail of its results, and the limit on how many of the results one server may
//! fill.

use lockhouse_tests::{LANGUAGES, Lockhouse, structured};
use serde_json::{Value, json};

/// Returns a Lockhouse test fixture with two upstream servers whose tools match the same query. The server `large` has
/// fifty of them with long descriptions; the server `small` has two tools.
fn lockhouse() -> Lockhouse {
    let tool = |name: String, words: usize| {
        let properties =
            json!({"folder": {"type": "string", "description": "which mail folder ".repeat(words)}});
        json!({
            "name": name, "description": "Lists mail. ".repeat(words),
            "inputSchema": {"type": "object", "properties": properties, "required": ["folder"]},
        })
    };
    let large: Vec<Value> = (0..50).map(|n| tool(format!("list_mail_{n:02}"), 400)).collect();
    let small = vec![tool("list_mail".into(), 1), tool("send_mail".into(), 1)];
    let lockhouse = Lockhouse::new();
    let catalogues = [("large", large), ("small", small)].map(|(name, tools)| {
        let path = lockhouse.file(&format!("{name}.json"), json!({"tools": tools}).to_string());
        (name.to_owned(), path)
    });
    lockhouse.adding_catalogues(&catalogues)
}

fn servers(found: &Value) -> Vec<&str> {
    found["tools"].as_array().unwrap().iter().map(|tool| tool["server"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_large_server_leaves_room_for_others_and_omitted_tools_are_counted() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    for detail in ["names", "signatures", "full"] {
        let found =
            structured(session.call("search_tools", json!({"query": "list mail", "detail": detail})).await);
        let servers = servers(&found);
        assert_eq!(servers.iter().filter(|server| **server == "small").count(), 2, "{detail}: {found}");
        let left_out = found["left_out"]["large"].as_u64().unwrap();
        let shown = servers.iter().filter(|server| **server == "large").count() as u64;
        assert_eq!(shown + left_out, 50, "{detail}: {found}");
        assert!(found.to_string().len() < 12_000, "{detail}: {} bytes", found.to_string().len());
        let again =
            structured(session.call("search_tools", json!({"query": "list mail", "detail": detail})).await);
        assert_eq!(found, again);
    }
}

#[tokio::test]
async fn an_oversized_schema_is_folded_for_models_and_complete_for_code() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let asked = json!({"query": "list_mail_07", "detail": "full"});
    let found = structured(session.call("search_tools", asked).await);
    let first = &found["tools"][0];
    assert_eq!(first["name"], "list_mail_07", "{found}");
    assert!(first["folded"].as_str().is_some_and(|words| words.contains("describe(")), "{first}");
    assert!(first.get("inputSchema").is_none(), "{first}");
    let code =
        "from mcp_tools import describe\nlen(str(describe('large', 'list_mail_07')['inputSchema'])) > 5000";
    assert_eq!(session.run_code("python", code).await["value"], true);
}

#[tokio::test]
async fn code_searches_at_the_same_levels_and_within_a_server() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    let programs = [
        "from mcp_tools import search_tools\n\
         rows = search_tools('list mail', limit=6, detail='names')\n\
         only = search_tools('list mail', server='small')\n\
         full = search_tools('send mail', limit=1, detail='full', server='small')[0]\n\
         [len(rows), sorted({r['server'] for r in rows}), 'python' in rows[0], [r['tool'] for r in only], 'inputSchema' in full]",
        "const rows = await searchTools('list mail', {limit: 6, detail: 'names'});\n\
         const only = await searchTools({query: 'list mail', server: 'small'});\n\
         const full = (await searchTools({query: 'send mail', limit: 1, detail: 'full', server: 'small'}))[0];\n\
         return [rows.length, [...new Set(rows.map((r) => r.server))].sort(), 'python' in rows[0], only.map((r) => r.tool), 'inputSchema' in full];",
    ];
    for (language, program) in LANGUAGES.into_iter().zip(programs) {
        let answer = session.run_code(language, program).await;
        let expected = json!([6, ["large", "small"], false, ["list_mail", "send_mail"], true]);
        assert_eq!(answer["value"], expected, "{language}: {answer}");
    }
}

/// Programs (Python, TypeScript) that search for, describe and list the tool `send_mail`. Each program returns the
/// languages of the signatures in four results: the found tool, the described tool, its first parameter, and the listed
/// tool.
const PRINT_DESCRIPTIONS: [&str; 2] = [
    "from mcp_tools import describe, search_tools, small\n\
     found, described = search_tools('send_mail', limit=1)[0], describe('small', 'send_mail')\n\
     [sorted({'python', 'typescript'} & set(row)) for row in (found, described, described['parameters'][0], small.list_tools()[0])]",
    "const [found] = await searchTools('send_mail', {limit: 1});\n\
     const described = await describe('small', 'send_mail');\n\
     const rows = [found, described, described.parameters[0], (await small.listTools())[0]];\n\
     return rows.map((row) => ['python', 'typescript'].filter((language) => language in row));",
];

#[tokio::test]
async fn a_program_gets_signatures_only_in_its_own_language() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    session.all_connected().await;
    for (language, program) in LANGUAGES.into_iter().zip(PRINT_DESCRIPTIONS) {
        let answer = session.run_code(language, program).await;
        let own = json!([language]);
        assert_eq!(answer["value"], json!([own, own, own, own]), "{language}: {answer}");
    }
}
