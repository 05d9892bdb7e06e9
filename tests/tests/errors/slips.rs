//! Tests of typical mistakes in programs: the error message says what to write instead, and a second program
//! that follows this advice literally succeeds.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use crate::errors::error_snapshots::lockhouse;

/// A program with a typical mistake, a part of its error message, and the corrected program.
struct Slip {
    language: &'static str,
    failing: &'static str,
    /// A part of the error's message and hint that must occur, namely what to write instead.
    says: &'static str,
    /// The language of the corrected program, if the error advises another language; `None` for the same
    /// language.
    other_language: Option<&'static str>,
    corrected: &'static str,
    expected: Value,
}

fn slip(
    language: &'static str,
    failing: &'static str,
    says: &'static str,
    corrected: &'static str,
    expected: Value,
) -> Slip {
    Slip { language, failing, says, other_language: None, corrected, expected }
}

#[rustfmt::skip] // One slip in a line or two, as a table.
fn python() -> Vec<Slip> {
    let slip = |failing, says, corrected, expected| slip("python", failing, says, corrected, expected);
    vec![
        slip("total = 3\ntotla", "did you mean total?", "total = 3\ntotal", json!(3)),
        slip("pritn(1)\n2", "did you mean print?", "print(1)\n2", json!(2)),
        slip("json.dumps([1])", "write `import json` first", "import json\njson.dumps([1])", json!("[1]")),
        slip("list_issues('a', 'b')['total_count']", "write `from mcp_tools.github import list_issues` first",
             "from mcp_tools.github import list_issues\nlist_issues('a', 'b')['total_count']", json!(3)),
        slip("from mcp_tools.github import list_isues\nlist_isues('a', 'b')['total_count']", "did you mean list_issues?",
             "from mcp_tools.github import list_issues\nlist_issues('a', 'b')['total_count']", json!(3)),
        slip("from mcp_tools import githb\ngithb.get_issue(1)['number']", "did you mean github?",
             "from mcp_tools import github\ngithub.get_issue(1)['number']", json!(1)),
        slip("github.get_isue(1)['number']", "did you mean get_issue?", "github.get_issue(1)['number']", json!(1)),
        slip("codemode.get_issue(1)['number']", "it is a tool of github: write github.get_issue(...)", "github.get_issue(1)['number']", json!(1)),
        slip("call_tool('get_issue', {'number': 1})['number']", "write 'github.get_issue'", "call_tool('github.get_issue', {'number': 1})['number']", json!(1)),
        slip("github.get_issue(nummer=1)['number']", "did you mean number?", "github.get_issue(number=1)['number']", json!(1)),
        slip("github.get_issue(number='one')['number']", "/number must be integer", "github.get_issue(number=1)['number']", json!(1)),
        slip("github.get_issue()['number']", "get_issue needs the argument number", "github.get_issue(number=1)['number']", json!(1)),
        slip("issue = github.get_issue(1)\nissue['titel']", "did you mean 'title'?", "issue = github.get_issue(1)\nissue['title']", json!("Crash at start")),
        slip("github.list_issues('a', 'b')[0]", "a dict with the keys 'total_count', 'issues' (list of 3)",
             "github.list_issues('a', 'b')['issues'][0]['number']", json!(1)),
        slip("issues = github.list_issues('a', 'b')['issues']\nissues['title']", "take one of them by its number",
             "issues = github.list_issues('a', 'b')['issues']\nissues[0]['title']", json!("Crash at start")),
        slip("issue = github.get_issue(1)\nissue.title", "write issue['title']", "issue = github.get_issue(1)\nissue['title']", json!("Crash at start")),
        slip("found = github.search_code('a')\nfound.splitlines()", "use raw_text(value) for the text",
             "found = github.search_code('a')\nraw_text(found).splitlines()", json!(["{\"items\": [{\"path\": \"main.py\", \"line\": 3}]}"])),
        slip("from mcp_tools import github\n(await github.get_issue(1))['number']", "no await is needed",
             "from mcp_tools import github\ngithub.get_issue(1)['number']", json!(1)),
        slip("from mcp_tools.aio import github\nissue = github.get_issue(1)\nissue['number']", "write `(await issue)[...]`",
             "from mcp_tools.aio import github\nissue = github.get_issue(1)\n(await issue)['number']", json!(1)),
        slip("rows = [1]\nrows.push(2)\nrows", "in Python it is .append(value)", "rows = [1]\nrows.append(2)\nrows", json!([1, 2])),
        slip("rows = [1]\nrows.length", "in Python it is len(...)", "rows = [1]\nlen(rows)", json!(1)),
        slip("return 5", "the last expression is the result; no return is needed", "5", json!(5)),
        slip("true", "in Python it is True", "True", json!(true)),
        slip("from math import sqroot\nsqroot(4)", "did you mean sqrt", "from math import sqrt\nsqrt(4)", json!(2.0)),
        Slip { other_language: Some("typescript"), ..slip("const total = 1 + 2;\ntotal;", "send it with language \"typescript\"", "const total = 1 + 2;\ntotal;", json!(3)) },
    ]
}

