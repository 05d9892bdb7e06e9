//! Tests of the check of a program before it runs: it reports calls that must fail before any call is sent.
//! All other errors are found only during the run.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use crate::errors::error_snapshots::lockhouse;

const NOT_RUN: &str = "found before the run: no call was sent";

#[tokio::test]
async fn calls_that_must_fail_are_found_before_any_call_is_sent() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let first = |language: &str| match language {
        "python" => "github.get_issue(1)\n",
        _ => "await github.get_issue(1);\n",
    };
    let rows = [
        ("python", "an unknown tool", "github.get_isue(1)", "unknown_tool", 2),
        ("python", "a denied tool", "github.delete_repo(owner='a', repo='b')", "denied", 2),
        ("python", "an unknown argument", "github.get_issue(nummer=1)", "invalid_arguments", 2),
        ("python", "a missing argument", "x = len([github.list_issues(owner='a')])", "invalid_arguments", 2),
        ("python", "an impossible value", "github.get_issue(number='one')", "invalid_arguments", 2),
        (
            "python",
            "an impossible value beside another",
            "github.list_issues(owner=str(1), repo='b', limit='ten')",
            "invalid_arguments",
            2,
        ),
        (
            "python",
            "in a function that is called",
            "def main():\n    return github.get_isue(1)\nmain()",
            "unknown_tool",
            3,
        ),
        (
            "python",
            "in an async function",
            "import asyncio\nfrom mcp_tools.aio import github as g\nasync def main():\n    return await g.get_isue(1)\nasyncio.run(main())",
            "unknown_tool",
            5,
        ),
        ("python", "of a condition", "if github.get_isue(1):\n    pass", "unknown_tool", 2),
        ("typescript", "an unknown tool", "await github.get_isue(1)", "unknown_tool", 2),
        ("typescript", "a denied tool", "await github.delete_repo({owner: 'a', repo: 'b'})", "denied", 2),
        ("typescript", "an unknown argument", "await github.get_issue({nummer: 1})", "invalid_arguments", 2),
        (
            "typescript",
            "a missing argument",
            "await Promise.all([github.list_issues({owner: 'a'})])",
            "invalid_arguments",
            2,
        ),
        (
            "typescript",
            "an impossible value",
            "return await github.getIssue({number: 'one'})",
            "invalid_arguments",
            2,
        ),
        (
            "typescript",
            "in a function that is called",
            "async function main() {\n  return await github.get_isue(1);\n}\nawait main();",
            "unknown_tool",
            3,
        ),
    ];
    let mut table = Table::new("found before the run");
    for (language, name, code, expected, line) in rows {
        let answer = session.run_code(language, &format!("{}{code}", first(language))).await;
        let error = &answer["error"];
        let found = json!([error["code"], error["line"], answer["calls"]]);
        let outcome = equal(found, json!([expected, line, []])).map_err(|e| format!("{e} {error}"));
        let traceback = error["traceback"].as_str().unwrap_or_default();
        table.row(
            format!("{language}: {name}"),
            outcome.and_then(|()| ensure(traceback.contains(NOT_RUN), traceback)),
        );
    }
    table.finish();
}

