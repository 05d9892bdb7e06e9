//! Tests of the folder `servers`: programs find the servers and their tools in it, as in a folder of files.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

/// Returns a Lockhouse test fixture with the servers `docs` (two tools, one of them denied), `my-hub` and `broken`, which does not start.
fn lockhouse() -> Lockhouse {
    let mut lockhouse = Lockhouse::new();
    let text = json!({"type": "string"});
    let tools = json!({"tools": [
        {
            "name": "get-page",
            "description": "Returns a page.\nIt may be \"\"\"long\"\"\" */.",
            "inputSchema": {
                "type": "object",
                "properties": {"title": {"type": "string", "description": "Which page"}, "language": text},
                "required": ["title"],
            },
        },
        {"name": "secret", "inputSchema": {"type": "object"}},
    ]});
    let file = lockhouse.file("tools.json", tools.to_string());
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/stubs/catalogue_server.py");
    let mut policy = "version = 1\n".to_owned();
    for name in ["docs", "my-hub"] {
        lockhouse = lockhouse.servers_entry(name, json!({"command": "python3", "args": [server, file]}));
        policy += &format!("[servers.{name}]\nallow = [\"*\"]\ndeny = [\"secret\"]\n");
    }
    lockhouse
        .servers_entry("broken", json!({"command": "false"}))
        .policy(&format!("{policy}[servers.broken]\nallow = [\"*\"]\n"))
}

const UNAVAILABLE: &str = "server broken is not available: it ended before it was ready (exit status: 1)";

const PYTHON: [(&str, &str); 12] = [
    ("the servers", "import os\nos.listdir('./servers')"),
    ("the tools of a server", "import os\n[os.listdir('servers/docs'), os.listdir('/servers/my_hub')]"),
    ("a tool", "open('servers/docs/get_page.py').read()"),
    ("all tools", "open('servers/docs/__init__.py').read()"),
    ("glob", "import glob\nsorted(glob.glob('servers/*/get_*.py'))"),
    ("pathlib", "from pathlib import Path\n[(p.name, p.is_dir()) for p in Path('servers/docs').iterdir()]"),
    ("walk", "import os\n[(folder, names) for folder, _, names in os.walk('servers') if 'docs' in folder]"),
    (
        "a denied tool",
        "import os\n[os.path.exists(f'servers/docs/{name}.py') for name in ('secret', 'get_page')]",
    ),
    ("the working directory", "import os\n[os.listdir('.'), os.listdir('/')]"),
    (
        "its own folder",
        "import os\nos.mkdir('servers')\nopen('servers/a', 'w').close()\nos.listdir('servers')",
    ),
    ("its own folders", "import os\nos.makedirs('servers/a/b')\nos.listdir('servers')"),
    ("its own file", "print(end=str(open('servers', 'w').write('abc')))\nopen('servers').read()"),
];

const TYPESCRIPT: [(&str, &str); 12] = [
    ("the servers", "(await import('fs/promises')).readdir('./servers')"),
    ("the tools of a server", "[files.list('servers/docs'), files.list('/servers/my_hub')]"),
    ("a tool", "files.readText('servers/docs/getPage.ts')"),
    ("all tools", "files.readText('servers/docs/index.ts')"),
    (
        "entries",
        "require('fs').readdirSync('servers/docs', { withFileTypes: true }).map((e) => [e.name, e.isFile()])",
    ),
    (
        "copies",
        "const fs = require('fs'); fs.cpSync('servers/docs', 'copy', { recursive: true }); fs.readdirSync('copy')",
    ),
    ("recursive", "require('fs').readdirSync('servers', { recursive: true })"),
    ("a denied tool", "['secret', 'get_page'].map((name) => files.exists(`servers/docs/${name}.ts`))"),
    ("the working directory", "[files.list('.'), files.list('/')]"),
    (
        "its own folder",
        "const fs = require('fs'); fs.mkdirSync('servers'); files.write('servers/a', ''); files.list('servers')",
    ),
    (
        "its own folders",
        "const fs = require('fs'); fs.mkdirSync('servers/a/b', { recursive: true }); files.list('servers')",
    ),
    ("its own file", "files.write('servers', 'abc'); files.readText('servers')"),
];

