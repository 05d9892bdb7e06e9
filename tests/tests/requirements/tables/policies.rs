//! Attempts to use tools that the policy of the requirements denies, and to use tools without code.

use serde_json::json;

use super::Row;
use crate::requirements::attempts::boxed;
use crate::requirements::{ADD, ALLOW, server};

const POLICY: &str = "policy = \"ROOT/etc/lockhouse/policy.toml\"\n";
const CODE_ONLY: &str = "expose = \"code\"\n";

pub(super) fn policies() -> Vec<Row> {
    vec![
        ("policy", "the own policy allows it", POLICY, |it| {
            boxed(async { it.returns(ADD, json!(42), &[], &[]).await })
        }),
        ("policy", "--policy", POLICY, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", ALLOW).display().to_string();
                it.returns(ADD, json!(42), &["--policy", &path], &[]).await
            })
        }),
        ("policy", "XDG_CONFIG_HOME", POLICY, |it| {
            boxed(async {
                it.lockhouse.file("away/lockhouse/config.toml", server("fixture"));
                it.lockhouse.file("away/lockhouse/policy.toml", ALLOW);
                it.returns(ADD, json!(42), &[], &[("XDG_CONFIG_HOME", it.path("away"))]).await
            })
        }),
        ("policy", "lockhouse policy allow", POLICY, |it| {
            boxed(async {
                it.policy("version = 1\n");
                let output = it.run(&["policy", "allow", "fixture.add", "--unknown"], &[]).await;
                let (is_done, answer) = it.returns(ADD, json!(42), &[], &[]).await;
                (is_done, format!("{output:?} {answer}"))
            })
        }),
        ("policy", "an empty further requirements file", POLICY, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", "");
                it.returns(ADD, json!(42), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
        ("policy", "a further policy that allows it", POLICY, |it| {
            boxed(async {
                let policy = it.lockhouse.file("allow.toml", ALLOW);
                let path = it.lockhouse.file("own.toml", format!("policy = {policy:?}\n"));
                it.returns(ADD, json!(42), &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}

pub(super) fn exposure() -> Vec<Row> {
    const WAITS: &str = "[catalogue]\nfirst_list_seconds = 20\n";
    vec![
        ("exposure", "--expose direct", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}", server("fixture")));
                it.shows_tool("fixture__add", &["--expose", "direct"], &[]).await
            })
        }),
        ("exposure", "--expose both", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}", server("fixture")));
                it.shows_tool("fixture__add", &["--expose", "both"], &[]).await
            })
        }),
        ("exposure", "expose of the server", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}expose = \"direct\"\n", server("fixture")));
                it.shows_tool("fixture__add", &[], &[]).await
            })
        }),
        ("exposure", "a further requirements file", CODE_ONLY, |it| {
            boxed(async {
                it.config(&format!("{WAITS}{}", server("fixture")));
                let path = it.lockhouse.file("own.toml", "expose = \"both\"\n");
                it.shows_tool("fixture__add", &[], &[("LOCKHOUSE_REQUIREMENTS", path)]).await
            })
        }),
    ]
}
