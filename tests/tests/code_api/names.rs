//! Tests that Lockhouse normalizes the name of a tool in the same way in imports, calls, listings and search results.

use std::collections::BTreeSet;

use lockhouse_tests::{Table, ensure, equal};
use serde_json::json;

use crate::code_api::naming_server::lockhouse;

#[tokio::test]
async fn every_form_of_a_name_resolves_to_the_same_tool_in_both_languages() {
    let rows = [
        ("a_b", "a_b"),
        ("a_b_2", "a-b"),
        ("delete_", "delete"),
        ("delete", "delete"),
        ("close_issue_v2", "close-issue/v2"),
        ("closeIssueV2", "close-issue/v2"),
        ("getUser", "getUser"),
        ("GetUser", "GetUser"),
        ("ListIssues", "list_issues"),
    ];
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("names");
    for (name, tool) in rows {
        for (language, code) in [
            ("python", format!("from mcp_tools.my_hub import {name} as f\nf()['tool']")),
            ("typescript", format!("return (await my_hub['{name}']()).tool;")),
            (
                "python",
                format!("from mcp_tools import call_tool\ncall_tool('my-hub', '{name}', {{}})['tool']"),
            ),
            ("typescript", format!("return (await callTool('my-hub', '{name}', {{}})).tool;")),
        ] {
            let code = code.replace("f()", if tool == "list_issues" { "f('a', 'b')" } else { "f()" });
            let code = if tool == "list_issues" {
                code.replace("]()", "]('a', 'b')").replace("{}", "{'owner': 'a', 'repo': 'b'}")
            } else {
                code
            };
            let answer = session.run_code(language, &code).await;
            let outcome =
                equal(answer["value"].clone(), json!(tool)).map_err(|e| format!("{e} {}", answer["error"]));
            table.row(format!("{language}: {}", code.lines().last().unwrap_or_default()), outcome);
        }
    }
    table.finish();
}

#[tokio::test]
async fn an_ambiguous_name_resolves_to_no_tool() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("ambiguous names");
    for (language, code) in [
        ("python", "from mcp_tools.my_hub import get_user"),
        ("python", "from mcp_tools import call_tool\ncall_tool('my-hub', 'get_user', {})"),
        ("typescript", "await my_hub.get_user()"),
        ("typescript", "await callTool('my-hub', 'get_user', {})"),
        // A denied tool cannot be found under another form of its name.
        ("python", "from mcp_tools.my_hub import Secret"),
        ("typescript", "await my_hub.Secret()"),
    ] {
        let answer = session.run_code(language, code).await;
        let reported = answer["status"] == "error"
            && answer["calls"]
                .as_array()
                .is_none_or(|calls| calls.iter().all(|call| call["outcome"] != "ok"));
        table.row(format!("{language}: {code}"), ensure(reported, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn search_listings_and_code_use_the_same_names() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let names = |answer: serde_json::Value| -> BTreeSet<String> {
        assert_eq!(answer["status"], "ok", "{answer}");
        let names = answer["value"].as_array().cloned().unwrap_or_default();
        names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let listed = names(
        session
            .run_code(
                "python",
                "from mcp_tools import my_hub\n[t['identifier'] for t in my_hub.list_tools()]",
            )
            .await,
    );
    let found = names(
        session
            .run_code(
                "python",
                "from mcp_tools import search_tools\n[t['python'].split('(')[0] for t in search_tools('', 50)]",
            )
            .await,
    );
    let keys = names(session.run_code("typescript", "Object.keys(my_hub)").await);
    let starred = names(session.run_code("python", "import mcp_tools.my_hub as m\nm.__all__").await);
    assert!(listed.len() == 8 && listed.contains("delete_"), "{listed:?}");
    assert_eq!([&found, &keys, &starred], [&listed; 3]);
}
