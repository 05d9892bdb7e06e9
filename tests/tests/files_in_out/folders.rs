//! Tests of writing below folders of this machine: folders that programs make, the home directory, folders below `/tmp`,
//! and files that must not be replaced.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use super::FILES_POLICY;

const CONFIG: &str = "[servers.files]\nread = [\"~/data\"]\nwrite = [\"~/data\", \"~/reports/*/*.txt\"]\n";

fn prepared(lockhouse: Lockhouse) -> Lockhouse {
    let lockhouse = lockhouse.config(CONFIG).policy(FILES_POLICY);
    lockhouse.file("home/data/old.txt", "old");
    std::fs::create_dir_all(lockhouse.path("home/reports")).unwrap();
    lockhouse
}

/// Runs a Python program with `@` for the home directory, and returns its value, or the name and text of its error.
fn value(lockhouse: &Lockhouse, code: &str) -> Value {
    let code = code.replace('@', &lockhouse.path("home").display().to_string());
    let answer = lockhouse.answer("python", &format!("import os\nfrom pathlib import Path\n{code}"));
    if answer["error"].is_null() { answer["value"].clone() } else { answer["error"]["message"].clone() }
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[test]
fn programs_make_folders_where_they_may_write() {
    let lockhouse = prepared(Lockhouse::outside_tmp());
    let home = lockhouse.path("home");
    let mut table = Table::new("programs");
    for (code, made) in [
        ("os.mkdir('@/data/a')\n1", "data/a"),
        ("os.makedirs('@/data/b/c/d', exist_ok=True)\n1", "data/b/c/d"),
        ("os.makedirs('@/data/b/c', exist_ok=True)\n1", "data/b/c"),
        ("Path('@/data/e/f').mkdir(parents=True)\n1", "data/e/f"),
        ("Path('@/data/e/f').mkdir(parents=True, exist_ok=True)\n1", "data/e/f"),
        ("os.mkdir('@/reports/2026')\n1", "reports/2026"),
        ("from files import mkdir\nint(mkdir('~/data/g')['created'])", "data/g"),
    ] {
        table.row(code, equal(value(&lockhouse, code), json!(1)));
        table.row(format!("{made} is there"), ensure(home.join(made).is_dir(), made));
    }
    let typescript = format!(
        "import {{ mkdir, writeFile }} from 'node:fs/promises';\nawait mkdir({0:?} + '/h/i', {{ recursive: true }}); await writeFile({0:?} + '/h/i/x', 'x'); 1",
        home.join("data").display().to_string()
    );
    table.row("TypeScript", equal(&lockhouse.answer("typescript", &typescript)["value"], &json!(1)));
    table.row("its file", equal(read(&home.join("data/h/i/x")).as_deref(), Some("x")));
    for (code, words) in [
        ("os.mkdir('@/data/a')", "File exists"),
        ("os.makedirs('@/data/a')", "File exists"),
        ("os.mkdir('@/data/none/a')", "its folder does not exist"),
        ("os.mkdir('@/data/old.txt')", "it is not a folder"),
        ("os.mkdir('@/other')", "add a path to `write`"),
        ("os.makedirs('@/other/a/b')", "add a path to `write`"),
        ("os.mkdir('@/reports/2026/deeper')", "cannot write this path"),
        ("os.rmdir('@/data/a')", "nothing else is possible with them"),
        ("os.rename('@/data/a', '@/data/z')", "nothing else is possible with them"),
    ] {
        let got = value(&lockhouse, code);
        table.row(code, ensure(got.as_str().is_some_and(|text| text.contains(words)), &got));
    }
    let denied = lockhouse.policy("version = 1\n[servers.files]\nallow = [\"write\"]\n");
    let got = value(&denied, "os.mkdir('@/data/z')");
    table.row("not permitted", ensure(got.as_str().is_some_and(|text| text.contains("files/mkdir")), &got));
    table.row(
        "nothing else was made",
        equal((home.join("other").exists(), home.join("data/z").exists()), (false, false)),
    );
    table.finish();
}

#[test]
fn a_path_may_begin_with_the_home_directory() {
    let lockhouse = prepared(Lockhouse::outside_tmp());
    let home = lockhouse.path("home").display().to_string();
    let mut table = Table::new("programs");
    for (code, expected) in [
        ("open('~/data/old.txt').read()", json!("old")),
        ("open(os.path.expanduser('~/data/old.txt')).read()", json!("old")),
        ("Path('~/data/old.txt').expanduser().read_text()", json!("old")),
        ("os.path.expanduser('~')", json!(home)),
        ("open('~/data/new.txt', 'w').write('n')", json!(1)),
        ("open('~x', 'w').write('n')\nopen('/home/run/~x').read()", json!("n")),
    ] {
        table.row(code, equal(value(&lockhouse, code), expected));
    }
    let typescript = "import { readFile } from 'node:fs/promises';\nawait readFile('~/data/old.txt', 'utf8')";
    table.row("TypeScript", equal(&lockhouse.answer("typescript", typescript)["value"], &json!("old")));
    let without = Lockhouse::outside_tmp();
    let code = "try: r = open('~/data/old.txt').read()\nexcept Exception as e: r = type(e).__name__\nr";
    table.row("without the server", equal(value(&without, code), json!("FileNotFoundError")));
    table.finish();
}

/// The directory of this test is below `/tmp`, which is otherwise in memory.
#[test]
fn a_granted_folder_below_tmp_is_one_of_the_host() {
    let lockhouse = prepared(Lockhouse::new());
    assert!(lockhouse.path("home").starts_with("/tmp"), "the directory of the test");
    let home = lockhouse.path("home");
    let mut table = Table::new("programs");
    for (code, expected) in [
        ("open('@/data/new.txt', 'w').write('new')", json!(3)),
        ("open('@/data/new.txt').read()", json!("new")),
        ("os.makedirs('@/data/sub', exist_ok=True)\nopen('@/data/sub/a.txt', 'w').write('a')", json!(1)),
        (
            "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as f:\n f.write('t')\n f.seek(0)\n r = f.read()\nr",
            json!("t"),
        ),
        ("open('/tmp/memory.txt', 'w').write('m')\nos.listdir('/tmp')", json!(["memory.txt"])),
    ] {
        table.row(code, equal(value(&lockhouse, code), expected));
    }
    table.row("new", equal(read(&home.join("data/new.txt")).as_deref(), Some("new")));
    table.row("in the new folder", equal(read(&home.join("data/sub/a.txt")).as_deref(), Some("a")));
    let path = home.join("data/ts.txt").display().to_string();
    let code = format!(
        "import {{ readFile, writeFile }} from 'node:fs/promises';\nawait writeFile({path:?}, 'ts'); await writeFile('/tmp/m', 'm'); await readFile({path:?}, 'utf8')"
    );
    table.row("TypeScript", equal(&lockhouse.answer("typescript", &code)["value"], &json!("ts")));
    table.row("its file", equal(read(Path::new(&path)).as_deref(), Some("ts")));
    table.row(
        "nothing else",
        ensure(!Path::new("/tmp/memory.txt").exists() && !Path::new("/tmp/m").exists(), "/tmp"),
    );
    let got = value(&lockhouse, "open('@/other.txt', 'w').write('x')");
    table.row("beside it", ensure(got.as_str().is_some_and(|text| text.contains("No such file")), &got));
    table.finish();
}

#[test]
fn files_that_a_write_would_harm_are_not_replaced() {
    let lockhouse = prepared(Lockhouse::outside_tmp());
    let data = lockhouse.path("home/data");
    let (old, linked) = (data.join("old.txt"), lockhouse.file("home/data/linked.txt", "linked"));
    let mut table = Table::new("files");
    let writes = |name: &str| value(&lockhouse, &format!("open('@/data/{name}', 'w').write('new')"));
    let is_refused =
        |got: &Value, words: &str| ensure(got.as_str().is_some_and(|text| text.contains(words)), got);
    let mode = |mode: u32| std::fs::set_permissions(&old, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o444);
    table.row("read-only", is_refused(&writes("old.txt"), "it is read-only"));
    table.row("read-only: kept", equal(read(&old).as_deref(), Some("old")));
    mode(0o640);
    std::os::unix::fs::chown(&old, Some(65_534), Some(65_534)).unwrap();
    table.row("control: writable", equal(writes("old.txt"), json!(3)));
    let status = std::fs::metadata(&old).unwrap();
    table.row(
        "mode and owner are kept",
        equal((status.mode() & 0o777, status.uid(), status.gid()), (0o640, 65_534, 65_534)),
    );
    std::fs::hard_link(&linked, data.join("other name.txt")).unwrap();
    table.row("hard link", is_refused(&writes("linked.txt"), "it has other names (hard links)"));
    table.row("hard link: kept", equal(read(&data.join("other name.txt")).as_deref(), Some("linked")));
    std::fs::remove_file(data.join("other name.txt")).unwrap();
    table.row("control: one name", equal(writes("linked.txt"), json!(3)));
    let left = std::fs::read_dir(&data)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".lockhouse"));
    table.row("no temporary files are left", equal(left.count(), 0));
    table.finish();
}

