//! Runs `report_pandas.py` of the example `examples/report`: a plot and a spreadsheet with pandas and matplotlib.

use lockhouse_tests::{Lockhouse, ensure};
use serde_json::json;

use super::environments;
use crate::files_in_out::analyst::run_report;

#[test]
fn the_report_with_pandas_returns_a_plot_and_a_spreadsheet() {
    let Some(environment) = environments::of_pypi() else { return };
    let lockhouse = Lockhouse::with_canned(&["postgres", "gdrive"], "any");
    let servers = std::fs::read_to_string(lockhouse.path("config/lockhouse/config.toml")).unwrap();
    let packages = json!(["pandas", "matplotlib", "openpyxl"]);
    let python =
        format!("[python]\nenvironment = {:?}\npackages = {packages}\n", environment.display().to_string());
    let lockhouse = lockhouse.config(&format!("{servers}[limits]\nmemory_mib = 512\n{python}"));
    run_report(&lockhouse, "report_pandas.py");
    let read = |name: &str| std::fs::read(lockhouse.path("home/results").join(name)).unwrap();
    let (sheet, plot) = (read("report.xlsx"), read("report.png"));
    ensure(sheet.starts_with(b"PK"), sheet.len()).unwrap();
    ensure(plot.starts_with(b"\x89PNG\r\n"), plot.len()).unwrap();
}
