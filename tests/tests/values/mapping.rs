//! Tests that values are converted between JSON, Python and TypeScript as the tables in docs/values.md say: each table
//! row is tried.

use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};
use serde_json::{Value, json};

/// Returns the cells of the table below a heading of docs/values.md, row by row. Panics if a row does not have
/// `columns` cells.
pub(super) fn rows(heading: &str, columns: usize) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/values.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let section = text.split(&format!("{heading}\n")).nth(1).expect("the section");
    let lines =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = lines.skip(2).map(cells).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == columns), "{heading}: {rows:#?}");
    rows
}

/// Returns the code between backticks in a table cell. Returns `None` if the cell has anything else.
pub(super) fn code(cell: &str) -> Option<&str> {
    cell.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'))
}

/// Returns the expected values for Python and for TypeScript in a table cell. The cell has one value for both
/// languages, or one for each, separated by "or". Both are `None` if the cell has a description instead.
pub(super) fn expected(cell: &str) -> (Option<Value>, Option<Value>) {
    let one = |cell: &str| {
        code(cell.trim()).map(|json| serde_json::from_str(json).unwrap_or_else(|_| panic!("{json}")))
    };
    match cell.split_once("` or `") {
        Some((python, typescript)) => (one(&format!("{python}`")), one(&format!("`{typescript}"))),
        None => (one(cell), one(cell)),
    }
}

#[tokio::test]
async fn results_are_converted_as_documented() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("results");
    for row in rows("## Results", 4) {
        let (python, typescript) = expected(&row[3]);
        for (language, cell, expected) in [("python", &row[1], python), ("typescript", &row[2], typescript)] {
            let Some(program) = code(cell) else { continue };
            let answer = session.run_code(language, program).await;
            let right = answer["status"] == "ok" && answer.get("value") == expected.as_ref();
            table.row(
                format!("{language}: {}", row[0]),
                ensure(right, (expected, &answer["value"], &answer["error"])),
            );
        }
    }
    table.finish();
}

#[tokio::test]
async fn values_of_libraries_are_converted_as_documented() {
    let rows = rows("### Libraries of Python", 4);
    let mut table = Table::new("values of libraries");
    for library in ["numpy", "pandas", "attrs"] {
        let Some(python) = python_with(library) else {
            println!("left out, since no Python here has it: {library}");
            continue;
        };
        let config = format!("[python]\ninterpreter = \"{}\"\npreload = [\"{library}\"]\n", python.display());
        let lockhouse = Lockhouse::new().config(&config);
        let session = lockhouse.serve().await;
        for row in rows.iter().filter(|row| row[0] == library) {
            let program = code(&row[2]).expect("a program").replace("; ", "\n");
            let answer = session.run_code("python", &program).await;
            let (expected, _) = expected(&row[3]);
            let right = answer["status"] == "ok" && answer.get("value") == expected.as_ref();
            table.row(
                format!("{library}: {}", row[1]),
                ensure(right, (expected, &answer["value"], &answer["error"])),
            );
        }
    }
    table.row("the table is about three libraries", ensure(rows.len() >= 10, rows.len()));
    table.finish();
}

/// Returns the path of the first Python interpreter that can import a library: the one that tests/libraries/prepare.sh
/// installs, `/usr/bin/python3`, or one in `PATH`. Returns `None` if none of them has the library.
fn python_with(library: &str) -> Option<PathBuf> {
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../build/libraries/venv/bin/python");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<PathBuf> =
        std::env::split_paths(&path).map(|directory| directory.join("python3")).collect();
    let candidates = [prepared].into_iter().chain(["/usr/bin/python3".into()]).chain(in_path);
    let has = |python: &PathBuf| {
        python.is_file()
            && CommandOutput::run(Command::new(python).args(["-I", "-c", &format!("import {library}")]), b"")
                .status
                == Some(0)
    };
    candidates.into_iter().find(has)
}

#[tokio::test]
async fn infinite_iterators_are_read_up_to_a_limit() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("iterators");
    for (language, code) in [
        ("python", "import itertools\nitertools.count()"),
        ("python", "import itertools\n[itertools.count(), float('nan')]"),
        ("typescript", "function* f() { for (let i = 0; ; i++) yield i }; f()"),
        ("typescript", "function* f() { for (let i = 0; ; i++) yield i }; [f(), {get a() { throw 1 }}]"),
    ] {
        let answer = session.run_code(language, code).await;
        let handle = answer["truncated"]["value"]["handle"].as_str().unwrap_or_default();
        let code = format!(
            "from mcp_tools import load_result\nr = load_result('{handle}')\nr = r if len(r) > 2 else r[0]\n[len(r), r[9999], 'was not read' in r[-1]]"
        );
        let whole = session.run_code("python", &code).await;
        table.row(
            format!("{language}: {code}"),
            ensure(whole["value"] == json!([10_001, 9_999, true]), (&answer["error"], &whole)),
        );
    }
    table.finish();
}
