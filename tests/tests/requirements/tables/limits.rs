//! Attempts to exceed limits that the requirements set.

use serde_json::json;

use super::Row;
use crate::requirements::attempts::boxed;
use crate::requirements::server;

const LIMITS: &str = "[limits]\ncalls = 2\ntimeout_seconds = 1\n";
/// A program that calls the server three times.
const THREE_CALLS: &str = "from fixture import add\n[add(a=i, b=0)[\"sum\"] for i in range(3)]";
const SLOW: &str = "import time\ntime.sleep(1.5)\n7";

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("limits", "the default of the configuration", LIMITS, |it| {
            boxed(async { it.returns(THREE_CALLS, json!([0, 1, 2]), &[], &[]).await })
        }),
        ("limits", "calls in the configuration", LIMITS, |it| {
            boxed(async {
                it.config(&format!("[limits]\ncalls = 100\n{}", server("fixture")));
                it.returns(THREE_CALLS, json!([0, 1, 2]), &[], &[]).await
            })
        }),
        ("limits", "--config", LIMITS, |it| {
            boxed(async {
                let text = format!("[limits]\ncalls = 100\ntimeout_seconds = 100\n{}", server("fixture"));
                let path = it.lockhouse.file("own.toml", text).display().to_string();
                it.returns(THREE_CALLS, json!([0, 1, 2]), &["--config", &path], &[]).await
            })
        }),
        ("limits", "--timeout", LIMITS, |it| {
            boxed(async { it.returns(SLOW, json!(7), &["--timeout", "20"], &[]).await })
        }),
        ("limits", "a further requirements file", LIMITS, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", "[limits]\ntimeout_seconds = 100\ncalls = 100\n");
                it.returns(SLOW, json!(7), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}
