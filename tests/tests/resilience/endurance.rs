//! Short versions of the endurance suites of `make endurance`. They check the answers of requests and search for leaks,
//! but do not check times.

#[path = "../../src/endurance/suites.rs"]
mod suites;

use lockhouse_tests::{Table, ensure};
use suites::Report;

fn judge(report: &Report) {
    println!("{report}");
    let report = report.to_json();
    let mut table = Table::new(report["suite"].as_str().expect("a title"));
    for promise in report["promises"].as_array().into_iter().flatten().filter(|it| it["kind"] == "count") {
        let name = promise["name"].as_str().expect("a name");
        table.row(name, ensure(promise["kept"] == true, &promise["found"]));
    }
    table.finish();
}

#[tokio::test]
async fn hostile_programs_are_ended_and_leave_nothing_behind() {
    judge(&suites::deadlines(72, 16).await);
}

#[tokio::test]
async fn many_short_programs_leave_nothing_behind() {
    judge(&suites::short(300).await);
}

#[tokio::test]
async fn whichever_process_is_killed_each_request_gets_one_answer() {
    judge(&suites::kills(25, 0x10c4_0053).await);
}
