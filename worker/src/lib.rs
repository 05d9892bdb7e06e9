//! The side that runs untrusted code: the zygote, which forks workers, and the workers, which enter the sandbox and run
//! one execution.
//!
//! # Parts
//!
//! - [`zygote`] loads a language engine once, forks workers on request, and reaps them.
//! - [`engine`] and [`tool_host`] are the two interfaces: what a language engine does, and how its code reaches the
//!   supervisor.
//! - [`channel`] is the worker's end of its socket. `warm_up_host.rs` answers the requests of the warm-up, a trivial
//!   program that a worker runs before it has a job.
//! - [`signals`] interrupts running code. `stack_overflow.rs` turns a fault near the stack pointer into an exit status
//!   of its own, which only improves the error message.
//! - [`program_text`] takes a program out of a submitted text with a byte order mark or a Markdown fence.
//! - `lockhouse-worker` (`main.rs`, `javascript.rs` and the files below `javascript/`) is the zygote of JavaScript and
//!   TypeScript: oxc removes the types, QuickJS-NG runs the result. `*.js` are what programs see: imports of servers,
//!   files in memory, `Intl`, URLs, `node:…` modules. `*hints*.rs`, `traceback.rs` and `undefined_value.rs` explain the
//!   errors of programs.
//!
//! # Invariants
//!
//! - Nothing in this crate depends on an asynchronous runtime, a network library or the supervisor.
//! - No code runs outside of the sandbox: a language engine requires a `Sandboxed` value, which only entering every
//!   layer creates.
//! - No option and no message leaves a layer out. Both programs of the product use all of them.
//! - No request of code leaves the process but through [`tool_host::ToolHost`].
//! - No worker serves a second execution, except those of its session.
//! - A check of a program before its run (`javascript/planned_calls.rs`, `python/lib/check.py`) reports no call that
//!   may not run or whose failure the program could catch: a check that is sometimes wrong would be worse than none.
//!
//! # Decisions
//!
//! - Everything slow happens before the fork. The zygote creates the JavaScript realm, which workers share by
//!   copy-on-write, and settles its heap: each page that a worker writes first is copied, and these page faults are
//!   half of a TypeScript worker's CPU time. `Math.random` is replaced by one that is seeded in each worker, since
//!   QuickJS seeds it when a realm is created.
//! - The engine's own JavaScript is bytecode that the build script compiles (`javascript/compile_parts.rs`). Reading
//!   its text would take 7 ms at each start of a zygote. The bytecode is part of the program, so nobody else can supply
//!   it.
//! - Descriptors 0, 1 and 2 of a worker are its own pipes without another end. A shared `/dev/null` has flags that one
//!   worker can set and another can read.
//! - JSON text of a server is decoded here and not in the supervisor. The value remembers its text in a slot that
//!   programs cannot set (`decoded.js`, `python/lib/decoded.py`); the gate sends the text where a tool permits only a
//!   string.
//! - Integers that a double cannot hold are BigInts in TypeScript. Text would be joined where a program adds, and could
//!   not be told from text that a server sent.
//! - Files in memory, denied modules and names of similar products are no security boundary. The kernel refuses every
//!   file.

pub mod channel;
mod code_pages;
pub mod engine;
pub mod program_text;
pub mod signals;
mod stack_overflow;
pub mod tool_host;
mod warm_up_host;
pub mod zygote;
