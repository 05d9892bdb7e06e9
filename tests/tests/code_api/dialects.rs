//! Tests that programs in the style of similar products run unchanged: with their function names, their
//! imports, and their wrapper functions.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::code_api::naming_server;

/// Python programs, each with the name of its style. Each calls the tool `list_issues` of the upstream server
/// `my-hub`.
const PYTHON: [(&str, &str); 39] = [
    ("a server without an import", "my_hub.list_issues('a', 'b')"),
    ("in camelCase", "my_hub.listIssues(owner='a', repo='b')"),
    ("codemode", "codemode.my_hub.list_issues('a', 'b')"),
    ("codemode, a flat name", "codemode.my_hub_list_issues(owner='a', repo='b')"),
    ("tools", "tools.my_hub.list_issues('a', 'b')"),
    ("tools by item", "tools['my-hub'].list_issues('a', 'b')"),
    ("tools by the tool's name", "tools['my-hub.list_issues'](owner='a', repo='b')"),
    ("mcp", "mcp.my_hub.list_issues('a', 'b')"),
    ("a flat function", "my_hub__list_issues(owner='a', repo='b')"),
    ("a flat function with mcp", "mcp__my_hub__list_issues(owner='a', repo='b')"),
    ("callMCPTool", "callMCPTool('mcp__my-hub__list_issues', {'owner': 'a', 'repo': 'b'})"),
    ("callMCPTool, as an identifier", "callMCPTool('mcp__my_hub__listIssues', {'owner': 'a', 'repo': 'b'})"),
    ("call_mcp_tool", "call_mcp_tool('my_hub__list_issues', {'owner': 'a', 'repo': 'b'})"),
    ("call_tool, awaited", "await call_tool('my_hub_list_issues', {'owner': 'a', 'repo': 'b'})"),
    (
        "call_mcp_tool, awaited",
        "await call_mcp_tool('mcp__my_hub__list_issues', {'owner': 'a', 'repo': 'b'})",
    ),
    ("callTool", "callTool('my-hub', 'list_issues', {'owner': 'a', 'repo': 'b'})"),
    ("tools.call_tool", "tools.call_tool('my-hub.list_issues', {'owner': 'a', 'repo': 'b'})"),
    ("a server, awaited", "await my_hub.list_issues('a', 'b')"),
    ("codemode, awaited", "await codemode.my_hub.list_issues('a', 'b')"),
    ("a flat function, awaited", "await my_hub__list_issues('a', 'b')"),
    (
        "gathered",
        "import asyncio\nfound = await asyncio.gather(*[my_hub.list_issues('a', repo) for repo in ['b', 'c']])\nfound[0]",
    ),
    ("from servers", "from servers.my_hub import list_issues\nlist_issues('a', 'b')"),
    ("from servers, the module", "from servers import my_hub\nmy_hub.list_issues('a', 'b')"),
    ("import servers", "import servers.my_hub as hub\nhub.list_issues('a', 'b')"),
    ("from servers, a tool", "from servers.my_hub.list_issues import list_issues\nlist_issues('a', 'b')"),
    ("from servers, in camelCase", "from servers.my_hub.listIssues import listIssues\nlistIssues('a', 'b')"),
    (
        "import servers, a tool",
        "import servers.my_hub.list_issues\nservers.my_hub.list_issues.list_issues('a', 'b')",
    ),
    ("a module that is called", "import servers.my_hub.list_issues as f\nf('a', 'b')"),
    ("from mcp_tools, a tool", "from mcp_tools.my_hub.list_issues import list_issues\nlist_issues('a', 'b')"),
    (
        "from mcp_tools.aio, a tool",
        "from mcp_tools.aio.my_hub.list_issues import list_issues\nawait list_issues('a', 'b')",
    ),
    (
        "both forms of an import",
        "from servers.my_hub.list_issues import list_issues as f\nfrom servers.my_hub import list_issues as g\n\
         [f is g, g('a', 'b')][1]",
    ),
    ("servers without an import", "servers.my_hub.list_issues('a', 'b')"),
    ("servers, awaited", "await servers['my-hub'].listIssues('a', 'b')"),
    ("import the server", "import my_hub\nmy_hub.list_issues('a', 'b')"),
    (
        "asyncio.run",
        "import asyncio\nasync def main():\n    return await my_hub.list_issues('a', 'b')\nasyncio.run(main())",
    ),
    (
        "asyncio.run in a running loop",
        "import asyncio\nawait asyncio.sleep(0)\nasync def main():\n    await asyncio.sleep(0)\n    \
         return await asyncio.gather(my_hub.list_issues('a', 'b'))\nfound = asyncio.run(main())\n\
         await asyncio.sleep(0)\nfound[0]",
    ),
    ("asyncio.run of a call", "import asyncio\nasyncio.run(my_hub.list_issues('a', 'b'))"),
    (
        "__main__",
        "def main():\n    return my_hub.list_issues('a', 'b')\n\nif __name__ == \"__main__\":\n    main()",
    ),
    ("a fence", "```python\nmy_hub.list_issues('a', 'b')\n```"),
];

