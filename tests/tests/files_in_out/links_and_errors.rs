//! Tests of symbolic links in lists of folders of this machine, and of the types of errors.

use std::os::unix::fs::{PermissionsExt, symlink};

use lockhouse_tests::{Lockhouse, Table, equal};
use serde_json::{Value, json};

use super::FILES_POLICY;

fn python(lockhouse: &Lockhouse, expression: &str) -> Value {
    let expression = expression.replace('@', &lockhouse.path("home").display().to_string());
    let program = format!(
        "import errno, glob, os, shutil\nfrom pathlib import Path\ntry: r = {expression}\n\
         except OSError as e: r = f'{{type(e).__name__}} {{errno.errorcode[e.errno]}}'\nr"
    );
    let answer = lockhouse.answer("python", &program);
    if answer["error"].is_null() { answer["value"].clone() } else { answer }
}

fn typescript(lockhouse: &Lockhouse, expression: &str) -> Value {
    let expression = expression.replace('@', &lockhouse.path("home").display().to_string());
    let program = format!(
        "import {{ copyFileSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync }} from 'node:fs';\n\
         let r; try {{ r = {expression} }} catch (e) {{ r = e.code ?? String(e) }}; r"
    );
    let answer = lockhouse.answer("typescript", &program);
    if answer["error"].is_null() { answer["value"].clone() } else { answer }
}

