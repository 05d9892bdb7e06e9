//! Tests of all forms in which Python and TypeScript programs can import tools.

use lockhouse_tests::{Table, equal};
use serde_json::json;

use crate::code_api::naming_server::lockhouse;

const PYTHON: [(&str, &str); 17] = [
    ("from a server", "from mcp_tools.my_hub import list_issues"),
    ("under another name", "from mcp_tools.my_hub import list_issues as found\nlist_issues = found"),
    ("everything", "from mcp_tools.my_hub import *"),
    ("the module", "import mcp_tools.my_hub as gh\nlist_issues = gh.list_issues"),
    ("the module by its place", "import mcp_tools.my_hub\nlist_issues = mcp_tools.my_hub.list_issues"),
    ("from the package", "from mcp_tools import my_hub\nlist_issues = my_hub.list_issues"),
    ("an attribute of the package", "import mcp_tools\nlist_issues = mcp_tools.my_hub.list_issues"),
    ("camelCase", "from mcp_tools.my_hub import listIssues as list_issues"),
    ("a server in camelCase", "from mcp_tools.myHub import listIssues as list_issues"),
    ("importlib", "import importlib\nlist_issues = importlib.import_module('mcp_tools.my_hub').list_issues"),
    ("getattr", "from mcp_tools import my_hub\nlist_issues = getattr(my_hub, 'list_issues')"),
    (
        "inside a function",
        "def f():\n    from mcp_tools.my_hub import list_issues\n    return list_issues\nlist_issues = f()",
    ),
    (
        "a partial",
        "import functools\nfrom mcp_tools import my_hub\nlist_issues = functools.partial(my_hub.list_issues)",
    ),
    (
        "by name",
        "from mcp_tools import call_tool\ndef list_issues(*names):\n    \
         return call_tool('my-hub.listIssues', owner=names[0], repo=names[1])",
    ),
    (
        "callMCPTool",
        "from mcp_tools import callMCPTool\ndef list_issues(*names):\n    \
         return callMCPTool('mcp__my-hub__listIssues', dict(zip(('owner', 'repo'), names)))",
    ),
    (
        "a thread",
        "from mcp_tools.my_hub import list_issues as found\nfrom concurrent.futures import ThreadPoolExecutor\n\
         def list_issues(*names):\n    with ThreadPoolExecutor(2) as pool:\n        return pool.submit(found, *names).result()",
    ),
    (
        "a class that holds it",
        "from mcp_tools import my_hub\nclass Hub:\n    found = my_hub.list_issues\nlist_issues = Hub().found",
    ),
];

const TYPESCRIPT: [(&str, &str); 14] = [
    ("from a server", "import { list_issues } from 'mcp_tools/my-hub';"),
    ("as an identifier", "import { list_issues } from 'mcp_tools/my_hub';"),
    ("camelCase", "import { listIssues as list_issues } from 'mcp_tools/myHub';"),
    ("everything", "import * as gh from 'mcp_tools/my-hub'; const { list_issues } = gh;"),
    ("the default", "import hub from 'mcp_tools/my-hub'; const list_issues = hub.listIssues;"),
    ("types as well", "import { list_issues, type ListIssuesArguments } from 'mcp_tools/my-hub';"),
    ("both at once", "import hub, { list_issues } from 'mcp_tools/my-hub'; hub;"),
    ("dynamically", "const { list_issues } = await import('mcp_tools/my-hub');"),
    ("require", "const { list_issues } = require('mcp_tools/my-hub');"),
    ("from the package", "import { my_hub } from 'mcp_tools'; const list_issues = my_hub.list_issues;"),
    ("a global", "const list_issues = my_hub.listIssues;"),
    ("a global in camelCase", "const list_issues = myHub['list_issues'];"),
    (
        "by name",
        "const list_issues = (owner: string, repo: string) => callTool('my-hub', 'listIssues', { owner, repo });",
    ),
    (
        "callMCPTool",
        "const list_issues = (owner: string, repo: string) => callMCPTool('mcp__my-hub__list_issues', { owner, repo });",
    ),
];

