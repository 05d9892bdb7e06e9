//! Tests of `denied_modules` in `[python]` and `[javascript]`: programs cannot import these modules, and the libraries that need them
//! still work.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

const CONFIG: &str = "\
[python]
denied_modules = [\"ctypes\", \"pickle\", \"xml.dom\", \"io\"]
[javascript]
denied_modules = [\"node:fs\", \"path\"]
";

const PYTHON: &str = "denied_modules of [python] in the configuration has";
const JAVASCRIPT: &str = "denied_modules of [javascript] in the configuration has";

#[tokio::test]
async fn programs_cannot_import_denied_modules() {
    let lockhouse = Lockhouse::with_fixture().config(CONFIG);
    let session = lockhouse.serve().await;
    let mut table = Table::new("denied modules");
    for (language, code, words) in [
        ("python", "import pickle", PYTHON),
        ("python", "from pickle import dumps", PYTHON),
        ("python", "import json, pickle as p", PYTHON),
        ("python", "from xml import dom", PYTHON),
        ("python", "import xml.dom.minidom", PYTHON),
        ("python", "from xml.dom import minidom", PYTHON),
        ("python", "def f():\n    import ctypes\nf()", PYTHON),
        ("python", "import importlib\nimportlib.import_module('pickle')", PYTHON),
        ("python", "import importlib\nimportlib.import_module('.dom', 'xml')", PYTHON),
        ("python", "from importlib import import_module\nimport_module('xml.dom.minidom')", PYTHON),
        ("python", "__import__('pickle')", PYTHON),
        ("python", "__import__('xml', fromlist=['dom'])", PYTHON),
        ("python", "import importlib\nimportlib.__import__('pickle')", PYTHON),
        ("python", "exec('import pickle', {})", PYTHON),
        ("python", "import builtins\nbuiltins.__import__('pickle')", PYTHON),
        ("typescript", "import fs from 'node:fs'", JAVASCRIPT),
        ("typescript", "import { readFile } from 'fs/promises'; readFile", JAVASCRIPT),
        ("typescript", "await import('node:fs')", JAVASCRIPT),
        ("typescript", "require('path/posix')", JAVASCRIPT),
    ] {
        let answer = session.run_code(language, code).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let kind = if language == "python" { "ImportError" } else { "Error" };
        let is_refused = answer["error"]["type"] == kind && message.contains(words);
        table.row(format!("{language}: {code}"), ensure(is_refused, &answer["error"]));
    }
    table.finish();
}

/// What is not denied works, also where it needs a denied module.
#[tokio::test]
async fn other_modules_and_their_own_imports_work() {
    let lockhouse = Lockhouse::with_fixture().config(CONFIG);
    let session = lockhouse.serve().await;
    let mut table = Table::new("modules that are not denied");
    for (language, code, expected) in [
        ("python", "import json, csv\njson.dumps([1])", json!("[1]")),
        ("python", "import xml.etree.ElementTree as e\ne.fromstring('<a/>').tag", json!("a")),
        ("python", "import copy, logging\ncopy.deepcopy([1])", json!([1])),
        (
            "python",
            "import concurrent.futures as c\nwith c.ThreadPoolExecutor() as p: r = p.submit(int, 1)\nr.result()",
            json!(1),
        ),
        ("python", "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']", json!(3)),
        ("python", "from servers.fixture.add import add\nadd(a=1, b=2)['sum']", json!(3)),
        ("python", "open('a', 'w').write('b')\nopen('a').read()", json!("b")),
        ("python", "import importlib\nimportlib.import_module('json').loads('1')", json!(1)),
        ("typescript", "files.write('a', 'b'); files.readText('a')", json!("b")),
        ("typescript", "import { add } from 'mcp_tools/fixture'; (await add({ a: 1, b: 2 })).sum", json!(3)),
    ] {
        let answer = session.run_code(language, code).await;
        let outcome = equal(answer["value"].clone(), expected);
        table.row(format!("{language}: {code}"), outcome.map_err(|e| format!("{e} {}", answer["error"])));
    }
    let control = Lockhouse::new().answer("python", "import pickle, xml.dom.minidom\n1");
    table.row("control: without the setting", equal(control["value"].clone(), json!(1)));
    table.finish();
}

#[test]
fn invalid_names_are_reported() {
    for (table, name, words) in [
        ("python", "a b", "is no name of a module"),
        ("python", "", "is no name of a module"),
        ("python", "mcp_tools", "cannot be denied"),
        ("javascript", "skills", "cannot be denied"),
    ] {
        let lockhouse = Lockhouse::new().config(&format!("[{table}]\ndenied_modules = [\"{name}\"]\n"));
        let checked = lockhouse.run(&["config", "check"]);
        assert!(checked.status == Some(2) && format!("{checked:?}").contains(words), "{checked:?}");
    }
}
