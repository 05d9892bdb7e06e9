//! Tools for the people who write a policy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod check;
mod diff;
mod dry_run;
mod explain;
mod suggest;
mod usage;

use lockhouse_tests::Lockhouse;

/// Every effect, by list and by rule.
const POLICY: &str = r#"version = 1

[servers.fixture]
allow = ["add", "count", "te*"]
ask = ["big"]
deny = ["delete_*"]
resources = ["fixture://notes/*"]

[[servers.fixture.rules]]
tool = "echo"
when = { value = { max = 10 } }
effect = "allow"

[clients.stranger.servers.fixture]
allow = ["count"]
"#;

/// The fixture server under that policy, in a file of the directory in which commands are run.
fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    lockhouse.file("home/policy.toml", POLICY);
    lockhouse
}