/// TypeScript programs, each with the name of its style. Each calls the tool `list_issues` of the upstream
/// server `my-hub`.
const TYPESCRIPT: [(&str, &str); 32] = [
    ("a server", "await my_hub.list_issues('a', 'b')"),
    ("codemode", "await codemode.my_hub.list_issues({ owner: 'a', repo: 'b' })"),
    ("codemode, a flat name", "await codemode.my_hub_list_issues({ owner: 'a', repo: 'b' })"),
    ("tools", "await tools.my_hub.list_issues('a', 'b')"),
    ("tools by item", "await tools['my-hub'].list_issues('a', 'b')"),
    ("tools by the tool's name", "await tools['my-hub.list_issues']({ owner: 'a', repo: 'b' })"),
    ("a flat function", "await my_hub__list_issues({ owner: 'a', repo: 'b' })"),
    ("a flat function with mcp", "await mcp__my_hub__list_issues({ owner: 'a', repo: 'b' })"),
    ("a flat function in a function", "const f = () => my_hub__listIssues('a', 'b');\nawait f()"),
    ("callMCPTool", "await callMCPTool('mcp__my-hub__list_issues', { owner: 'a', repo: 'b' })"),
    (
        "callMCPTool, as an identifier",
        "await callMCPTool('mcp__my_hub__listIssues', { owner: 'a', repo: 'b' })",
    ),
    ("call_mcp_tool", "await call_mcp_tool('my_hub__list_issues', { owner: 'a', repo: 'b' })"),
    ("call_tool, a flat name", "await call_tool('my_hub_list_issues', { owner: 'a', repo: 'b' })"),
    ("tools.callTool", "await tools.callTool('my-hub.list_issues', { owner: 'a', repo: 'b' })"),
    ("from ./servers", "import { list_issues } from './servers/my-hub';\nawait list_issues('a', 'b')"),
    (
        "from ../servers, a file",
        "import * as hub from '../servers/my_hub/index.ts';\nawait hub.listIssues('a', 'b')",
    ),
    ("from servers", "import { listIssues } from 'servers/my-hub.js';\nawait listIssues('a', 'b')"),
    (
        "a tool from ./servers",
        "import { listIssues } from './servers/my-hub/listIssues';\nawait listIssues('a', 'b')",
    ),
    (
        "a tool from ./servers, by default",
        "import call from './servers/my_hub/list_issues.ts';\nawait call('a', 'b')",
    ),
    (
        "a tool from ./servers, as a module",
        "import * as tool from '/servers/my-hub/list-issues.js';\nawait tool.list_issues('a', 'b')",
    ),
    (
        "a tool, dynamically",
        "const { default: f } = await import('../servers/my-hub/list_issues');\nawait f('a', 'b')",
    ),
    ("a tool, required", "const f = require('./servers/my-hub/list_issues');\nawait f('a', 'b')"),
    (
        "a tool from mcp_tools",
        "import { list_issues } from 'mcp_tools/my-hub/list_issues';\nawait list_issues('a', 'b')",
    ),
    ("all servers", "import * as servers from './servers';\nawait servers['my-hub'].list_issues('a', 'b')"),
    (
        "one of all servers",
        "import { my_hub } from './servers/index.ts';\nawait my_hub.list_issues('a', 'b')",
    ),
    ("servers without an import", "await servers.my_hub.listIssues('a', 'b')"),
    ("the server as a module", "import hub from 'my-hub';\nawait hub.list_issues('a', 'b')"),
    ("dynamically", "const hub = await import('./servers/my-hub');\nawait hub.list_issues('a', 'b')"),
    ("require", "const { list_issues } = require('./servers/my-hub');\nawait list_issues('a', 'b')"),
    ("a fence", "```typescript\nawait my_hub.list_issues('a', 'b')\n```"),
    ("a fence without an end", "```ts\nawait my_hub.list_issues('a', 'b')"),
    (
        "a main that is called",
        "async function main() { return await tools.my_hub.list_issues('a', 'b'); }\nmain();",
    ),
];

