//! Black-box tests of the built Lockhouse programs: one module for each test suite.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "a test that cannot go on panics; tests print tables"
)]
#![allow(clippy::type_complexity, reason = "tables of test cases are arrays of large tuples")]

mod access;
mod approvals;
mod audit;
mod balancers;
mod client_configuration;
mod client_isolation;
mod cluster;
mod code_api;
mod design_examples;
mod direct_tools;
mod docs;
mod errors;
mod files;
mod files_in_out;
mod http;
mod mcp;
mod mistakes;
mod packages;
mod page;
mod policy;
mod policy_commands;
mod predecessors;
mod requirements;
mod resilience;
mod run_command;
mod runs;
mod sandbox;
mod search;
mod server_commands;
mod service;
mod sessions;
mod sharing;
mod skills;
mod supply_chain;
mod system_engine;
mod telemetry;
mod typescript_globals;
mod upstreams;
mod values;