#[test]
fn links_that_can_be_opened_are_listed() {
    let lockhouse = Lockhouse::outside_tmp()
        .config("[servers.files]\nread = [\"~/data/**/*.csv\", \"~/more\"]\n")
        .policy(FILES_POLICY);
    let (data, home) = (lockhouse.path("home/data"), lockhouse.path("home"));
    for name in ["data/a.csv", "data/sub/b.csv", "data/c.txt", "more/d.csv", "more/d.txt", "other/e.csv"] {
        lockhouse.file(&format!("home/{name}"), name);
    }
    nix::unistd::mkfifo(&data.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (target, name) in [
        ("a.csv", "file.csv"),
        ("sub", "folder"),
        ("../more", "more"),
        ("../more/d.txt", "text.csv"),
        ("file.csv", "second.csv"),
        // Omitted: by the name, by the target, a folder above the link, and what is no file.
        ("a.csv", "name.txt"),
        ("c.txt", "target.csv"),
        ("../other/e.csv", "outside.csv"),
        ("../other", "outside"),
        ("../../state/lockhouse", "own"),
        ("../../config/lockhouse/config.toml", "own.csv"),
        (".", "loop"),
        ("..", "above"),
        ("pipe", "pipe.csv"),
        ("gone", "gone.csv"),
        ("self.csv", "self.csv"),
        ("/proc/self/environ", "kernel.csv"),
        ("/etc/passwd", "passwd.csv"),
    ] {
        symlink(target, data.join(name)).unwrap();
    }
    let names = json!(["a.csv", "file.csv", "folder", "more", "second.csv", "sub", "text.csv"]);
    let mut table = Table::new("lists");
    let home = home.display().to_string();
    let at = |names: &[&str]| json!(names.iter().map(|name| format!("{home}/{name}")).collect::<Vec<_>>());
    for (expression, expected) in [
        ("sorted(os.listdir('@/data'))", names.clone()),
        ("sorted(p.name for p in Path('@/data').iterdir())", names.clone()),
        (
            "sorted(glob.glob('@/data/*.csv'))",
            at(&["data/a.csv", "data/file.csv", "data/second.csv", "data/text.csv"]),
        ),
        (
            "[[p, sorted(d), sorted(f)] for p, d, f in os.walk('@/data')]",
            json!([
                [
                    format!("{home}/data"),
                    ["folder", "more", "sub"],
                    ["a.csv", "file.csv", "second.csv", "text.csv"]
                ],
                [format!("{home}/data/sub"), [], ["b.csv"]],
            ]),
        ),
        (
            "sorted(e.name for e in os.scandir('@/data') if e.is_symlink())",
            json!(["file.csv", "folder", "more", "second.csv", "text.csv"]),
        ),
        ("sorted(e.name for e in os.scandir('@/data') if e.is_dir(follow_symlinks=False))", json!(["sub"])),
        (
            "[os.readlink(f'@/data/{n}') for n in os.listdir('@/data') if n == 'second.csv'][0]",
            json!(format!("{home}/data/a.csv")),
        ),
        (
            "[open(f'@/data/{n}').read() for n in ('file.csv', 'text.csv')]",
            json!(["data/a.csv", "more/d.txt"]),
        ),
        ("sorted(os.listdir('@/data/more'))", json!(["d.csv", "d.txt"])),
        (
            "os.listdir('@/data') and os.path.realpath('@/data/folder/b.csv')",
            json!(format!("{home}/data/sub/b.csv")),
        ),
        (
            "shutil.copytree('@/data', '/tmp/t', ignore=shutil.ignore_patterns('*.txt')) and sorted(os.listdir('/tmp/t') + os.listdir('/tmp/t/folder'))",
            json!(["a.csv", "b.csv", "file.csv", "folder", "more", "second.csv", "sub", "text.csv"]),
        ),
        (
            "sorted(p.name for p in Path('@/data').rglob('*.csv') if p.parent.name in ('data', 'sub'))",
            json!(["a.csv", "b.csv", "file.csv", "second.csv", "text.csv"]),
        ),
        // Controls: what is not listed cannot be opened either.
        ("open('@/data/outside.csv').read()", json!("PermissionError EACCES")),
        ("open('@/data/target.csv').read()", json!("PermissionError EACCES")),
        ("open('@/data/passwd.csv').read()", json!("PermissionError EACCES")),
    ] {
        table.row(expression, equal(python(&lockhouse, expression), expected));
    }
    for (expression, expected) in [
        ("readdirSync('@/data').sort()", names),
        (
            "readdirSync('@/data', { recursive: true }).sort()",
            json!(["a.csv", "file.csv", "folder", "more", "second.csv", "sub", "sub/b.csv", "text.csv"]),
        ),
        (
            "readdirSync('@/data', { withFileTypes: true }).filter((e) => e.isSymbolicLink()).map((e) => e.name).sort()",
            json!(["file.csv", "folder", "more", "second.csv", "text.csv"]),
        ),
        (
            "readdirSync('@/data', { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => e.name)",
            json!(["sub"]),
        ),
        ("statSync('@/data/folder').isDirectory()", json!(true)),
    ] {
        table.row(expression, equal(typescript(&lockhouse, expression), expected));
    }
    table.finish();
}

#[test]
fn errors_have_the_types_of_the_language() {
    let lockhouse = Lockhouse::outside_tmp()
        .config("[servers.files]\nread = [\"~/data\"]\nwrite = [\"~/data\"]\n")
        .policy(FILES_POLICY);
    let read_only = lockhouse.file("home/data/read-only.txt", "old");
    std::fs::set_permissions(&read_only, std::fs::Permissions::from_mode(0o444)).unwrap();
    let linked = lockhouse.file("home/data/linked.txt", "old");
    std::fs::hard_link(&linked, lockhouse.path("home/data/other.txt")).unwrap();
    lockhouse.file("home/data/a.txt", "a");
    std::fs::create_dir(lockhouse.path("home/data/folder")).unwrap();
    nix::unistd::mkfifo(&lockhouse.path("home/data/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut table = Table::new("errors");
    for (expression, expected) in [
        ("open('@/data/folder').read()", "IsADirectoryError EISDIR"),
        ("open('@/data/folder', 'w').close()", "IsADirectoryError EISDIR"),
        ("os.listdir('@/data/a.txt')", "NotADirectoryError ENOTDIR"),
        ("os.mkdir('@/data/a.txt')", "FileExistsError EEXIST"),
        ("os.makedirs('@/data/a.txt', exist_ok=True)", "FileExistsError EEXIST"),
        ("Path('@/data/a.txt').mkdir(exist_ok=True)", "FileExistsError EEXIST"),
        ("os.mkdir('@/data/folder')", "FileExistsError EEXIST"),
        ("open('@/data/read-only.txt', 'w').close()", "PermissionError EACCES"),
        ("open('@/data/linked.txt', 'w').close()", "PermissionError EACCES"),
        ("open('@/data/pipe').read()", "OSError EINVAL"),
        ("open('@/data/pipe', 'w').close()", "OSError EINVAL"),
        ("open('@/data/none').read()", "FileNotFoundError ENOENT"),
        ("open('@/data/none/a', 'w').close()", "FileNotFoundError ENOENT"),
        ("open('@/data/a.txt').read()", "a"),
        ("os.makedirs('@/data/folder', exist_ok=True) or 'made'", "made"),
    ] {
        table.row(expression, equal(python(&lockhouse, expression), json!(expected)));
    }
    for (expression, expected) in [
        ("readFileSync('@/data/folder', 'utf8')", "EISDIR"),
        ("writeFileSync('@/data/folder', 'new')", "EISDIR"),
        ("readdirSync('@/data/a.txt')", "ENOTDIR"),
        ("mkdirSync('@/data/a.txt')", "EEXIST"),
        ("mkdirSync('@/data/a.txt', { recursive: true })", "EEXIST"),
        ("mkdirSync('@/data/folder')", "EEXIST"),
        ("writeFileSync('@/data/read-only.txt', 'new')", "EACCES"),
        ("copyFileSync('@/data/a.txt', '@/data/linked.txt')", "EACCES"),
        ("readFileSync('@/data/pipe', 'utf8')", "EINVAL"),
        ("readFileSync('@/data/none', 'utf8')", "ENOENT"),
        ("readFileSync('@/data/a.txt', 'utf8')", "a"),
    ] {
        table.row(expression, equal(typescript(&lockhouse, expression), json!(expected)));
    }
    // The words, without the name at the end, which is in the type; a call of the tool keeps it.
    let path = lockhouse.path("home/data/folder").display().to_string();
    for (code, expected) in [
        (
            format!("try: open({path:?})\nexcept OSError as e: r = e.strerror\nr"),
            format!("{path}: it is a folder"),
        ),
        (
            format!(
                "from files import read\ntry: read({path:?})\nexcept ToolError as e: r = [e.code, str(e)]\nr[0]"
            ),
            "tool_failed".to_owned(),
        ),
    ] {
        table.row(&code, equal(&lockhouse.answer("python", &code)["value"], &json!(expected)));
    }
    table.finish();
}