#[tokio::test]
async fn every_import_gives_the_same_function() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("imports");
    let expected = json!({"tool": "list_issues", "given": {"owner": "a", "repo": "b"}});
    let python = PYTHON.map(|(name, code)| ("python", name, format!("{code}\nlist_issues('a', 'b')")));
    let typescript = TYPESCRIPT
        .map(|(name, code)| ("typescript", name, format!("{code}\nreturn await list_issues('a', 'b');")));
    let later = [
        ("from a server", "from mcp_tools.aio.my_hub import list_issues"),
        ("from the package", "from mcp_tools.aio import my_hub\nlist_issues = my_hub.listIssues"),
    ];
    let later =
        later.map(|(name, code)| ("python", name, format!("{code}\nawait list_issues('a', repo='b')")));
    for (language, name, code) in python.into_iter().chain(typescript).chain(later) {
        let answer = session.run_code(language, &code).await;
        let outcome =
            equal(answer["value"].clone(), expected.clone()).map_err(|e| format!("{e} {}", answer["error"]));
        table.row(format!("{language}: {name}"), outcome);
    }
    table.finish();
}

#[tokio::test]
async fn an_import_lists_its_server_once_and_no_other() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let code = "import _lockhouse\nasked = []\n\
        for name in ('list_tools', 'describe'):\n    \
        def counted(*values, original=getattr(_lockhouse, name), name=name):\n        \
        asked.append(name)\n        return original(*values)\n    \
        setattr(_lockhouse, name, counted)\n\
        from mcp_tools.my_hub import *\nfrom mcp_tools.my_hub import listIssues, delete\nimport mcp_tools.aio.my_hub as later\n\
        later.list_issues, dir(later), list_issues('a', 'b'), repr(delete), list_issues.__name__\n\
        before = list(asked)\nlist_issues.__doc__, list_issues.__annotations__\n[before, asked]";
    let answer = session.run_code("python", code).await;
    assert_eq!(answer["value"], json!([["list_tools"], ["list_tools", "describe"]]), "{answer}");
}

#[tokio::test]
async fn a_module_lists_its_tools() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let rows = [
        (
            "python",
            "a star imports tools alone",
            "names = set(dir())\nfrom mcp_tools.my_hub import *\nsorted(set(dir()) - names - {'names'})",
            json!(["GetUser", "a_b", "a_b_2", "close_issue_v2", "delete_", "getUser", "list_issues", "save"]),
        ),
        (
            "python",
            "dir",
            "import mcp_tools.my_hub as m\n[n for n in dir(m) if n.startswith('l')]",
            json!(["list_issues", "list_tools"]),
        ),
        (
            "python",
            "list_tools",
            "from mcp_tools import my_hub\n[t['name'] for t in my_hub.list_tools()][:2]",
            json!(["list_issues", "save"]),
        ),
        (
            "python",
            "what a signature has",
            "import inspect\nfrom mcp_tools.my_hub import list_issues\ns = inspect.signature(list_issues)\n\
             [str(s), [p.kind.name for p in s.parameters.values()][0], s.parameters['state'].default, callable(list_issues)]",
            json!([
                "(owner: str, repo: str, state: Literal['open', 'closed'] = 'open', per_page: int = Ellipsis, \
                 since: str | None = Ellipsis) -> Any",
                "POSITIONAL_OR_KEYWORD",
                "open",
                true
            ]),
        ),
        (
            "python",
            "annotations",
            "from mcp_tools.my_hub import list_issues\nfrom typing import get_type_hints\n\
             [list_issues.__annotations__['owner'] is str, sorted(get_type_hints(list_issues))[0], list_issues.__name__, list_issues.__module__]",
            json!([true, "owner", "list_issues", "mcp_tools.my_hub"]),
        ),
        (
            "python",
            "async functions are known as such",
            "import asyncio, inspect\nfrom mcp_tools.aio.my_hub import list_issues\n\
             [asyncio.iscoroutinefunction(list_issues), str(inspect.signature(list_issues))[:12]]",
            json!([true, "(owner: str,"]),
        ),
        (
            "typescript",
            "its keys",
            "Object.keys(my_hub).slice(0, 3)",
            json!(["list_issues", "save", "delete_"]),
        ),
        ("typescript", "in", "['listIssues' in my_hub, 'nothing' in my_hub]", json!([true, false])),
        ("typescript", "list_tools", "(await my_hub.list_tools()).map((t) => t.name)[1]", json!("save")),
    ];
    let mut table = Table::new("modules");
    for (language, name, code, expected) in rows {
        let answer = session.run_code(language, code).await;
        let outcome =
            equal(answer["value"].clone(), expected).map_err(|e| format!("{e} {}", answer["error"]));
        table.row(format!("{language}: {name}"), outcome);
    }
    table.finish();
}

#[tokio::test]
async fn help_describes_a_tool_and_its_arguments() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let answer =
        session.run_code("python", "from mcp_tools.my_hub import list_issues\nhelp(list_issues)").await;
    insta::assert_snapshot!(answer["stdout"].as_str().unwrap_or_default());
}
