//! Tests of how programs pass arguments to tool functions: by position, by name, as one object, and with any form of an
//! argument's name.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use crate::code_api::naming_server::lockhouse;

fn rows() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let both = json!({"owner": "a", "repo": "b"});
    let paged = json!({"owner": "a", "repo": "b", "per_page": 5});
    vec![
        ("python", "positions", "hub.list_issues('a', 'b')", both.clone()),
        ("python", "keywords", "hub.list_issues(repo='b', owner='a')", json!({"repo": "b", "owner": "a"})),
        (
            "python",
            "both",
            "hub.list_issues('a', repo='b', per_page=5)",
            json!({"repo": "b", "per_page": 5, "owner": "a"}),
        ),
        ("python", "a dict", "hub.list_issues({'owner': 'a', 'repo': 'b'})", both.clone()),
        (
            "python",
            "a dict with camelCase",
            "hub.list_issues({'owner': 'a', 'repo': 'b', 'perPage': 5})",
            paged.clone(),
        ),
        ("python", "camelCase", "hub.listIssues('a', 'b')", both.clone()),
        (
            "python",
            "a keyword in camelCase",
            "hub.list_issues(owner='a', repo='b', perPage=5)",
            paged.clone(),
        ),
        (
            "python",
            "a keyword in snake_case",
            "hub.close_issue_v2(issue_number=5)",
            json!({"issueNumber": 5}),
        ),
        (
            "python",
            "a dict that is the first parameter",
            "hub.save({'limit': 1})",
            json!({"filter": {"limit": 1}}),
        ),
        (
            "python",
            "a dict as the first of two",
            "hub.save({'limit': 1}, 2)",
            json!({"filter": {"limit": 1}, "limit": 2}),
        ),
        (
            "python",
            "names that Python cannot write",
            "hub.delete(from_='x', retry_delay=2)",
            json!({"from": "x", "retry-delay": 2}),
        ),
        (
            "python",
            "the same in a dict",
            "hub.delete_({'from': 'x', 'retry-delay': 2})",
            json!({"from": "x", "retry-delay": 2}),
        ),
        ("python", "unpacked", "hub.delete(**{'retry-delay': 2})", json!({"retry-delay": 2})),
        (
            "python",
            "None for what is optional",
            "hub.list_issues('a', 'b', None, per_page=None)",
            both.clone(),
        ),
        (
            "python",
            "None where null is a value",
            "hub.list_issues('a', 'b', since=None)",
            json!({"since": null, "owner": "a", "repo": "b"}),
        ),
        ("python", "an empty dict", "hub.delete({})", json!({})),
        (
            "python",
            "call_tool",
            "call_tool('my_hub', 'list-issues', {'owner': 'a', 'repo': 'b'})",
            both.clone(),
        ),
        (
            "python",
            "call_tool in camelCase",
            "call_tool('myHub.listIssues', owner='a', repo='b', perPage=5)",
            paged.clone(),
        ),
        ("typescript", "an object", "my_hub.list_issues({ owner: 'a', repo: 'b' })", both.clone()),
        ("typescript", "positions", "my_hub.list_issues('a', 'b')", both.clone()),
        (
            "typescript",
            "camelCase",
            "my_hub.listIssues({ owner: 'a', repo: 'b', perPage: 5 })",
            paged.clone(),
        ),
        (
            "typescript",
            "undefined in an object",
            "my_hub.list_issues({ owner: 'a', repo: 'b', per_page: undefined })",
            both.clone(),
        ),
        (
            "typescript",
            "undefined between positions",
            "my_hub.list_issues('a', 'b', undefined, 5)",
            paged.clone(),
        ),
        (
            "typescript",
            "undefined where null is a value",
            "my_hub.list_issues('a', 'b', 'open', 5, undefined)",
            json!({"owner": "a", "repo": "b", "state": "open", "per_page": 5}),
        ),
        (
            "typescript",
            "null for what is optional",
            "my_hub.list_issues({ owner: 'a', repo: 'b', per_page: null })",
            both.clone(),
        ),
        (
            "typescript",
            "null where it is a value",
            "my_hub.list_issues({ owner: 'a', repo: 'b', since: null })",
            json!({"owner": "a", "repo": "b", "since": null}),
        ),
        (
            "typescript",
            "an object of an object",
            "my_hub.save({ filter: { limit: 1 } })",
            json!({"filter": {"limit": 1}}),
        ),
        (
            "typescript",
            "a name that is a keyword",
            "my_hub.delete({ from: 'x', retryDelay: 2 })",
            json!({"from": "x", "retry-delay": 2}),
        ),
        (
            "typescript",
            "callTool in other forms",
            "callTool('my_hub.listIssues', { owner: 'a', repo: 'b' })",
            both,
        ),
    ]
}

#[tokio::test]
async fn arguments_can_be_positional_named_or_one_object() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("arguments");
    for (language, name, call, expected) in rows() {
        let code = match language {
            "python" => {
                format!("from mcp_tools import call_tool\nimport mcp_tools.my_hub as hub\n{call}['given']")
            }
            _ => format!("return (await {call}).given;"),
        };
        let answer = session.run_code(language, &code).await;
        // Compared as text, because the order of names matters.
        let outcome =
            equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {}", answer["error"]));
        table.row(format!("{language}: {name}"), outcome);
    }
    table.finish();
}

#[tokio::test]
async fn contradictory_arguments_are_rejected() {
    let rows = [
        ("python", "hub.list_issues('a', owner='b', repo='c')", "owner twice"),
        ("python", "hub.list_issues('a', 'b', perPage=1, per_page=2)", "per_page twice"),
        ("python", "hub.delete('x', from_='y')", "from twice"),
        ("python", "hub.list_issues('a', 'b', per_pag=2)", "did you mean per_page?"),
        ("python", "hub.list_issues(None, 'b')", "owner"),
        (
            "typescript",
            "my_hub.list_issues({ owner: 'a', repo: 'b', perPage: 1, per_page: 2 })",
            "per_page twice",
        ),
        ("typescript", "my_hub.list_issues({ owner: null, repo: 'b' })", "owner"),
        ("typescript", "my_hub.list_issues(undefined, 'b')", "owner"),
    ];
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("contradictions");
    for (language, call, words) in rows {
        let code = match language {
            "python" => format!("import mcp_tools.my_hub as hub\n{call}"),
            _ => format!("await {call}"),
        };
        let error = session.run_code(language, &code).await["error"].clone();
        let reported = error["message"].as_str().is_some_and(|message| message.contains(words));
        table.row(
            format!("{language}: {call}"),
            ensure(reported && error["code"] == "invalid_arguments", &error),
        );
    }
    table.finish();
}
