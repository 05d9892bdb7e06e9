//! Attempts to get around requirements with commands other than `serve` and `run`.

use lockhouse_tests::fixture_server;
use serde_json::json;

use super::Row;
use crate::requirements::attempts::{Host, boxed};
use crate::requirements::server;

const DENIED: &str = "[[denied]]\nname = \"other\"\n";
const STOP: &str = "stop = \"incident 7\"\n";

/// Returns whether a server whose program notes each start was started by a command.
async fn starts(it: &Host, arguments: &[&str]) -> (bool, String) {
    let notes = it.path("notes");
    let flag = format!("--notes={}", notes.display());
    it.config(&format!("{}args = [{flag:?}]\n", server("other")));
    let output = it.run(arguments, &[]).await;
    (notes.exists(), format!("{output:?}"))
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("commands", "server add", DENIED, |it| {
            boxed(async {
                let program = fixture_server().display().to_string();
                let output = it.run(&["server", "add", "other", "--", &program], &[]).await;
                let (is_listed, list) = it.lists("other", &[], &[]).await;
                (is_listed, format!("{output:?} {list}"))
            })
        }),
        ("commands", "server test", DENIED, |it| {
            boxed(async { starts(it, &["server", "test", "other"]).await })
        }),
        ("commands", "tools list", DENIED, |it| boxed(async { starts(it, &["tools", "list"]).await })),
        ("commands", "stubs", DENIED, |it| {
            boxed(async {
                let folder = it.path("stubs").display().to_string();
                starts(it, &["stubs", "--out", &folder]).await
            })
        }),
        ("commands", "import", DENIED, |it| {
            boxed(async {
                let text = json!({"mcpServers": {"other": {"command": fixture_server()}}}).to_string();
                let path = it.lockhouse.file("own.json", text).display().to_string();
                let output = it.run(&["import", "--from", &path, "--yes"], &[]).await;
                let (is_listed, list) = it.lists("other", &[], &[]).await;
                (is_listed, format!("{output:?} {list}"))
            })
        }),
        ("commands", "demo", STOP, |it| {
            boxed(async {
                let output = it.run(&["demo"], &[]).await;
                (output.status == Some(0), format!("{output:?}"))
            })
        }),
    ]
}