/// Programs that search for tools in the styles of several products: the language, the name of the style, and
/// the code. The value of each is the name of the best match.
const SEARCHES: [(&str, &str, &str); 17] = [
    ("python", "tools.search", "tools.search({'query': 'issues of a repository', 'limit': 1})[0]['tool']"),
    ("python", "tools.search with words", "tools.search('issues of a repository')[0]['tool']"),
    ("python", "a list of words", "codemode.search_tools(['issues', 'repository'])[0]['tool']"),
    ("python", "search_tools", "search_tools('issues of a repository', limit=2)[0]['tool']"),
    ("python", "search_tools, a dict", "search_tools({'query': 'issues of a repository'})[0]['tool']"),
    ("python", "search_tools, awaited", "(await search_tools('issues of a repository'))[0]['tool']"),
    ("python", "of a server", "my_hub.search('issues of a repository')[0]['tool']"),
    (
        "python",
        "of a server, imported",
        "from mcp_tools import my_hub\nmy_hub.search({'query': 'issues'})[0]['tool']",
    ),
    ("python", "of a server, awaited", "(await my_hub.search('issues of a repository'))[0]['tool']"),
    ("python", "discoverMCPTools", "discoverMCPTools({'search': ['issues']})[0]['name'].split('__')[-1]"),
    ("python", "discover_mcp_tools", "discover_mcp_tools(search=['issues'])[0]['name'].split('__')[-1]"),
    (
        "typescript",
        "tools.search",
        "(await tools.search({ query: 'issues of a repository', limit: 1 }))[0].tool",
    ),
    ("typescript", "codemode.search", "(await codemode.search('issues of a repository'))[0].tool"),
    ("typescript", "of a server", "(await my_hub.search('issues of a repository'))[0].tool"),
    ("typescript", "of a server, an object", "(await my_hub.searchTools({ query: 'issues' }))[0].tool"),
    ("typescript", "search_tools", "(await search_tools({ query: 'issues of a repository' }))[0].tool"),
    (
        "typescript",
        "discoverMCPTools",
        "(await discoverMCPTools({ search: ['issues'] }))[0].name.split('__').at(-1)",
    ),
];

async fn check(lockhouse: &Lockhouse, title: &str, rows: Vec<(String, &str, &str, Value)>) {
    let session = lockhouse.serve().await;
    let mut table = Table::new(title);
    for (name, language, code, expected) in rows {
        let answer = session.run_code(language, code).await;
        let outcome = equal(answer["value"].clone(), expected)
            .map_err(|e| format!("{e} {} {}", answer["error"], answer["stderr"]));
        table.row(format!("{language}: {name}"), outcome);
    }
    table.finish();
}

