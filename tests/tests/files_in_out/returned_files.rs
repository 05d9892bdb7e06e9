//! Tests of the files that programs return: content and links of the answer, and how they are read and saved.

use std::os::unix::fs::symlink;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

const FIGURE: &str =
    "class Figure:\n def savefig(self, to, format): to.write(b'\\x89PNG\\r\\n\\x1a\\n')\nFigure()";
const WRITES: &str = "open('/out/a.csv', 'w').write('1,2')\nopen('/out/b.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n')\nopen('/out/c.png', 'w').write('<html>')\n'done'";

async fn run(session: &Session, language: &str, code: &str) -> Value {
    let result = session.call("run_code", json!({"language": language, "code": code})).await.unwrap();
    serde_json::to_value(result).unwrap()
}

#[tokio::test]
async fn files_are_content_of_the_answer() {
    let lockhouse = Lockhouse::new();
    let session =
        Session::connect(lockhouse.command(&["serve", "--answer", "text"]), Session::latest()).await;
    let mut table = Table::new("programs");
    let typescript = "import { writeFile } from 'node:fs/promises';\nawait writeFile('/out/a.csv', '1,2'); await writeFile('/out/b.png', new Uint8Array([0x89, 80, 78, 71, 13, 10, 26, 10])); await writeFile('/out/c.png', '<html>'); 'done'";
    for (language, code) in [("python", WRITES), ("typescript", typescript)] {
        let result = run(&session, language, code).await;
        let content = result["content"].as_array().cloned().unwrap_or_default();
        table.row(format!("{language}: value"), equal(&content[0]["text"], &json!("\"done\"")));
        let link = content.iter().find(|block| block["type"] == "resource_link").cloned().unwrap_or_default();
        let told = (&link["name"], &link["mimeType"], &link["size"]);
        table.row(
            format!("{language}: link"),
            equal(told, (&json!("a.csv"), &json!("text/csv"), &json!(3)))
                .map_err(|e| format!("{e} {result}")),
        );
        let image = content.iter().find(|block| block["type"] == "image").cloned().unwrap_or_default();
        table.row(format!("{language}: image"), equal(&image["data"], &json!("iVBORw0KGgo=")));
        let images = content.iter().filter(|block| block["type"] == "image").count();
        let page = content.iter().find(|block| block["name"] == "c.png").cloned().unwrap_or_default();
        let is_link = page["type"] == "resource_link" && page["mimeType"] == "application/octet-stream";
        table
            .row(format!("{language}: no image by its name alone"), ensure(images == 1 && is_link, &content));
        let line = content
            .iter()
            .filter_map(|block| block["text"].as_str())
            .find(|text| text.trim_start().starts_with("Files: "));
        table.row(
            format!("{language}: line"),
            ensure(line.is_some_and(|line| line.contains("a.csv (3 bytes, handle ")), line),
        );
        let handle = link["uri"]
            .as_str()
            .and_then(|uri| uri.strip_prefix("lockhouse://result/"))
            .unwrap_or_default()
            .to_owned();
        let part = session.call("get_result", json!({"handle": handle})).await.unwrap();
        let part = serde_json::to_value(part).unwrap();
        let text = part["content"][0]["text"].as_str().unwrap_or_default();
        table.row(
            format!("{language}: get_result"),
            ensure(text.starts_with("This is the file a.csv (3 bytes)"), &part),
        );
    }
    let figure = run(&session, "python", FIGURE).await;
    table.row(
        "a figure",
        equal(&figure["content"][1]["data"], &json!("iVBORw0KGgo=")).map_err(|e| format!("{e} {figure}")),
    );
    let bytes = run(&session, "python", "bytes(5000)").await;
    table.row(
        "bytes",
        ensure(bytes["content"][1]["type"] == "resource_link" && !bytes.to_string().contains("AAAA"), &bytes),
    );
    let many = run(&session, "python", "for n in range(25): open(f'/out/{n}.txt', 'w').write('x')").await;
    table.row("too many", ensure(many.to_string().contains("at most 20 files"), &many));
    table.finish();
}

#[tokio::test]
async fn a_session_returns_only_changed_files() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let names = |answer: &Value| -> Vec<String> {
        let files = answer["files"].as_array().cloned().unwrap_or_default();
        files.iter().filter_map(|file| file["name"].as_str().map(str::to_owned)).collect()
    };
    let first = session.run_in("s", "python", "open('/out/a', 'w').write('1')\n1").await;
    assert_eq!(names(&first), ["a"], "{first}");
    let second = session.run_in("s", "python", "open('/out/b', 'w').write('1')\n1").await;
    assert_eq!(names(&second), ["b"], "{second}");
}

