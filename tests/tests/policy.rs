//! The policy's decisions on calls, the error messages of denials, and the audit log.

mod audit;
mod call_paths;
mod denials;
mod limits;
mod narrowing;
mod policy_command;
mod required_policy;
mod requirements;
mod revocation;
mod source_lines;
mod tools_command;

/// Permits three tools, and denies one that the server offers.
const POLICY: &str = "\
version = 1

[servers.fixture]
allow = [\"add\", \"count\", \"te*\"]
deny = [\"delete_*\"]
";
