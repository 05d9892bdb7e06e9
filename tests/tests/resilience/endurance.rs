//! The suites of `make endurance` in small: what they count and what they find left, and no times.

#[path = "../../src/endurance/suites.rs"]
mod suites;

use lockhouse_tests::Table;
use suites::{Kind, Report};

fn judge(report: &Report) {
    let mut table = Table::new(&report.to_string());
    for (name, outcome) in report.promises(Kind::Count) {
        table.row(name, outcome.clone());
    }
    table.finish();
}

#[tokio::test]
async fn every_hostile_program_is_ended_and_leaves_nothing_behind() {
    judge(&suites::deadlines(72, 16).await);
}

#[tokio::test]
async fn many_short_programs_leave_nothing_behind() {
    judge(&suites::short(300).await);
}

#[tokio::test]
async fn whatever_is_killed_each_request_has_one_answer_and_nothing_is_left() {
    judge(&suites::kills(25, 0x10c4_0053).await);
}
