//! No path reaches a file of the host. As the control, the same programs outside the sandbox read the file.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};
use serde_json::json;

/// Paths that lead to the secret file outside the sandbox; `{FILE}` is its path, and `{UP}` leads from any directory to
/// the root.
const PATHS: [&str; 9] = [
    "{FILE}",
    "{UP}{FILE}",
    "/tmp/..{FILE}",
    "/etc/..{FILE}",
    "//{FILE}",
    "/./{FILE}",
    "/proc/self/root{FILE}",
    "/proc/self/cwd/{UP}{FILE}",
    "/dev/../{FILE}",
];
/// Further paths of the host that no program may open.
const OTHERS: [&str; 12] = [
    "/proc/self/mem",
    "/proc/self/environ",
    "/proc/1/environ",
    "/proc/self/fd/3",
    "/dev/sda",
    "/dev/mem",
    "/dev/fd/0",
    "/dev/stdin",
    "/sys/kernel/notes",
    "/etc/passwd",
    "/run/../etc/shadow",
    "/home/run/../../etc/hostname",
];
/// Counts the paths whose file a program could read or whose directory it could list.
const PYTHON: &str = r#"
import glob, io, os, pathlib, shutil
found = []
attempts = [
    lambda path: open(path, "rb").read(),
    lambda path: pathlib.Path(path).read_bytes(),
    lambda path: io.FileIO(path).read(),
    lambda path: os.read(os.open(path, os.O_RDONLY), 100),
    lambda path: os.stat(path),
    lambda path: os.listdir(os.path.dirname(path)).index(os.path.basename(path)) + 1,
    lambda path: glob.glob(path),
    lambda path: os.path.exists(path),
    lambda path: shutil.copy(path, "copy"),
    lambda path: open(path, "ab").close() or True,
    lambda path: os.access(path, os.R_OK),
]
for path in PATHS:
    for number, attempt in enumerate(attempts):
        try:
            if attempt(path): found.append([path, number])
        except (OSError, ValueError): pass
found
"#;
const TYPESCRIPT: &str = r#"
import fs from "node:fs";
const found = [];
const attempts = [
  (path) => fs.readFileSync(path),
  (path) => fs.readFileSync(new Uint8Array(path.split("").map((letter) => letter.charCodeAt(0)))),
  (path) => fs.statSync(path),
  (path) => fs.existsSync(path),
  (path) => fs.copyFileSync(path, "copy") ?? true,
  (path) => fs.appendFileSync(path, "") ?? true,
  (path) => fs.readdirSync(path.slice(0, path.lastIndexOf("/"))).includes(path.slice(path.lastIndexOf("/") + 1)),
];
for (const path of PATHS) {
  for (const [number, attempt] of attempts.entries()) {
    try { if (attempt(path)) found.push([path, number]); } catch {}
  }
}
found
"#;

#[tokio::test]
async fn no_path_reaches_the_host() {
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let file = directory.path().join("secret");
    std::fs::write(&file, "secret").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let up = "../".repeat(20);
    let paths: Vec<String> =
        PATHS.iter().map(|path| path.replace("{FILE}", file).replace("{UP}", &up)).collect();
    let mut table = Table::new("paths to the host");
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    for (language, code) in [("python", PYTHON), ("typescript", TYPESCRIPT)] {
        let control = outside(language, code, &paths, directory.path());
        for path in &paths {
            table.row(format!("{language}, outside: {path}"), ensure(control.contains(path), &control));
        }
        let others = OTHERS.iter().map(|path| (*path).to_owned());
        let tricks =
            ["\0", "\u{2024}", "\u{ff0f}etc", "x\u{202e}", "%2e%2e"].map(|trick| format!("{file}{trick}"));
        let all: Vec<String> = paths.iter().cloned().chain(others).chain(tricks).collect();
        let answer = session.run_code(language, &with_paths(language, code, &all)).await;
        table.row(format!("{language}, in a worker"), ensure(answer["value"] == json!([]), &answer));
    }
    table.finish();
}

#[tokio::test]
async fn writing_leaves_no_trace_on_the_host() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let name = format!("lockhouse-trace-{}", std::process::id());
    let mut table = Table::new("traces");
    let python = format!("import os\nos.makedirs('/tmp/{name}')\nopen('/tmp/{name}/x', 'w').write('1')");
    let typescript = format!(
        "import fs from 'node:fs';\nfs.mkdirSync('/tmp/{name}');\nfs.writeFileSync('/tmp/{name}/x', '1');\n1"
    );
    for (language, code) in [("python", python), ("typescript", typescript)] {
        let answer = session.run_code(language, &code).await;
        table.row(format!("{language}: it is written"), ensure(answer["value"] == 1, &answer));
        let path = std::path::Path::new("/tmp").join(&name);
        table.row(format!("{language}: nothing is on the host"), ensure(!path.exists(), path));
    }
    table.finish();
}

fn with_paths(language: &str, code: &str, paths: &[String]) -> String {
    // JSON texts are valid literals in both languages.
    match language {
        "python" => format!("PATHS = {}\n{code}", json!(paths)),
        _ => format!("const PATHS = {};\n{code}", json!(paths)),
    }
}

/// Runs the program outside the sandbox. Returns what it printed: the paths that it reached.
fn outside(language: &str, code: &str, paths: &[String], directory: &std::path::Path) -> String {
    let code = with_paths(language, code, paths);
    let (body, last) = code.trim_end().rsplit_once('\n').expect("lines");
    let mut command = match language {
        "python" => Command::new("/usr/bin/python3"),
        _ => Command::new("node"),
    };
    match language {
        "python" => command.args(["-I", "-c", &format!("{body}\nprint({last})")]),
        _ => command.args([
            "--input-type",
            "module",
            "--eval",
            &format!("{body}\nconsole.log(JSON.stringify({last}))"),
        ]),
    };
    CommandOutput::run(command.current_dir(directory), b"").stdout
}
