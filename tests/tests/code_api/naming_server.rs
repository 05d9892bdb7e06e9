//! An upstream server for tests of tool names: its tools have names of every kind, and each returns its arguments.

use lockhouse_tests::Lockhouse;
use serde_json::{Value, json};

/// Returns the definitions of the tools of this upstream server, as the result of `tools/list`.
pub(crate) fn tools() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    json!({"tools": [
        {
            "name": "list_issues",
            "description": "Lists the issues of a repository.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "state": {"enum": ["open", "closed"], "default": "open", "description": "Which of them"},
                    "owner": {"type": "string", "description": "Who it belongs to"},
                    "repo": text,
                    "per_page": number,
                    "since": {"type": ["string", "null"]},
                },
                "required": ["owner", "repo"],
            },
        },
        {"name": "save", "inputSchema": {"properties": {"filter": {"type": "object"}, "limit": number}, "required": ["filter"]}},
        {"name": "delete", "inputSchema": {"properties": {"from": text, "retry-delay": number}}},
        {"name": "close-issue/v2", "inputSchema": {"properties": {"issueNumber": number}}},
        {"name": "a-b", "inputSchema": {"type": "object"}},
        {"name": "a_b", "inputSchema": {"type": "object"}},
        {"name": "getUser", "inputSchema": {"type": "object"}},
        {"name": "GetUser", "inputSchema": {"type": "object"}},
        {"name": "secret", "inputSchema": {"type": "object"}},
    ]})
}

/// Returns a Lockhouse test fixture with the upstream server of this file under the name `my-hub`. Its policy denies
/// the tool `secret` and allows all others.
pub(crate) fn lockhouse() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    let file = lockhouse.file("tools.json", tools().to_string());
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/stubs/catalogue_server.py");
    let policy = "version = 1\n[servers.my-hub]\nallow = [\"*\"]\ndeny = [\"secret\"]\n";
    lockhouse.servers_entry("my-hub", json!({"command": "python3", "args": [server, file]})).policy(policy)
}
