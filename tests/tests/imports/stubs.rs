//! `lockhouse stubs`: what it writes, and what it leaves alone.

use std::fs;

use lockhouse_tests::{Table, ensure};
use serde_json::Value;

use crate::library::lockhouse;

#[test]
fn a_tree_has_the_permitted_tools_and_says_what_it_is() {
    let lockhouse = lockhouse();
    let out = lockhouse.path("out");
    let place = out.to_str().expect("a path");
    let done = lockhouse.run(&["stubs", "--json", "--out", place]);
    assert_eq!(done.status, Some(0), "{}", done.stderr);
    let told: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(told["servers"][0]["tools"], 8);
    let mut table = Table::new("files");
    for file in told["files"].as_array().expect("files") {
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
    // Again: its own files are replaced. One language, one server.
    let done = lockhouse.run(&["stubs", "--out", place, "--language", "python", "my-hub"]);
    assert_eq!(done.status, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("wrote 8 permitted tools of 1 servers"), "{}", done.stdout);
    assert_eq!(lockhouse.run(&["stubs", "--out", place, "nobody"]).status, Some(2));
}

#[test]
fn files_of_others_stay_and_those_of_servers_that_went_do_not() {
    let lockhouse = lockhouse();
    let out = lockhouse.path("out");
    let place = out.to_str().expect("a path");
    assert_eq!(lockhouse.run(&["stubs", "--out", place]).status, Some(0));
    let module = out.join("python/mcp_tools/my_hub.pyi");
    let gone = out.join("python/mcp_tools/gone.pyi");
    fs::copy(&module, &gone).expect("a copy");
    fs::write(out.join("python/mcp_tools/mine.pyi"), "x: int\n").expect("a file");
    let done = lockhouse.run(&["stubs", "--out", place]);
    assert_eq!((done.status, gone.exists()), (Some(0), false), "{}", done.stderr);
    assert!(out.join("python/mcp_tools/mine.pyi").exists());
    // All or nothing.
    fs::write(&module, "def mine() -> None: ...\n").expect("a file");
    fs::remove_file(out.join("README.md")).expect("its own");
    let done = lockhouse.run(&["stubs", "--out", place]);
    assert_eq!(done.status, Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("my_hub.pyi is not of `lockhouse stubs`"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(&module).expect("still there"), "def mine() -> None: ...\n");
    assert!(!out.join("README.md").exists());
}
