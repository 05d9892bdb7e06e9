//! The `lockhouse` program: parses the command line, calls one crate, prints what it returns.
//!
//! `cli` has one module for each command, named after it.
//!
//! # Parts
//!
//! - `cli/serve.rs` is `lockhouse serve`. `cli/serve/shared.rs` is the thin process of one AI client with a shared
//!   engine; `cli/engine.rs` and the files beside it are the process of that engine, with its socket, its lock and its
//!   log.
//! - `cli/serve/http_service.rs` is `lockhouse serve --http`: it starts, verifies and replaces the sealed processes
//!   `cli/http_front.rs` and `cli/tls_signer.rs`.
//! - `cli/run.rs` runs one program without a service. `cli/check.rs` checks one without running it.
//! - `cli/policy.rs`, `cli/server.rs`, `cli/token.rs`, `cli/skills.rs`, `cli/python.rs` change what the service reads.
//! - `cli/approvals.rs`, `cli/runs.rs`, `cli/sessions.rs`, `cli/status.rs`, `cli/reload.rs` talk to a running process.
//! - `cli/page.rs` carries the actions of the live page out.
//! - `cli/generate.rs` writes manual pages, completions, the JSON Schema and the packaged configuration.
//!
//! A request to run code, and the calls of this code, pass these crates: `lockhouse_front` → `lockhouse_engine` ⇄
//! worker → `lockhouse_gate` → `lockhouse_upstream`.
//!
//! # Invariants
//!
//! - No library crate depends on this one, and none prints or exits.
//! - No command reads a secret of the configuration that it does not need.
//! - No part of a supervisor forks without executing another program.
//!
//! # Decisions
//!
//! - A shared engine is found by a keyed digest of its setup: the files, the resolved values, the environment that
//!   servers inherit and the rights of the process. Both sides compute it, so an engine never serves a client whose
//!   servers would be others, and nothing else has to be sent. It is keyed, because `/proc/net/unix` shows the name of
//!   a socket to everybody.
//! - The socket of an engine is in the state directory, which is a part of the setup, and not in `$XDG_RUNTIME_DIR`. A
//!   lock beside the socket says whether an engine runs: any end of the process releases it.
//! - An engine is no child of the process that starts it, because AI clients end their servers with all of their
//!   descendants.
//! - A server that is not shared keeps the whole engine from being shared. Instances for each connection would make
//!   every list, pin and status of a server ambiguous.
//! - Three seconds after its start, `serve` gives the memory of program text back that only the start has used: two
//!   thirds of an idle supervisor's memory (`cli/startup_code.rs`).
//! - The signer reads the private key of TLS itself, so that no other process of the service has it. The signer and the
//!   front are this program, executed again as `/proc/self/exe`: the same build, also after an update of the package.
//! - The event loop has one thread. The kernel kills a zygote when the thread that started it exits, and no call pays
//!   for a switch.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