fn expected(name: &str, is_python: bool) -> Value {
    let (hub, end, index) =
        if is_python { ("my_hub", "py", "__init__.py") } else { ("my-hub", "ts", "index.ts") };
    let tool = format!("get_page.{end}");
    let names = if is_python { json!([index, tool]) } else { json!([tool, index]) };
    match name {
        "the servers" => json!(["broken", "docs", hub]),
        "the tools of a server" => json!([names, names]),
        "a tool" if is_python => json!(
            "# Import it with: from servers.docs import get_page\n\n\
             def get_page(title: str, language: str = ...) -> unknown:\n    \"\"\"Returns a page.\n    \
             It may be \\\"\\\"\\\"long\\\"\\\"\\\" */.\n\n    Parameters:\n      \
             title (str): Which page\n      language (str, optional):\n    \"\"\"\n    ...\n"
        ),
        "a tool" => json!(
            "// Import it with: import { get_page } from \"./servers/docs\";\n/**\n * Returns a page.\n * \
             It may be \"\"\"long\"\"\" * /.\n *\n * @param title Which page\n */\n\
             export declare function get_page(input: { title: string, language?: string }): Promise<unknown>;\n"
        ),
        "all tools" if is_python => json!(
            "\"\"\"The permitted tools of the MCP server docs.\"\"\"\n\n\
             from .get_page import get_page  # Returns a page.\n"
        ),
        "all tools" => json!(
            "// The permitted tools of the MCP server docs.\n\
             export { get_page } from \"./get_page\"; // Returns a page.\n"
        ),
        "glob" => json!(["servers/docs/get_page.py", "servers/my_hub/get_page.py"]),
        "pathlib" => json!([[index, false], [tool, false]]),
        "entries" => json!([[tool, true], [index, true]]),
        "copies" => names,
        "recursive" => json!([
            "broken",
            "docs",
            "docs/get_page.ts",
            "docs/index.ts",
            "my-hub",
            "my-hub/get_page.ts",
            "my-hub/index.ts"
        ]),
        "walk" => json!([["servers/docs", names]]),
        "a denied tool" => json!([false, true]),
        "the working directory" if is_python => json!([[], ["home", "out", "tmp", "dev"]]),
        "the working directory" => json!([[], ["home", "out", "tmp"]]),
        "its own folder" | "its own folders" => json!(["a"]),
        "its own file" => json!("abc"),
        _ => panic!("{name}"),
    }
}

#[tokio::test]
async fn programs_find_servers_and_tools_in_a_folder() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("the folder of the servers");
    for (language, programs) in [("python", PYTHON), ("typescript", TYPESCRIPT)] {
        for (name, code) in programs {
            let answer = session.run_code(language, code).await;
            let outcome = equal(answer["value"].clone(), expected(name, language == "python"));
            table.row(format!("{language}: {name}"), outcome.map_err(|e| format!("{e} {}", answer["error"])));
        }
    }
    table.finish();
}

/// Whatever would change the folder fails with an error that says what to do; a server that is not available is an error of its
/// folder alone.
#[tokio::test]
async fn the_folder_cannot_be_changed_and_names_the_servers_that_are_not_available() {
    const READ_ONLY: &str = "the folder servers shows the tools of the MCP servers and cannot be changed; write to another folder";
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("changes of the folder of the servers");
    let python = [
        ("open('servers/a', 'w')", READ_ONLY),
        ("open('servers/docs/get_page.py', 'a')", READ_ONLY),
        ("import os\nos.remove('servers/docs/get_page.py')", READ_ONLY),
        ("import os\nos.mkdir('servers/docs/a')", READ_ONLY),
        ("import os\nos.rename('servers/docs', 'a')", READ_ONLY),
        ("import os\nos.chmod('servers', 0)", READ_ONLY),
        ("import shutil\nshutil.rmtree('servers/docs')", READ_ONLY),
        ("import os\nos.listdir('servers/broken')", UNAVAILABLE),
        ("open('servers/broken/a.py')", UNAVAILABLE),
        ("open('servers/docs/a.py')", "No such file or directory"),
        ("open('servers/docs')", "Is a directory"),
    ];
    let typescript = [
        ("files.write('servers/a', '')", READ_ONLY),
        ("files.append('servers/docs/get_page.ts', '')", READ_ONLY),
        ("files.remove('servers/docs')", READ_ONLY),
        ("require('fs').mkdirSync('servers/docs/a')", READ_ONLY),
        ("require('fs').renameSync('servers/docs', 'a')", READ_ONLY),
        ("require('fs').truncateSync('servers/docs/get_page.ts')", READ_ONLY),
        ("files.list('servers/broken')", UNAVAILABLE),
        ("files.readText('servers/broken/a.ts')", UNAVAILABLE),
        ("files.readText('servers/docs/a.ts')", "no such file or directory"),
        ("files.readText('servers/docs')", "illegal operation on a directory"),
    ];
    let rows = python.map(|row| ("python", row)).into_iter().chain(typescript.map(|row| ("typescript", row)));
    for (language, (code, words)) in rows {
        let answer = session.run_code(language, code).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(format!("{language}: {code}"), ensure(message.contains(words), &answer));
    }
    table.finish();
}

/// A program that does not look at the folder asks nothing, and one that lists the servers does not start them.
#[tokio::test]
async fn a_listed_server_is_not_asked_before_its_folder_is() {
    let lockhouse = Lockhouse::new();
    let place = lockhouse.path("lazy");
    std::fs::create_dir_all(&place).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/scripted.py");
    let config = format!(
        "[servers.lazy]\ncommand = \"python3\"\nargs = {}\nstart = \"lazy\"\n",
        json!([script, place])
    );
    let lockhouse = lockhouse.config(&config).policy("version = 1\n[servers.lazy]\nallow = [\"*\"]\n");
    let session = lockhouse.serve().await;
    let starts = || std::fs::read_to_string(place.join("starts")).map_or(0, |text| text.lines().count());
    let names = session.run_code("python", "import os\nos.listdir('servers')").await;
    assert_eq!((&names["value"], starts()), (&json!(["lazy"]), 0), "{names}");
    let tools = session.run_code("python", "import os\nos.listdir('servers/lazy')").await;
    assert_eq!((&tools["value"], starts()), (&json!(["__init__.py", "echo.py"]), 1), "{tools}");
}
