//! Tests of operations of the languages on files of this machine: copies, modes and times, access, and databases.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use super::FILES_POLICY;

const NOT_PERMITTED: &str = "PermissionError EACCES";

/// Returns Lockhouse with a folder to read, one to read and write, and one only to write.
fn prepared() -> Lockhouse {
    let lockhouse = Lockhouse::outside_tmp()
        .config("[servers.files]\nread = [\"~/data\", \"~/out\"]\nwrite = [\"~/out\", \"~/drop\"]\n")
        .policy(FILES_POLICY);
    lockhouse.file("home/data/a.csv", "1\n");
    lockhouse.file("home/data/sub/b.csv", "2\n");
    lockhouse.file("home/out/old.txt", "old");
    std::fs::create_dir_all(lockhouse.path("home/drop")).unwrap();
    lockhouse
}

/// Runs a Python program with `@` for the home directory, and returns its value; of a caught error, its class and code.
fn value(lockhouse: &Lockhouse, code: &str) -> Value {
    let code = code.replace('@', &lockhouse.path("home").display().to_string());
    let (before, last) = code.rsplit_once('\n').unwrap_or(("", &code));
    let body = format!("{before}\nr = {last}").replace('\n', "\n ");
    let program = format!(
        "import errno, os, shutil, sqlite3\nfrom pathlib import Path\ntry:\n {body}\n\
         except OSError as e: r = f'{{type(e).__name__}} {{errno.errorcode[e.errno]}}'\nr"
    );
    let answer = lockhouse.answer("python", &program);
    if answer["error"].is_null() { answer["value"].clone() } else { answer }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[test]
fn files_are_copied_from_and_to_the_host() {
    let lockhouse = prepared();
    let home = lockhouse.path("home");
    let mut table = Table::new("copies");
    for (code, expected) in [
        ("shutil.copy2('@/data/a.csv', '/tmp/a')\nopen('/tmp/a').read()", json!("1\n")),
        ("shutil.copytree('@/data', '/tmp/tree')\nopen('/tmp/tree/sub/b.csv').read()", json!("2\n")),
        ("len(shutil.copy('@/data/a.csv', '@/out/copy.csv')) > 0", json!(true)),
        ("len(shutil.copy2('@/data/a.csv', '@/out/copy2.csv')) > 0", json!(true)),
        ("len(shutil.copytree('@/data', '@/out/tree')) > 0", json!(true)),
        ("len(shutil.copytree('@/data', '@/drop/tree')) > 0", json!(true)),
        ("len(shutil.copy('@/data/a.csv', '@/drop/copy.csv')) > 0", json!(true)),
        (
            "open('/tmp/m', 'w').write('moved')\nshutil.move('/tmp/m', '@/out/moved.txt')\nos.path.exists('/tmp/m')",
            json!(false),
        ),
        ("Path('@/out/touched').touch()", Value::Null),
        ("Path('@/out/old.txt').touch()", Value::Null),
        ("os.chmod('@/out/old.txt', 0o600)", Value::Null),
        // Controls: what may not be written, or does not exist.
        ("shutil.copy('@/out/old.txt', '@/data/new.txt')", json!(NOT_PERMITTED)),
        ("os.chmod('@/data/a.csv', 0o600)", json!(NOT_PERMITTED)),
        ("os.utime('@/data/a.csv')", json!(NOT_PERMITTED)),
        ("os.chmod('@/out/none', 0o600)", json!("FileNotFoundError ENOENT")),
        ("os.utime('@/out/none')", json!("FileNotFoundError ENOENT")),
    ] {
        table.row(code, equal(value(&lockhouse, code), expected));
    }
    let program = format!(
        "import {{ copyFileSync, cpSync }} from 'node:fs';\ncopyFileSync('{0}/data/a.csv', '{0}/out/ts.csv'); cpSync('{0}/data', '{0}/out/ts', {{ recursive: true }}); 1",
        home.display()
    );
    table.row("TypeScript", equal(&lockhouse.answer("typescript", &program)["value"], &json!(1)));
    for (name, content) in [
        ("out/copy.csv", Some("1\n")),
        ("out/copy2.csv", Some("1\n")),
        ("out/tree/sub/b.csv", Some("2\n")),
        ("drop/tree/sub/b.csv", Some("2\n")),
        ("drop/copy.csv", Some("1\n")),
        ("out/moved.txt", Some("moved")),
        ("out/touched", Some("")),
        ("out/old.txt", Some("old")),
        ("out/ts.csv", Some("1\n")),
        ("out/ts/sub/b.csv", Some("2\n")),
        ("data/new.txt", None),
        ("out/none", None),
    ] {
        table.row(name, equal(read(&home.join(name)).as_deref(), content));
    }
    table.finish();
}

#[test]
fn what_may_be_written_is_known_and_what_is_not_possible_is_named() {
    let lockhouse = prepared();
    let mut table = Table::new("questions");
    for (code, expected) in [
        ("os.access('@/out/old.txt', os.W_OK)", json!(true)),
        ("os.access('@/out/old.txt', os.R_OK | os.W_OK)", json!(true)),
        ("os.access('@/out', os.W_OK)", json!(true)),
        ("os.access('@/drop', os.W_OK)", json!(true)),
        ("os.access('@/drop', os.R_OK)", json!(false)),
        ("os.access('@/data/a.csv', os.W_OK)", json!(false)),
        ("os.access('@/data', os.W_OK)", json!(false)),
        ("os.access('@/data/a.csv', os.R_OK)", json!(true)),
        ("os.access('@/out/none', os.W_OK)", json!(false)),
        ("os.access('/etc/passwd', os.W_OK)", json!(false)),
        ("os.listxattr('@/data/a.csv')", json!([])),
        ("os.readlink('@/data/a.csv')", json!("OSError EINVAL")),
        ("os.readlink('@/data/none')", json!("FileNotFoundError ENOENT")),
        ("os.chdir('@/data')", json!(NOT_PERMITTED)),
        ("os.chdir('@/data/a.csv')", json!("NotADirectoryError ENOTDIR")),
        ("os.makedirs('/tmp/x')\nos.chdir('/tmp/x')\nos.getcwd()", json!("/tmp/x")),
    ] {
        table.row(code, equal(value(&lockhouse, code), expected));
    }
    let code = format!("import os\nos.chdir('{}')", lockhouse.path("home/data").display());
    let answer = lockhouse.answer("python", &code);
    let words = "a folder of the host cannot be the working directory";
    table.row("the words of chdir", ensure(answer["error"].to_string().contains(words), &answer));
    for (path, mode, expected) in [
        ("out/old.txt", "W_OK", json!("yes")),
        ("data/a.csv", "W_OK", json!("EACCES")),
        ("data/a.csv", "R_OK", json!("yes")),
        ("data/none", "R_OK", json!("ENOENT")),
    ] {
        let path = lockhouse.path("home").join(path).display().to_string();
        let code = format!(
            "import {{ accessSync, constants }} from 'node:fs';\nlet r = 'yes'; try {{ accessSync({path:?}, constants.{mode}) }} catch (e) {{ r = e.code }}; r"
        );
        table.row(
            format!("TypeScript: {path} {mode}"),
            equal(&lockhouse.answer("typescript", &code)["value"], &expected),
        );
    }
    table.finish();
}

#[test]
fn a_database_is_changed_in_a_copy() {
    let lockhouse = prepared();
    let make = "c = sqlite3.connect('/tmp/a.db')\nc.execute('create table t (n)')\nc.execute('insert into t values (7)')\nc.commit()\nc.close()\n";
    let select = "sqlite3.connect('@/out/a.db').execute('select n from t').fetchall()";
    let mut table = Table::new("databases");
    let made = value(&lockhouse, &format!("{make}shutil.copy('/tmp/a.db', '@/out/a.db')\n1"));
    table.row("control: make it in /tmp and copy it", equal(made, json!(1)));
    table.row("control: read it", equal(value(&lockhouse, select), json!([[7]])));
    let change = "shutil.copy('@/out/a.db', '/tmp/a.db')\nc = sqlite3.connect('/tmp/a.db')\nc.execute('update t set n = 8')\nc.commit()\nc.close()\nshutil.copy('/tmp/a.db', '@/out/a.db')\n1";
    table.row("control: change a copy", equal(value(&lockhouse, change), json!(1)));
    table.row("control: read the change", equal(value(&lockhouse, select), json!([[8]])));
    let words = "SQLite works on a copy of a database of the host";
    for (name, code) in [
        ("a new database", "sqlite3.connect('@/out/new.db')"),
        ("a new database where only writing is permitted", "sqlite3.connect('@/drop/new.db')"),
        ("a change", "sqlite3.connect('@/out/a.db').execute('delete from t')"),
    ] {
        let got = value(&lockhouse, code);
        table.row(name, ensure(got["error"].to_string().contains(words), &got));
    }
    table.row("nothing was changed", equal(value(&lockhouse, select), json!([[8]])));
    table.row("nothing was made", ensure(!lockhouse.path("home/out/new.db").exists(), "new.db"));
    table.finish();
}
