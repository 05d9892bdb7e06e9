//! Runs each program of `programs/` in a worker and, as the control, on disk outside the sandbox: with equal results.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};
use serde_json::Value;

use crate::files::programs;

const PYTHON: &str = include_str!("programs/python.txt");
const TYPESCRIPT: &str = include_str!("programs/typescript.txt");
/// Runs a Python program and prints the value of its last expression as JSON.
const PYTHON_RUNNER: &str = "import ast, json, sys\n\
    tree = ast.parse(sys.argv[1])\n\
    last = ast.Expression(tree.body.pop().value)\n\
    names = {'__name__': '__main__'}\n\
    exec(compile(tree, '<code>', 'exec'), names)\n\
    print(json.dumps(eval(compile(last, '<code>', 'eval'), names)))";

#[tokio::test]
async fn python_programs_find_the_file_system_that_they_know() {
    let lockhouse = Lockhouse::new().config("[python]\ninterpreter = \"/usr/bin/python3\"\n");
    let session = lockhouse.serve().await;
    let version = session.run_code("python", "import sys\nsys.version_info >= (3, 11)").await;
    let mut table = Table::new("files in Python");
    for (name, code) in programs(PYTHON) {
        if name.starts_with("sqlite3") && version["value"] == false {
            continue; // Python 3.10 cannot load a database from memory.
        }
        let outside = outside(Command::new("/usr/bin/python3").args(["-I", "-c", PYTHON_RUNNER, code]));
        let answer = session.run_code("python", code).await;
        table.row(name, same(&answer, &outside));
    }
    table.finish();
}

#[tokio::test]
async fn typescript_programs_find_the_functions_of_node() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("files in TypeScript");
    for (name, code) in programs(TYPESCRIPT) {
        let (body, last) = code.trim_end().rsplit_once('\n').expect("a program has lines");
        let kind = if code.contains("require(") { "commonjs" } else { "module" };
        let printing = format!("{body}\nconsole.log(JSON.stringify({last}))");
        let outside = outside(Command::new("node").args(["--input-type", kind, "--eval", &printing]));
        let answer = session.run_code("typescript", code).await;
        table.row(name, same(&answer, &outside));
    }
    table.finish();
}

/// Runs a program outside the sandbox, in an empty directory.
fn outside(command: &mut Command) -> CommandOutput {
    let directory = tempfile::tempdir().expect("a directory");
    CommandOutput::run(command.current_dir(directory.path()), b"")
}

fn same(answer: &Value, outside: &CommandOutput) -> Result<(), String> {
    let expected: Option<Value> = serde_json::from_str(outside.stdout.trim()).ok();
    let is_same = expected.is_some() && answer.get("value") == expected.as_ref();
    ensure(is_same, (&answer["value"], &answer["error"], &outside.stdout, &outside.stderr))
}
