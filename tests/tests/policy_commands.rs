//! Tests of the `lockhouse policy` commands that help users write a policy.

mod check;
mod diff;
mod dry_run;
mod explain;
mod set_effect;
mod suggest;
mod usage;

use lockhouse_tests::Lockhouse;

/// A policy that has every effect (allow, ask, deny) as list entries, and also a rule, permitted resources,
/// and a section for one client.
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

/// Returns a Lockhouse test fixture with the upstream server `fixture`, and with `POLICY` in the file `policy.toml` in
/// the working directory of the commands.
fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    lockhouse.file("home/policy.toml", POLICY);
    lockhouse
}
