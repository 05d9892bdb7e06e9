//! Tests of `lockhouse --version --verbose`.

use std::process::Command;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

/// Returns the output of a program of this machine, without line break.
fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Returns the first word of the output of sha256sum.
fn sha256(path: &str) -> String {
    output("sha256sum", &["--", path]).split(' ').next().unwrap().to_owned()
}

#[test]
fn the_verbose_version_names_the_build_and_the_files_that_run() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("lockhouse --version --verbose");
    let report = lockhouse.run(&["--version", "--verbose", "--json"]).json();
    let expected = output("rustc", &["--version"]);
    table.row("compiler", equal(&report["rustc"], &json!(expected)));
    table.row("version", equal(&report["version"], &json!(env!("CARGO_PKG_VERSION"))));
    let directory = lockhouse.program().parent().unwrap().canonicalize().unwrap();
    let programs = report["programs"].as_array().unwrap();
    for (program, name) in programs.iter().zip(["lockhouse", "lockhouse-worker", "liblockhouse_python.so"]) {
        let path = directory.join(name).display().to_string();
        table.row(name, equal(&program["path"], &json!(path)));
        table.row(format!("{name}: SHA-256"), equal(&program["sha256"], &json!(sha256(&path))));
    }
    table.row("all programs", equal(programs.len(), 3));
    let has_version = |text: &Value| text.as_str().is_some_and(|text| text.starts_with("2."));
    table.row("glibc", ensure(has_version(&report["glibc"]), &report["glibc"]));
    // The programs under test may be those of a package.
    let is_known = |key: &str| report[key] != json!("unknown");
    table.row("commit and date are known together", equal(is_known("commit"), is_known("date")));
    if report["profile"] == json!("debug") {
        table.row("a new commit does not change a development build", ensure(!is_known("commit"), &report));
    }
    table.finish();
}

#[test]
fn the_short_version_stays_one_line_and_a_missing_program_is_reported() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("forms of the version");
    let line = format!("lockhouse {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        table.row(flag, equal(lockhouse.run(&[flag]).stdout, line.clone()));
    }
    let text = lockhouse.run(&["-V", "--verbose"]);
    table.row("the text begins with it", ensure(text.stdout.starts_with(&line), &text));
    table.row(
        "and names the file of each program",
        ensure(text.stdout.contains("liblockhouse_python.so"), &text),
    );
    let alone = lockhouse.run(&["--verbose"]);
    table.row("--verbose alone is an error", equal(alone.status, Some(2)));

    let copy = lockhouse.path("lockhouse");
    std::fs::copy(lockhouse.program(), &copy).unwrap();
    let mut command = Command::new(&copy);
    let done = command.args(["--version", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let worker = &report["programs"][1];
    // An installed Lockhouse is found in /usr/lib/lockhouse.
    let is_elsewhere = worker["path"].as_str().is_some_and(|path| path.starts_with("/usr/lib/lockhouse/"));
    table.row("a program without its engines", ensure(is_elsewhere || worker["error"].is_string(), &report));
    table.row("is no failure", ensure(done.status.success(), &done));
    table.finish();
}
