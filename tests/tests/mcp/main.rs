//! `lockhouse serve`, as an AI client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod arguments;
mod asking;
mod http;
mod login;
mod offers;
mod progress;
mod protocol;
mod results;
mod timeouts;

use lockhouse_tests::{Lockhouse, Table, equal};
use serde_json::Value;

/// Programs in one session, each by its language and name, with the value that it must come to.
async fn check(lockhouse: &Lockhouse, title: &str, rows: &[(&str, &str, &str, Value)]) {
    let session = lockhouse.serve().await;
    let mut table = Table::new(title);
    for (language, name, code, expected) in rows {
        let answer = session.run_code(language, code).await;
        let outcome = equal(&answer["value"], expected).map_err(|e| format!("{e} {}", answer["error"]));
        table.row(format!("{language}: {name}"), outcome);
    }
    table.finish();
}
