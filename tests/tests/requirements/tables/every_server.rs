//! Attempts to get around what the requirements determine about every server.

use serde_json::json;

use super::Row;
use crate::requirements::attempts::boxed;
use crate::requirements::{ADD, server};

const EVERY: &str = "[servers.\"*\"]\nenv = [\"LANG\"]\nexpose = \"code\"\ndisabled_tools = [\"add\"]\n";

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("every server", "a variable that none may set", EVERY, |it| {
            boxed(async {
                it.config(&format!("{}env = {{LD_PRELOAD = \"/tmp/x.so\"}}\n", server("fixture")));
                it.lists("fixture", &[], &[]).await
            })
        }),
        ("every server", "a tool that none may offer", EVERY, |it| {
            boxed(async { it.returns(ADD, json!(42), &[], &[]).await })
        }),
        ("every server", "enabled_tools", EVERY, |it| {
            boxed(async {
                it.config(&format!("{}enabled_tools = [\"add\"]\n", server("fixture")));
                it.returns(ADD, json!(42), &[], &[]).await
            })
        }),
        ("every server", "expose", EVERY, |it| {
            boxed(async {
                let waits = "[catalogue]\nfirst_list_seconds = 20\n";
                it.config(&format!("{waits}{}expose = \"direct\"\n", server("fixture")));
                it.shows_tool("fixture__count", &[], &[]).await
            })
        }),
    ]
}
