//! Servers that AI clients have directly: what passes, and that the gate is its only way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod changes;
mod gate;
mod lossless;
mod pipe;

use std::path::Path;

use lockhouse_tests::Lockhouse;
use serde_json::{Value, json};

const ALL: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\nresources = [\"*\"]\nprompts = [\"*\"]\n";

/// The path of the fixture server.
fn fixture() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/conformance.py").display().to_string()
}

/// A Lockhouse whose AI clients have the fixture server in one of its eras.
fn lockhouse(era: &str, keys: &str, policy: &str) -> Lockhouse {
    Lockhouse::new().config(&config(era, keys)).policy(policy)
}

fn config(era: &str, keys: &str) -> String {
    let arguments = json!(["-B", fixture(), era]);
    format!("[http]\nauth = \"none\"\n[servers.fixture]\ncommand = \"python3\"\nargs = {arguments}\n{keys}\n")
}

/// A request of the newest era, of a client that can do this.
fn modern(id: u64, method: &str, mut parameters: Value, able: &Value) -> Value {
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": able,
        "io.modelcontextprotocol/clientInfo": {"name": "lockhouse-tests", "version": "0"},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}

fn legacy(id: u64, method: &str, parameters: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}