#[test]
fn a_mode_that_needs_the_old_content_never_guesses_it() {
    let lockhouse = prepared(Lockhouse::outside_tmp());
    let no_read = Lockhouse::outside_tmp()
        .config("[servers.files]\nwrite = [\"~/data\"]\n")
        .policy("version = 1\n[servers.files]\nallow = [\"write\"]\n");
    no_read.file("home/data/old.txt", "old");
    let no_stat = Lockhouse::outside_tmp()
        .config(CONFIG)
        .policy("version = 1\n[servers.files]\nallow = [\"read\", \"write\"]\n");
    no_stat.file("home/data/old.txt", "old");
    let mut table = Table::new("modes");
    for (name, lockhouse, mode, file, expected, content) in [
        ("append", &lockhouse, "a", "old.txt", None, Some("oldnew")),
        ("append to a new file", &lockhouse, "a", "a.txt", None, Some("new")),
        ("r+ of a missing file", &lockhouse, "r+", "none.txt", Some("No such file"), None),
        ("x", &lockhouse, "x", "x.txt", None, Some("new")),
        ("x of an existing file", &lockhouse, "x", "x.txt", Some("File exists"), Some("new")),
        ("append without reading", &no_read, "a", "old.txt", Some("add a path to `read`"), Some("old")),
        ("append without reading, new", &no_read, "a", "a.txt", Some("add a path to `read`"), None),
        ("r+ without reading", &no_read, "r+", "old.txt", Some("add a path to `read`"), Some("old")),
        ("x without reading", &no_read, "x", "old.txt", Some("add a path to `read`"), Some("old")),
        ("control: w without reading", &no_read, "w", "old.txt", None, Some("new")),
        ("x without stat", &no_stat, "x", "old.txt", Some("files/stat"), Some("old")),
        ("control: append without stat", &no_stat, "a", "old.txt", None, Some("oldnew")),
    ] {
        let got = value(lockhouse, &format!("open('@/data/{file}', '{mode}').write('new')"));
        let fits = match expected {
            None => got == 3,
            Some(words) => got.as_str().is_some_and(|text| text.contains(words)),
        };
        table.row(name, ensure(fits, &got));
        table.row(
            format!("{name}: the file"),
            equal(read(&lockhouse.path("home/data").join(file)).as_deref(), content),
        );
    }
    table.finish();
}
