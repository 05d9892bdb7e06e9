//! Tests of upstream servers that Lockhouse exposes directly to AI clients: which messages Lockhouse
//! forwards, and that each direct call is subject to the policy and the audit log.

mod change_notifications;
mod first_list;
mod gate_checks;
mod lossless_forwarding;
pub(crate) mod raw_client;

use std::path::Path;

use lockhouse_tests::Lockhouse;
use serde_json::{Value, json};

const ALL: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\nresources = [\"*\"]\nprompts = [\"*\"]\n";

/// Returns the path of `servers/conformance.py`, the upstream server of these tests.
fn fixture() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/conformance.py").display().to_string()
}

/// Returns a Lockhouse test fixture with the policy `policy` that exposes the upstream server `fixture` directly. `era`
/// is the server's argument that selects its MCP protocol version; `keys` are additional configuration keys of the
/// server.
fn lockhouse(era: &str, keys: &str, policy: &str) -> Lockhouse {
    Lockhouse::new().config(&config(era, keys)).policy(policy)
}

fn config(era: &str, keys: &str) -> String {
    let arguments = json!(["-B", fixture(), era]);
    format!(
        "[http]\nauth = \"none\"\n[catalogue]\nfirst_list_seconds = 10\n[servers.fixture]\ncommand = \"python3\"\nargs = {arguments}\n{keys}\n"
    )
}

/// Returns an MCP request of protocol version 2026-07-28 from an AI client with the capabilities `able`.
fn modern(id: u64, method: &str, mut parameters: Value, able: &Value) -> Value {
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": able,
        "io.modelcontextprotocol/clientInfo": {"name": "lockhouse-tests", "version": "0"},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}

pub(crate) fn legacy(id: u64, method: &str, parameters: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}
