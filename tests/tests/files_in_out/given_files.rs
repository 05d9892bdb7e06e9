//! Tests of `lockhouse run --file`: it gives one file to one run.

use std::os::unix::fs::symlink;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

#[test]
fn a_given_file_is_in_the_working_directory_of_one_run() {
    let lockhouse = Lockhouse::outside_tmp();
    let path = lockhouse.file("home/in/sales.csv", "1,2\n");
    lockhouse.file("home/in/other.csv", "3\n");
    symlink("sales.csv", lockhouse.path("home/in/link.csv")).unwrap();
    let run = |arguments: &[&str], code: &str| {
        lockhouse.run(&[&["run", "--language", "python", "--json", "-c", code], arguments].concat())
    };
    let mut table = Table::new("programs");
    for (arguments, code, expected) in [
        (&["--file", "in/sales.csv"][..], "open('sales.csv').read()", json!("1,2\n")),
        (&["--file", "in/link.csv"], "open('link.csv').read()", json!("1,2\n")),
        (
            &["--file", "in/sales.csv"],
            "import os\n[os.path.exists('sales.csv'), os.path.getsize('sales.csv'), os.path.exists('other.csv')]",
            json!([true, 4, false]),
        ),
        (
            &["--file", "in/sales.csv", "--file", "in/other.csv"],
            "open('sales.csv').read() + open('other.csv').read()",
            json!("1,2\n3\n"),
        ),
        (
            &[],
            "try: open('sales.csv')\nexcept Exception as e: r = type(e).__name__\nr",
            json!("FileNotFoundError"),
        ),
        (
            &["--file", "in/sales.csv"],
            "try: open('../in/other.csv')\nexcept Exception as e: r = 'refused'\nr",
            json!("refused"),
        ),
    ] {
        let answer = run(arguments, code).json();
        table.row(
            format!("{arguments:?} {code}"),
            equal(&answer["value"], &expected).map_err(|e| format!("{e} {answer}")),
        );
    }
    let typescript = lockhouse
        .run(&[
            "run",
            "--language",
            "typescript",
            "--json",
            "--file",
            "in/sales.csv",
            "-c",
            "import { readFile } from 'node:fs/promises'; await readFile('sales.csv', 'utf8')",
        ])
        .json();
    table.row(
        "TypeScript",
        equal(&typescript["value"], &json!("1,2\n")).map_err(|e| format!("{e} {typescript}")),
    );
    let calls: Vec<_> = lockhouse.audit().into_iter().filter(|record| record["event"] == "call").collect();
    table.row(
        "the log",
        ensure(calls.iter().any(|call| call.to_string().contains("given on the command line")), &calls),
    );
    for (arguments, words) in [
        (&["--file", "in/none.csv"][..], "cannot read in/none.csv"),
        (&["--file", "in"], "is not a regular file"),
        (
            &["--file", "in/sales.csv", "--file", path.to_str().unwrap()],
            "two given files have the name sales.csv",
        ),
    ] {
        let output = run(arguments, "1");
        table.row(
            format!("{arguments:?}"),
            ensure(output.status == Some(2) && output.stderr.contains(words), &output.stderr),
        );
    }
    table.finish();
}

#[test]
fn a_policy_that_denies_reading_holds() {
    let lockhouse =
        Lockhouse::outside_tmp().policy("version = 1\n[servers.files]\nallow = []\ndeny = [\"read\"]\n");
    lockhouse.file("home/sales.csv", "1");
    let code = "try: r = open('sales.csv').read()\nexcept Exception as e: r = type(e).__name__\nr";
    let answer =
        lockhouse.run(&["run", "--language", "python", "--json", "--file", "sales.csv", "-c", code]).json();
    assert_eq!(answer["value"], "PermissionError", "{answer}");
}
