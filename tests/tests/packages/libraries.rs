//! Runs the programs of `tests/libraries`, which use packages of PyPI, in sandboxed workers. The header of each program has
//! the packages that it needs, and the value or the error that it must have.

use std::collections::BTreeSet;
use std::path::Path;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal};
use serde_json::Value;

use super::environments;

/// The packages that are refused.
const REFUSED: [&str; 2] = ["numba", "requests"];

/// A program with the lines of its header.
struct Program {
    name: String,
    code: String,
    packages: Vec<String>,
    /// The expected value, or the words of the expected error.
    expected: Result<Value, String>,
}

#[tokio::test]
async fn packages_work_as_documented() {
    run_all("packages", 25).await;
}

#[tokio::test]
async fn tutorial_tasks_have_the_right_result() {
    run_all("tutorials", 10).await;
}

/// The data of these programs has 20 MB, so that they take the ways that libraries choose by size: memory maps, threads,
/// streams and datasets of several files.
#[tokio::test]
async fn packages_work_with_large_data() {
    run_all("large", 29).await;
}

/// The table of docs/python-packages.md has a row for each package, and no others.
#[test]
fn the_documented_packages_are_those_with_a_program() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/python-packages.md");
    let document = std::fs::read_to_string(document).unwrap();
    let table = document.split("## Tested packages").nth(1).expect("the chapter");
    let table = table.split("\n## ").next().unwrap_or_default();
    let row = |line: &str| Some(line.strip_prefix("| `")?.split('`').next()?.to_owned());
    let documented: BTreeSet<String> = table.lines().filter_map(row).collect();
    let tested: BTreeSet<String> =
        programs("packages").into_iter().flat_map(|program| program.packages).collect();
    assert_eq!(documented, tested);
    assert!(tested.len() >= 25, "{}", tested.len());
    let large: BTreeSet<String> = programs("large")
        .into_iter()
        .flat_map(|program| program.packages)
        .chain(REFUSED.map(str::to_owned))
        .collect();
    assert_eq!(
        large, tested,
        "the packages with a program in tests/libraries/large, and those that are refused"
    );
}

async fn run_all(folder: &str, at_least: usize) {
    let Some(environment) = environments::of_pypi() else { return };
    let used = programs("packages").into_iter().flat_map(|program| program.packages);
    let usable = used.filter(|name| !REFUSED.contains(&name.as_str()));
    let packages: Vec<String> = usable.collect::<BTreeSet<_>>().into_iter().collect();
    let programs = programs(folder);
    let config = format!(
        "[limits]\nmemory_mib = 1024\ntimeout_seconds = 120\ncpu_seconds = 120\n[runs]\nwait_seconds = 150\n[python]\nenvironment = {:?}\npackages = {packages:?}\n",
        environment.display().to_string()
    );
    let lockhouse = Lockhouse::new().config(&config);
    let session = lockhouse.serve().await;
    let mut table = Table::new(&format!("{} programs of tests/libraries/{folder}", programs.len()));
    table.row(format!("{at_least} programs or more"), ensure(programs.len() >= at_least, programs.len()));
    wait_until_loaded(&session).await;
    for program in programs {
        table.row(program.name.clone(), run(&session, &program).await);
    }
    table.finish();
}

/// Waits until the packages are loaded. A program that waits for them for too long is refused, and sent again.
pub(crate) async fn wait_until_loaded(session: &Session) {
    for _ in 0..8 {
        let answer = session.run_code("python", "# import numpy\n1 + 1").await;
        if answer["error"]["type"] != "Busy" {
            return assert_eq!(answer["value"], 2, "{answer}");
        }
    }
    panic!("the packages are not loaded");
}

async fn run(session: &Session, program: &Program) -> Result<(), String> {
    let answer = session.run_code("python", &program.code).await;
    match &program.expected {
        Ok(value) => {
            ensure(answer["status"] == "ok", &answer["error"])?;
            equal(&answer["value"], value)
        }
        Err(words) => ensure(
            answer["error"]["message"].as_str().is_some_and(|message| message.contains(words)),
            &answer,
        ),
    }
}

fn programs(folder: &str) -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("libraries").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| Program::read(path)).collect()
}

impl Program {
    fn read(path: &Path) -> Self {
        let code = std::fs::read_to_string(path).unwrap();
        let line = |key: &str| {
            let start = format!("# {key}: ");
            code.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
        };
        let value = line("value").map(|text| serde_json::from_str(&text).expect("JSON"));
        let packages = line("package").unwrap_or_default();
        let packages = packages.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let expected = value.ok_or_else(|| line("error").expect("a line `value` or `error`"));
        Self { name: path.file_stem().unwrap().to_string_lossy().into_owned(), packages, expected, code }
    }
}