#[tokio::test]
async fn every_form_of_a_call_reaches_the_tool() {
    let expected = json!({"tool": "list_issues", "given": {"owner": "a", "repo": "b"}});
    let row =
        |language| move |(name, code): (&str, &'static str)| (name.to_owned(), language, code, json!(null));
    let rows = PYTHON.map(row("python")).into_iter().chain(TYPESCRIPT.map(row("typescript")));
    let rows = rows.map(|(name, language, code, _)| (name, language, code, expected.clone())).collect();
    check(&naming_server::lockhouse(), "forms of calls", rows).await;
}

#[tokio::test]
async fn every_form_of_a_search_finds_the_tool() {
    let rows = SEARCHES.map(|(language, name, code)| (name.to_owned(), language, code, json!("list_issues")));
    check(&naming_server::lockhouse(), "forms of searches", rows.to_vec()).await;
}

#[tokio::test]
async fn all_tools_lists_the_permitted_tools_in_both_languages() {
    let listed = json!({
        "server": "my-hub", "name": "list_issues", "description": "Lists the issues of a repository."
    });
    let rows = vec![
        ("the first".to_owned(), "python", "ALL_TOOLS[0]", listed.clone()),
        (
            "how many".to_owned(),
            "python",
            "[len(ALL_TOOLS), 'secret' in [t['name'] for t in ALL_TOOLS]]",
            json!([8, false]),
        ),
        ("the first".to_owned(), "typescript", "ALL_TOOLS[0]", listed),
        (
            "how many".to_owned(),
            "typescript",
            "[ALL_TOOLS.length, ALL_TOOLS.some((t) => t.name === 'secret')]",
            json!([8, false]),
        ),
        ("a variable".to_owned(), "python", "ALL_TOOLS = [1]\nlen(ALL_TOOLS)", json!(1)),
        ("a variable".to_owned(), "typescript", "const ALL_TOOLS = [1]; ALL_TOOLS.length", json!(1)),
    ];
    check(&naming_server::lockhouse(), "ALL_TOOLS", rows).await;
}

/// Returns a Lockhouse test fixture whose upstream servers have competing names: those of Lockhouse's own
/// functions, of builtins of the languages, and of the styles of other products.
fn competing_names() -> Lockhouse {
    let mut lockhouse = Lockhouse::new();
    let mut policy = "version = 1\n".to_owned();
    let tools = json!({"tools": [
        {"name": "search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}},
        {"name": "format", "inputSchema": {"type": "object"}},
        {"name": "title", "inputSchema": {"type": "object"}},
    ]});
    let file = lockhouse.file("tools.json", tools.to_string());
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/stubs/catalogue_server.py");
    for name in ["tools", "describe", "format", "Math", "json", "plain"] {
        lockhouse = lockhouse.servers_entry(name, json!({"command": "python3", "args": [server, file]}));
        policy += &format!("[servers.{name}]\nallow = [\"*\"]\n");
    }
    lockhouse.policy(&policy)
}

#[tokio::test]
async fn variables_builtins_servers_and_dialects_have_precedence_in_this_order() {
    let called = |tool: &str| json!({"tool": tool, "given": {}});
    let found = json!({"tool": "search", "given": {"query": "a"}});
    let rows = [
        ("a tool named search", "python", "tools.search(query='a')", found.clone()),
        ("a tool named search", "typescript", "await tools.search({ query: 'a' })", found.clone()),
        ("of a server", "python", "plain.search('a')", found.clone()),
        ("of a server", "typescript", "await plain.search('a')", found),
        ("a server named describe", "python", "describe.title()", called("title")),
        ("a server named describe", "typescript", "await describe.title()", called("title")),
        ("the server is not the dialect", "typescript", "await tools.title()", called("title")),
        ("a builtin", "python", "format(3, '03')", json!("003")),
        ("a builtin", "typescript", "Math.max(1, 2)", json!(2)),
        ("the server of a builtin's name", "python", "codemode.format.title()", called("title")),
        ("the server of a builtin's name", "typescript", "await codemode.Math.title()", called("title")),
        ("a standard module", "python", "import json\njson.dumps([1])", json!("[1]")),
        ("a variable", "python", "tools = ['a']\ncodemode = 'b'\n[tools, codemode]", json!([["a"], "b"])),
        ("a parameter", "python", "def f(tools):\n    return tools\nf(3)", json!(3)),
        ("a variable in a function", "python", "def f():\n    plain = 1\n    return plain\nf()", json!(1)),
        (
            "a variable",
            "typescript",
            "const tools = ['a'], codemode = 'b'; [tools, codemode]",
            json!([["a"], "b"]),
        ),
        ("a function", "typescript", "function plain__title() { return 1 } plain__title()", json!(1)),
        (
            "not in globals",
            "python",
            "plain.title()\n['plain' in globals(), 'plain' in dir()]",
            json!([false, false]),
        ),
        ("an import of a library", "python", "import tools\ntools.title()", called("title")),
    ];
    let rows = rows.map(|(name, language, code, expected)| (name.to_owned(), language, code, expected));
    check(&competing_names(), "precedence of names", rows.to_vec()).await;
}

#[tokio::test]
async fn a_session_keeps_variables_and_no_names_of_dialects() {
    let lockhouse = naming_server::lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("sessions");
    for (language, code, expected) in [
        ("python", "hub = my_hub\nmy_hub.list_issues('a', 'b')['tool']", json!("list_issues")),
        (
            "python",
            "[hub.list_issues('a', 'b')['tool'], 'my_hub' in globals()]",
            json!(["list_issues", false]),
        ),
        ("python", "my_hub = 5\nmy_hub", json!(5)),
        ("python", "my_hub + 1", json!(6)),
        ("python", "del my_hub\nmy_hub.list_issues('a', 'b')['tool']", json!("list_issues")),
        ("python", "import builtins\nhasattr(builtins, 'my' + '_hub')", json!(false)),
        ("typescript", "(await my_hub__list_issues('a', 'b')).tool", json!("list_issues")),
        ("typescript", "const tools = 5; tools", json!(5)),
        ("typescript", "tools + 1", json!(6)),
    ] {
        let answer = session.run_in(&format!("s-{language}"), language, code).await;
        table.row(
            format!("{language}: {code}"),
            equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {}", answer["error"])),
        );
    }
    table.finish();
}

#[tokio::test]
async fn a_program_without_these_names_sends_no_request() {
    let lockhouse = naming_server::lockhouse();
    let session = lockhouse.serve().await;
    // The second run of a session sees the requests that the start of its program sends.
    let counting = "import _lockhouse, builtins\nasked = []\nbefore = set(dir(builtins))\n\
        for name in ('list_tools', 'describe', 'search', 'list_servers'):\n    \
        def counted(*values, original=getattr(_lockhouse, name), name=name):\n        \
        asked.append(name)\n        return original(*values)\n    \
        setattr(_lockhouse, name, counted)";
    session.run_in("s", "python", counting).await;
    let mut table = Table::new("requests");
    for (code, expected) in [
        (
            "import json\nx = json.dumps([n for n in range(3)])\n[asked, sorted(set(dir(builtins)) - before)]",
            json!([[], []]),
        ),
        (
            "def unused():\n    return my_hub__list_issues()\n[asked, sorted(set(dir(builtins)) - before)]",
            json!([[], ["my_hub__list_issues"]]),
        ),
        ("len(ALL_TOOLS), asked", json!([8, ["list_tools"]])),
    ] {
        let answer = session.run_in("s", "python", code).await;
        table.row(
            code,
            equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {}", answer["error"])),
        );
    }
    table.finish();
}

#[tokio::test]
async fn a_fence_leaves_the_positions_of_errors_as_submitted() {
    let lockhouse = naming_server::lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("fences");
    for (language, code, line) in [
        ("python", "```python\nx = 1\n1 / 0\n```", 3),
        ("python", "\n```\nx = (\n```\n", 3),
        ("typescript", "```ts\nconst x = 1;\nthrow new Error('a');\n```", 3),
        ("typescript", "```\nlet x = ;\n```", 2),
    ] {
        let answer = session.run_code(language, code).await;
        table.row(format!("{language}: {code:?}"), equal(answer["error"]["line"].clone(), json!(line)));
    }
    for (language, code, expected) in [
        ("python", "x = '''\n```\n'''\nlen(x)", json!(5)),
        ("typescript", "const x = '```'; x.length", json!(3)),
    ] {
        let answer = session.run_code(language, code).await;
        table.row(format!("{language}: {code:?}"), equal(answer["value"].clone(), expected));
    }
    for (language, code) in [("python", "Run:\n```python\n1\n```"), ("typescript", "Run:\n```ts\n1\n```")] {
        let answer = session.run_code(language, code).await;
        let hint = answer["error"]["hint"].as_str().unwrap_or_default();
        table.row(
            format!("{language}: {code:?}"),
            ensure(hint.contains("no ``` before and after it"), &answer),
        );
    }
    table.finish();
}