#[tokio::test]
async fn calls_that_may_succeed_or_be_caught_are_left_to_the_run() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let rows: [(&str, &str, &str, Value); 15] = [
        ("python", "in try", "try:\n    github.get_isue(1)\nexcept Exception:\n    r = 1\nr", json!(1)),
        ("python", "in a branch", "if len('') > 0:\n    github.get_isue(1)\n2", json!(2)),
        ("python", "in a loop", "for x in []:\n    github.get_isue(x)\n3", json!(3)),
        (
            "python",
            "after a possible exit",
            "import sys\nif True:\n    sys.exit(0)\ngithub.get_isue(1)",
            Value::Null,
        ),
        ("python", "behind `and`", "len('') > 0 and github.get_isue(1)\n4", json!(4)),
        ("python", "in a function that is not called", "def f():\n    github.get_isue(1)\n5", json!(5)),
        (
            "python",
            "in a function whose caller catches",
            "def f():\n    github.get_isue(1)\ntry:\n    f()\nexcept Exception:\n    pass\n6",
            json!(6),
        ),
        (
            "python",
            "a suppressed error",
            "import contextlib\nwith contextlib.suppress(Exception):\n    github.get_isue(1)\n7",
            json!(7),
        ),
        (
            "python",
            "a variable with the name of a server",
            "class github:\n    def get_isue(n): return n\ngithub.get_isue(8)",
            json!(8),
        ),
        ("python", "a name in another form", "github.getIssue(1)['number']", json!(1)),
        ("typescript", "in try", "try { await github.get_isue(1) } catch {}\nreturn 1", json!(1)),
        (
            "typescript",
            "caught later",
            "const p = github.get_issue({nummer: 1}).catch(() => 2);\nreturn await p",
            json!(2),
        ),
        ("typescript", "behind a condition", "return false ? await github.get_isue(1) : 3", json!(3)),
        (
            "typescript",
            "a variable with the name of a server",
            "const github = {get_isue: (n) => n};\nreturn await github.get_isue(4)",
            json!(4),
        ),
        ("typescript", "a name in another form", "return (await github.getIssue(1)).number", json!(1)),
    ];
    let mut table = Table::new("left to the run");
    for (language, name, code, expected) in rows {
        let answer = session.run_code(language, code).await;
        let outcome =
            equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {}", answer["error"]));
        table.row(
            format!("{language}: {name}"),
            outcome.and_then(|()| ensure(answer["status"] == "ok", &answer)),
        );
    }
    // A variable of an earlier run of the session hides the server.
    session.run_in("one", "python", "class github:\n    def get_isue(n): return n").await;
    let answer = session.run_in("one", "python", "github.get_isue(9)").await;
    table.row("python: a variable of the session", equal(answer["value"].clone(), json!(9)));
    session.run_in("two", "typescript", "var github = {get_isue: (n) => n}").await;
    let answer = session.run_in("two", "typescript", "await github.get_isue(9)").await;
    table.row("typescript: a variable of the session", equal(answer["value"].clone(), json!(9)));
    table.finish();
}

#[tokio::test]
async fn all_findings_are_in_one_error_and_denials_in_the_audit_log() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("several findings");
    for (language, code) in [
        ("python", "github.delete_repo(owner='a', repo='b')\ngithub.get_issue()\ngithub.get_isue(1)"),
        (
            "typescript",
            "await github.delete_repo({owner: 'a', repo: 'b'});\nawait github.get_issue();\nawait github.get_isue(1)",
        ),
    ] {
        let answer = session.run_code(language, code).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let parts = [
            "the policy does not allow",
            "Also:\nline 2, column",
            "needs the argument number",
            "line 3, column",
            "did you mean get_issue",
        ];
        let missing: Vec<&str> = parts.into_iter().filter(|part| !message.contains(part)).collect();
        table.row(language, ensure(missing.is_empty() && answer["error"]["code"] == "denied", message));
    }
    session.close().await;
    let denied: Vec<Value> = lockhouse
        .records()
        .into_iter()
        .filter(|record| record["event"] == "denial" || record["decision"] == "deny")
        .map(|record| json!([record["server"], record["tool"], record["line"]]))
        .collect();
    table.row(
        "audit log",
        equal(json!(denied), json!([["github", "delete_repo", 1], ["github", "delete_repo", 1]])),
    );
    table.finish();
}

#[test]
fn the_check_command_makes_no_call() {
    let lockhouse = lockhouse();
    let mut table = Table::new("lockhouse check");
    for (name, code, status, words) in [
        ("a program that may succeed", "github.create_issue(title='x')", 0, "no error was found"),
        ("a wrong argument", "github.get_issue(nummer=1)", 1, "did you mean number?"),
        ("a syntax error", "x = = 1", 1, "SyntaxError"),
    ] {
        lockhouse.file("program.py", code);
        let file = lockhouse.path("program.py");
        let shown = lockhouse.run(&["check", file.to_str().expect("a path")]);
        let text = format!("{}{}", shown.stdout, shown.stderr);
        table.row(name, ensure(shown.status == Some(status) && text.contains(words), &shown));
    }
    let calls = lockhouse.records().into_iter().filter(|record| record["event"] == "call").count();
    table.row("no call is recorded", equal(json!(calls), json!(0)));
    table.finish();
}