#[rustfmt::skip]
fn typescript() -> Vec<Slip> {
    let slip = |failing, says, corrected, expected| slip("typescript", failing, says, corrected, expected);
    vec![
        slip("const total = 3; totla", "did you mean total?", "const total = 3; total", json!(3)),
        slip("print(1); 2", "in TypeScript it is console.log(...)", "console.log(1); 2", json!(2)),
        slip("len([1])", "in TypeScript it is ....length", "[1].length", json!(1)),
        slip("None ?? 2", "in TypeScript it is null", "null ?? 2", json!(2)),
        slip("(await list_issues('a', 'b')).total_count", "write `await github.list_issues({ ... })`",
             "(await github.list_issues({ owner: 'a', repo: 'b' })).total_count", json!(3)),
        slip("import { list_isues } from 'mcp_tools/github'; (await list_isues('a', 'b')).total_count", "did you mean list_issues?",
             "import { list_issues } from 'mcp_tools/github'; (await list_issues('a', 'b')).total_count", json!(3)),
        slip("import githb from 'mcp_tools/githb'; (await githb.get_issue(1)).number", "did you mean github?",
             "import github from 'mcp_tools/github'; (await github.get_issue(1)).number", json!(1)),
        slip("(await github.get_isue(1)).number", "get_issue", "(await github.get_issue(1)).number", json!(1)),
        slip("(await codemode.get_issue({ number: 1 })).number", "write `await github.get_issue({ ... })`", "(await github.get_issue({ number: 1 })).number", json!(1)),
        slip("(await callTool('get_issue', { number: 1 })).number", "write \"github.get_issue\"", "(await callTool('github.get_issue', { number: 1 })).number", json!(1)),
        slip("(await github.get_issue({ nummer: 1 })).number", "did you mean number?", "(await github.get_issue({ number: 1 })).number", json!(1)),
        slip("(await github.get_issue({ number: 'one' })).number", "/number must be integer", "(await github.get_issue({ number: 1 })).number", json!(1)),
        slip("(await github.get_issue()).number", "get_issue needs the argument number", "(await github.get_issue({ number: 1 })).number", json!(1)),
        slip("const issue = github.get_issue(1); issue.title.length", "write await before the call", "const issue = await github.get_issue(1); issue.title.length", json!(14)),
        slip("const found = await github.list_issues('a', 'b'); found.map((issue) => issue.number)", "object {total_count, issues}",
             "const found = await github.list_issues('a', 'b'); found.issues.map((issue) => issue.number)", json!([1, 2, 3])),
        slip("const found = await github.search_code('a'); found.split('\\n')", "use rawText(value) for the text",
             "const found = await github.search_code('a'); rawText(found).split('\\n').length", json!(1)),
        slip("const rows = [1]; rows.append(2); rows", "in TypeScript it is .push(value)", "const rows = [1]; rows.push(2); rows", json!([1, 2])),
        slip("' a '.strip()", "in TypeScript it is .trim()", "' a '.trim()", json!("a")),
        slip("const rows = [1]; rows.length()", "in TypeScript it is .length, without parentheses", "const rows = [1]; rows.length", json!(1)),
        slip("let a = 1; let a = 2; a", "assign to the first without const or let", "let a = 1; a = 2; a", json!(2)),
        slip("(await github({ number: 1 })).number", "call one of its tools", "(await github.get_issue({ number: 1 })).number", json!(1)),
        Slip { other_language: Some("python"), ..slip("def f(a):\n    return a\nf(1)", "send it with language \"python\"", "def f(a):\n    return a\nf(1)", json!(1)) },
    ]
}

#[tokio::test]
async fn a_program_that_follows_the_error_succeeds() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("slips");
    let slips: Vec<Slip> = python().into_iter().chain(typescript()).collect();
    assert!(slips.len() >= 40, "{}", slips.len());
    for slip in slips {
        let failed = session.run_code(slip.language, slip.failing).await;
        let error = &failed["error"];
        let text = format!(
            "{}; {}",
            error["message"].as_str().unwrap_or_default(),
            error["hint"].as_str().unwrap_or_default()
        );
        let language = slip.other_language.unwrap_or(slip.language);
        let answer = session.run_code(language, slip.corrected).await;
        let outcome = ensure(failed["status"] == "error" && text.contains(slip.says), &text).and_then(|()| {
            equal(answer["value"].clone(), slip.expected).map_err(|e| format!("{e} {}", answer["error"]))
        });
        table.row(format!("{}: {}", slip.language, slip.failing.replace('\n', "; ")), outcome);
    }
    table.finish();
}
