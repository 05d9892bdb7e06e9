//! Who may call what: the policy, its words, and the audit log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod audit;
mod denials;
mod layers;
mod limits;
mod lines;
mod narrowing;
mod policy_command;
mod requirements;
mod revocation;
mod tools_command;
mod ways;

/// Permits three tools, and forbids one that the server offers.
const POLICY: &str = "\
version = 1

[servers.fixture]
allow = [\"add\", \"count\", \"te*\"]
deny = [\"delete_*\"]
";
