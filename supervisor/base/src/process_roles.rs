//! What each process of the product has and can reach, for `doctor`, `status` and the threat model, whose table has the same
//! words. Tests verify it from outside.

use serde::Serialize;

/// What a process has and can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessRole {
    pub process: &'static str,
    pub holds: &'static str,
    pub can_reach: &'static str,
    pub cannot_reach: &'static str,
}

pub const STDIO_FRONT: ProcessRole = ProcessRole {
    process: "front over stdio",
    holds: "requests and answers of one AI client",
    can_reach: "what the account can: it is in the engine's process, or in the thin process of a shared engine. A thin process separates faults and memory, and not rights",
    cannot_reach: "what the engine has of other clients, through the engine",
};

pub const HTTP_FRONT: ProcessRole = ProcessRole {
    process: "front over HTTP",
    holds: "requests, answers and tokens in transit, MCP sessions, keys of open connections",
    can_reach: "its clients' connections, the inherited listening sockets of TCP, the engine's edge, the signer's socket",
    cannot_reach: "files, programs, new processes, threads and sockets, other processes and their memory, the TLS key, policy, secrets",
};

pub const HTTP_FRONT_STARTER: ProcessRole = ProcessRole {
    process: "starter of a front",
    holds: "nothing",
    can_reach: "its front, which has the same account, and one socket to the engine; exists only where systemd starts fronts",
    cannot_reach: "connections of clients, the front's sockets, networks, the engine's files and memory",
};

pub const SIGNER: ProcessRole = ProcessRole {
    process: "signer",
    holds: "the private key of TLS",
    can_reach: "sockets of fronts, and one to the engine",
    cannot_reach: "what the front cannot, connections of clients, requests, tokens",
};

pub const ENGINE: ProcessRole = ProcessRole {
    process: "engine",
    holds: "policy, credentials of servers, runs, sessions, results, the audit log's key, all listening sockets",
    can_reach: "what the account can",
    cannot_reach: "the TLS key, except in its file if the account may read that",
};

pub const ZYGOTE: ProcessRole = ProcessRole {
    process: "zygote",
    holds: "interpreter, modules, packages; no secret, an empty environment",
    can_reach: "the engine's sockets, its workers",
    cannot_reach: "capabilities; system calls except those of workers and a few more; files and networks where the host permits namespaces",
};

pub const WORKER: ProcessRole = ProcessRole {
    process: "worker",
    holds: "one program and what it asked for",
    can_reach: "one socket pair to the engine",
    cannot_reach: "everything else",
};

pub const UPSTREAM_SERVER: ProcessRole = ProcessRole {
    process: "upstream server",
    holds: "its own configured environment",
    can_reach: "what the account can, or what its `sandbox` permits",
    cannot_reach: "the engine's memory",
};

pub const OPERATOR: ProcessRole = ProcessRole {
    process: "live page, operators' commands",
    holds: "what the engine's roles permit them to see",
    can_reach: "what the account can",
    cannot_reach: "clients of `/mcp`: the page never serves them",
};

/// All roles, in the order of the tables.
pub const PROCESS_ROLES: [ProcessRole; 9] =
    [STDIO_FRONT, HTTP_FRONT, HTTP_FRONT_STARTER, SIGNER, ENGINE, ZYGOTE, WORKER, UPSTREAM_SERVER, OPERATOR];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threat_model_has_the_same_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security/threat-model.md");
        let document = std::fs::read_to_string(path).expect("the threat model");
        for role in PROCESS_ROLES {
            let cells = [role.process, role.holds, role.can_reach, role.cannot_reach].join(" | ");
            let row = format!("| {cells} |");
            assert!(document.lines().any(|line| line == row), "{row}");
        }
    }
}
