//! Runs the example `examples/report`: a plot and a spreadsheet from two servers and a local file.

use std::path::{Path, PathBuf};

use lockhouse_tests::{Lockhouse, ensure, equal};
use serde_json::{Value, json};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/report").join(name)
}

/// Runs a program of the example, and returns its answer. Its files are in `home/results`.
pub(crate) fn run_report(lockhouse: &Lockhouse, program: &str) -> Value {
    let [program, targets] = [program, "data/targets.csv"].map(|name| example(name).display().to_string());
    let output = lockhouse.run(&["run", &program, "--file", &targets, "--out", "results", "--json"]);
    let answer = output.json();
    let expected = json!({"countries": 3, "reached": ["AT", "CZ"], "orders": 10_000});
    equal(&answer["value"], &expected).unwrap_or_else(|error| panic!("{error} {answer}"));
    answer
}

#[test]
fn the_report_returns_a_plot_and_a_spreadsheet() {
    let lockhouse = Lockhouse::with_canned(&["postgres", "gdrive"], "any");
    let answer = run_report(&lockhouse, "report.py");
    let read = |name: &str| std::fs::read_to_string(lockhouse.path("home/results").join(name)).unwrap();
    let (table, plot) = (read("report.csv"), read("report.svg"));
    ensure(table.starts_with("country,revenue,target,reached") && table.lines().count() == 4, &table)
        .unwrap();
    ensure(plot.starts_with("<svg") && plot.matches("<rect").count() == 6, &plot).unwrap();
    // The rows of the servers are not in the answer.
    ensure(answer.to_string().len() < 4_000, answer.to_string().len()).unwrap();
}
