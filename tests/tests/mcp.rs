//! Tests `lockhouse serve` over standard input and output, as AI clients use it.

mod answers;
mod arguments;
mod catalogue;
mod elicitation;
mod invalid_messages;
mod progress;
mod protocol;
mod resources_and_prompts;
mod results;
mod timeouts;
mod upstream_http;
pub(crate) mod upstream_login;

use lockhouse_tests::{Lockhouse, Table, equal};
use serde_json::Value;

/// Runs programs over one MCP connection and compares the value of each with the expected one. `title` is the title of
/// the printed test table. Each entry of `rows` has the language, the name of the case, the program and the expected
/// value.
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
