//! Tests of `lockhouse stubs`, which writes files with the types of all tools: the contents of these files, and the
//! other files in the directory, which the command must not change.

use std::fs;

use lockhouse_tests::{Table, ensure};
use serde_json::Value;

use crate::code_api::naming_server::lockhouse;

#[test]
fn stubs_contain_the_allowed_tools_and_a_header() {
    let lockhouse = lockhouse();
    let out = lockhouse.path("out");
    let location = out.to_str().expect("a path");
    let done = lockhouse.run(&["stubs", "--json", "--out", location]);
    assert_eq!(done.status, Some(0), "{}", done.stderr);
    let reported: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(reported["servers"][0]["tools"], 8);
    let mut table = Table::new("files");
    for file in reported["files"].as_array().expect("files") {
        let path = file["path"].as_str().expect("a path");
        let text = fs::read_to_string(out.join(path)).unwrap_or_default();
        let is_whole = text.len() as u64 == file["bytes"]
            && text.lines().next().is_some_and(|line| line.contains("lockhouse stubs"));
        table.row(path.to_owned(), ensure(is_whole && !text.contains("secret"), &text));
    }
    table.finish();
    let index = fs::read_to_string(out.join("README.md")).expect("an index");
    assert!(
        index.contains(
            "[Python](python/mcp_tools/my_hub.pyi) · [TypeScript](typescript/mcp_tools/my-hub.d.ts)"
        ),
        "{index}"
    );
    // A second run replaces the generated files. It is limited to one language and one server.
    let done = lockhouse.run(&["stubs", "--out", location, "--language", "python", "my-hub"]);
    assert_eq!(done.status, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("wrote 8 permitted tools of 1 servers"), "{}", done.stdout);
    assert_eq!(lockhouse.run(&["stubs", "--out", location, "nobody"]).status, Some(2));
}

#[test]
fn stubs_of_removed_servers_are_deleted_and_foreign_files_are_kept() {
    let lockhouse = lockhouse();
    let out = lockhouse.path("out");
    let location = out.to_str().expect("a path");
    assert_eq!(lockhouse.run(&["stubs", "--out", location]).status, Some(0));
    let module = out.join("python/mcp_tools/my_hub.pyi");
    let gone = out.join("python/mcp_tools/gone.pyi");
    fs::copy(&module, &gone).expect("a copy");
    fs::write(out.join("python/mcp_tools/mine.pyi"), "x: int\n").expect("a file");
    let done = lockhouse.run(&["stubs", "--out", location]);
    assert_eq!((done.status, gone.exists()), (Some(0), false), "{}", done.stderr);
    assert!(out.join("python/mcp_tools/mine.pyi").exists());
    // Either all files are written or none.
    fs::write(&module, "def mine() -> None: ...\n").expect("a file");
    fs::remove_file(out.join("README.md")).expect("its own");
    let done = lockhouse.run(&["stubs", "--out", location]);
    assert_eq!(done.status, Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("my_hub.pyi was not written by `lockhouse stubs`"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(&module).expect("still there"), "def mine() -> None: ...\n");
    assert!(!out.join("README.md").exists());
}

#[tokio::test]
async fn the_stub_package_matches_the_runtime_package() {
    let lockhouse = lockhouse();
    let out = lockhouse.path("out");
    assert_eq!(lockhouse.run(&["stubs", "--out", out.to_str().expect("a path")]).status, Some(0));
    let text = |path: &str| fs::read_to_string(out.join(path)).expect("a stub");
    let (python, typescript) = (text("python/mcp_tools/__init__.pyi"), text("typescript/mcp_tools.d.ts"));
    let globals =
        typescript.clone() + &text("typescript/globals.d.ts") + &text("typescript/mcp_tools/my-hub.d.ts");
    let session = lockhouse.serve().await;
    let mut table = Table::new("names of the package");
    let exported = "import mcp_tools\nmcp_tools.__all__ + ['callMCPTool', 'discoverMCPTools', 'getToolSchema', 'my_hub']";
    let rows = [
        (
            "python",
            exported,
            &python,
            ["def {}(", "class {}(", "class {}:", "{} =", "import {} as"].as_slice(),
        ),
        ("typescript", "Object.keys(mcp_tools)", &typescript, &["function {}(", "class {} ", " as {},"]),
        (
            "typescript",
            "Object.keys(mcp_tools).concat(['my_hub', 'myHub', 'console', 'setTimeout', 'crypto', 'URLSearchParams'])",
            &globals,
            &["function {}(", "class {} ", "const {}:"],
        ),
    ];
    for (language, code, text, forms) in rows {
        let answer = session.run_code(language, code).await;
        let names = answer["value"].as_array().cloned().unwrap_or_default();
        table.row(format!("{language}: {code}: some"), ensure(!names.is_empty(), &answer));
        for name in names.iter().filter_map(Value::as_str) {
            let is_there = forms.iter().any(|form| text.contains(&form.replace("{}", name)));
            table.row(format!("{language}: {name}"), ensure(is_there, text));
        }
    }
    table.finish();
}
