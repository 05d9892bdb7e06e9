//! Tests of writing files of this machine: a program can write only where the configuration and the policy permit it.

use std::os::unix::fs::symlink;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

use super::{FILES_POLICY, lockhouse};

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

/// Python reports no error of a file object that a program discards, so Lockhouse does.
#[test]
fn a_file_is_written_at_the_end_of_the_run_at_the_latest_and_no_failure_is_lost() {
    let lockhouse = Lockhouse::outside_tmp()
        .config("[servers.files]\nread = [\"~/out\"]\nwrite = [\"~/out\"]\n")
        .policy(FILES_POLICY);
    std::fs::create_dir_all(lockhouse.path("home/out")).unwrap();
    let path = |name: &str| lockhouse.path("home/out").join(name);
    let mut table = Table::new("files that a program does not close");
    for (name, code) in [
        ("still open", "f = open('@', 'w')\nf.write('x')\nprint('y', end='', file=f)\n1"),
        ("discarded", "open('@', 'w').write('xy')\n1"),
        ("discarded bytes", "open('@', 'wb', buffering=0).write(b'xy')\n1"),
        ("still open to change", "f = open('@', 'w+')\nf.write('xy')\nf.seek(0)\nint(f.read() == 'xy')"),
        ("never written to", "open('@', 'w').write('xy')\nf = open('@', 'r+')\n1"),
    ] {
        let path = path(&format!("{name}.txt"));
        let answer = lockhouse.answer("python", &code.replace('@', &path.display().to_string()));
        table.row(name, equal(&answer["value"], &json!(1)).map_err(|e| format!("{e} {answer}")));
        table.row(
            format!("{name}: content"),
            equal(std::fs::read_to_string(&path).ok().as_deref(), Some("xy")),
        );
        let calls = answer["calls"].to_string().matches("\"write\"").count();
        table.row(format!("{name}: one write"), equal(calls, 1));
    }
    for mode in ["'w'", "'wb', buffering=0", "'w+'"] {
        let data = if mode.contains('b') { "b'x'" } else { "'x'" };
        let code = format!("open({:?}, {mode}).write({data})\n1", path("none/a").display().to_string());
        let answer = lockhouse.answer("python", &code);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let words = "the program has discarded the file object without closing it";
        table.row(
            mode,
            ensure(message.contains(words) && message.contains("its folder does not exist"), &answer),
        );
    }
    table.finish();
}
