//! Tests of writing files of this machine: a program can write only where the configuration and the policy permit it.

use std::os::unix::fs::symlink;

use lockhouse_tests::{Approver, Table, ensure, equal};
use serde_json::json;

use super::lockhouse;

#[test]
fn a_program_writes_where_it_is_permitted() {
    let lockhouse = lockhouse();
    let home = lockhouse.path("home");
    symlink(home.join("data"), home.join("out/link")).unwrap();
    symlink(home.join("data/sales.csv"), home.join("out/file")).unwrap();
    let writing = |path: &str, mode: &str| {
        let path = home.join(path).display().to_string();
        format!(
            "try:\n with open({path:?}, {mode:?}) as f: f.write('new')\n r = 'written'\nexcept Exception as e: r = f'{{type(e).__name__}}: {{e}}'\nr"
        )
    };
    let mut table = Table::new("writes");
    for path in ["out/a.txt", "out/a.txt"] {
        let answer = lockhouse.answer("python", &writing(path, "w"));
        table.row(path, equal(&answer["value"], &json!("written")).map_err(|e| format!("{e} {answer}")));
        table.row(
            format!("{path}: content"),
            equal(std::fs::read(home.join(path)).ok(), Some(b"new".to_vec())),
        );
    }
    for path in ["data/sales.csv", "other/a", "out/link/a", "out/file", "out/.hidden", "out/none/a"] {
        let answer = lockhouse.answer("python", &writing(path, "w"));
        let value = answer["value"].as_str().unwrap_or_default();
        table.row(path, ensure(value.contains("Error"), &answer));
    }
    let kept = std::fs::read_to_string(home.join("data/sales.csv")).unwrap();
    table.row("nothing else changed", ensure(kept.starts_with("region"), &kept));
    let names: Vec<_> =
        std::fs::read_dir(home.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    table.row("no temporary files are left", equal(names.len(), 3));
    let path = home.join("out/b.txt").display().to_string();
    let tool = format!("from files import write\nwrite({path:?}, text='ž')['bytes']");
    table.row("the tool", equal(&lockhouse.answer("python", &tool)["value"], &json!(2)));
    let code = format!(
        "import {{ writeFile }} from 'node:fs/promises';\nawait writeFile({path:?}, 'typescript'); 1"
    );
    table.row("TypeScript", equal(&lockhouse.answer("typescript", &code)["value"], &json!(1)));
    table.row("its content", equal(std::fs::read_to_string(&path).unwrap().as_str(), "typescript"));
    let large = format!("with open({path:?}, 'wb') as f: f.write(bytes(1024 * 1024 + 1))\n1");
    let answer = lockhouse.answer("python", &large);
    table.row("a file that is too large", ensure(answer.to_string().contains("file_mib"), &answer));
    table.finish();
}

/// A program writes a file in pieces, after the approver has seen its path and its size.
#[tokio::test]
async fn a_write_that_needs_approval_shows_path_and_size() {
    let policy = "version = 1\n[servers.files]\nallow = [\"read\"]\nask = [\"write\"]\n";
    let lockhouse = lockhouse().policy(policy);
    let session = lockhouse.serve().await;
    let mut approver = Approver::connected(&lockhouse).await;
    let mut table = Table::new("writes that need approval");
    for (name, decision) in [("approved.bin", "approve"), ("declined.bin", "decline")] {
        let path = lockhouse.path("home/out").join(name);
        let code = format!(
            "try:\n with open({path:?}, 'wb') as f: f.write(b'x' * 300_000)\n r = 'written'\nexcept Exception as e: r = f'{{type(e).__name__}}: {{e}}'\nr"
        );
        let running = session.run_code("python", &code);
        let answering = async {
            let question = approver.next("ask").await;
            approver.answer(&question, decision, "once").await;
            question
        };
        let (answer, question) = tokio::join!(running, answering);
        let asked = question["ask"].to_string();
        table.row(format!("{decision}: the path"), ensure(asked.contains(name), &asked));
        table.row(format!("{decision}: the size"), ensure(asked.contains("300000"), &asked));
        let content = std::fs::read(&path).ok().map(|content| content.len());
        let value = answer["value"].as_str().unwrap_or_default();
        if decision == "approve" {
            table.row("approve: written", equal((value, content), ("written", Some(300_000))));
        } else {
            table.row("decline: the error", ensure(value.starts_with("PermissionError"), &answer));
            table.row("decline: no file", equal(content, None));
        }
    }
    table.finish();
}
