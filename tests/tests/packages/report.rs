//! Runs `report_pandas.py` of the example `examples/report`: a plot and a spreadsheet with pandas and matplotlib.

use std::path::Path;

use lockhouse_tests::{Lockhouse, ensure, equal};
use serde_json::json;

use super::environments;

#[test]
fn the_report_with_pandas_returns_a_plot_and_a_spreadsheet() {
    let Some(environment) = environments::of_pypi() else { return };
    let lockhouse = Lockhouse::with_canned(&["postgres", "gdrive"], "any");
    let servers = std::fs::read_to_string(lockhouse.path("config/lockhouse/config.toml")).unwrap();
    let packages = json!(["pandas", "matplotlib", "openpyxl"]);
    let python =
        format!("[python]\nenvironment = {:?}\npackages = {packages}\n", environment.display().to_string());
    let lockhouse = lockhouse.config(&format!("{servers}[limits]\nmemory_mib = 512\n{python}"));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/report");
    let [program, targets] =
        ["report_pandas.py", "data/targets.csv"].map(|name| example.join(name).display().to_string());
    let output = lockhouse.run(&["run", &program, "--file", &targets, "--out", "results", "--json"]);
    let answer = output.json();
    let expected = json!({"countries": 3, "reached": ["AT", "CZ"], "orders": 10_000});
    equal(&answer["value"], &expected).unwrap_or_else(|error| panic!("{error} {answer}"));
    let read = |name: &str| std::fs::read(lockhouse.path("home/results").join(name)).unwrap();
    let (sheet, plot) = (read("report.xlsx"), read("report.png"));
    ensure(sheet.starts_with(b"PK"), sheet.len()).unwrap();
    ensure(plot.starts_with(b"\x89PNG\r\n"), plot.len()).unwrap();
}
