//! Tests of the policy: its decisions on calls, the error messages of denials, and the audit records of decisions.

mod audit;
mod call_paths;
mod denials;
mod limits;
mod narrowing;
mod policy_command;
mod required_policy;
mod required_servers;
mod requirements;
mod revocation;
mod source_lines;
mod tools_command;

/// A policy that allows three of the fixture server's tools (`add`, `count`, `text`) and explicitly denies
/// `delete_everything`.
const POLICY: &str = "\
version = 1

[servers.fixture]
allow = [\"add\", \"count\", \"te*\"]
deny = [\"delete_*\"]
";