#[test]
fn stored_values_are_shown_without_the_bytes_of_files() {
    let lockhouse = Lockhouse::new().config("[limits]\nshown_bytes = 300\n");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let session = lockhouse.serve().await;
        let code = "from mcp_tools import Blob\n[Blob(b'secret' * 50, 'a/b')] + [b'secret' * 9] * 40";
        let answer = session.run_code("python", code).await;
        let handle =
            answer["truncated"]["value"]["handle"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        let part = session.call("get_result", json!({"handle": handle})).await.unwrap();
        let text = serde_json::to_value(part).unwrap().to_string();
        assert!(!text.contains("c2VjcmV0"), "{text}");
        let code = format!("from mcp_tools import load_result\nlen(load_result('{handle}')[1]['base64'])");
        assert_eq!(session.run_code("python", &code).await["value"], 72);
    });
}

#[test]
fn run_writes_files_into_a_folder_and_replaces_none_without_permission() {
    let lockhouse = Lockhouse::new();
    let run = |arguments: &[&str], code: &str| {
        lockhouse.run(&[&["run", "--language", "python", "-c", code], arguments].concat())
    };
    let mut table = Table::new("commands");
    let output = run(&["--out", "results"], WRITES);
    table.row("written", equal(output.status, Some(0)).map_err(|e| format!("{e} {}", output.stderr)));
    let path = lockhouse.path("home/results");
    table.row("content", equal(std::fs::read_to_string(path.join("a.csv")).ok().as_deref(), Some("1,2")));
    std::fs::write(path.join("a.csv"), "old").unwrap();
    let again = run(&["--out", "results"], WRITES);
    table.row(
        "not replaced",
        ensure(again.status == Some(1) && again.stderr.contains("was not replaced"), &again.stderr),
    );
    table.row("kept", equal(std::fs::read_to_string(path.join("a.csv")).ok().as_deref(), Some("old")));
    let replaced = run(&["--out", "results", "--yes"], WRITES);
    table.row("replaced", equal(replaced.status, Some(0)));
    table.row("new", equal(std::fs::read_to_string(path.join("a.csv")).ok().as_deref(), Some("1,2")));
    lockhouse.file("home/kept", "kept");
    symlink("../kept", path.join("link")).unwrap();
    let link = run(&["--out", "results", "--yes"], "open('/out/link', 'w').write('x')\n1");
    table.row("a link", ensure(link.status == Some(1), &link.stderr));
    table.row(
        "is not followed",
        equal(std::fs::read_to_string(lockhouse.path("home/kept")).ok().as_deref(), Some("kept")),
    );
    let code = "import os\nos.makedirs('/out/a/b')\nopen('/out/a/b/..x', 'w').write('1')\nopen('/out/.profile', 'w').write('1')\nopen('/out/x\\ny', 'w').write('1')\n1";
    let tricks = run(&["--out", "tricks"], code);
    let mut names: Vec<String> = std::fs::read_dir(lockhouse.path("home/tricks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    table.row(
        "names",
        equal(names, vec!["_profile".to_owned(), "a_b_..x".to_owned(), "x_y".to_owned()])
            .map_err(|e| format!("{e} {}", tricks.stderr)),
    );
    let figure = run(&["--out", "figures"], FIGURE);
    table.row("a figure", ensure(lockhouse.path("home/figures/figure.png").exists(), &figure.stderr));
    table.finish();
}

#[test]
fn a_stored_file_is_saved_by_its_handle() {
    let lockhouse = Lockhouse::new();
    let answer = lockhouse.answer("python", WRITES);
    let handle = answer["files"][0]["handle"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let saved = lockhouse.run(&["result", &handle[..10], "--out", "saved"]);
    assert_eq!(saved.status, Some(0), "{}", saved.stderr);
    assert_eq!(std::fs::read_to_string(lockhouse.path("home/saved/a.csv")).unwrap(), "1,2");
    let shown = lockhouse.run(&["result", handle]);
    assert!(shown.stdout.contains("is the file a.csv"), "{}", shown.stdout);
    let unknown = lockhouse.run(&["result", "ffffffff", "--out", "saved"]);
    assert!(unknown.status == Some(2) && unknown.stderr.contains("there is no file"), "{}", unknown.stderr);
}

#[tokio::test]
async fn a_file_of_a_running_service_is_saved_through_its_control_socket() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let answer =
        session.run_code("python", "open('/out/a.bin', 'wb').write(bytes(range(256)) * 3000)\n1").await;
    let handle = answer["files"][0]["handle"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let saved = lockhouse.run(&["result", handle, "--out", "saved"]);
    assert_eq!(saved.status, Some(0), "{}", saved.stderr);
    let whole: Vec<u8> = (0..=255).cycle().take(256 * 3000).collect();
    assert!(std::fs::read(lockhouse.path("home/saved/a.bin")).unwrap() == whole);
    session.close().await;
    let left = std::fs::read_dir(lockhouse.path("state/lockhouse/files")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "files of a service that has ended");
}
