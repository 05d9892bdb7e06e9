//! The engine crate: runs submitted code, from a request to its one answer, and connects all parts of the supervisor.
//!
//! # Parts
//!
//! - [`supervisor`] starts all parts, reloads the configuration and reports health. `supervisor/run_code.rs` takes a
//!   request to run code to its answer: quota, worker, record, run, answer. `supervisor/worker_pools.rs` has the pools
//!   of workers by kind.
//! - [`execution`] is one run in one worker. `execution/state_machine.rs` is pure and maps each event to an effect;
//!   `execution/driver.rs` reads, writes, waits and sends signals. `execution/answer_truncation.rs` fits an answer into
//!   its limits.
//! - [`sessions`] keeps workers between runs. Background runs continue after their request was answered, and are found
//!   by handle or id; `runs.rs` owns the facts about all runs behind one lock: what operators list and end, and the
//!   quotas of clients. [`client_quotas`] are the rate, the number and the CPU credit of a client's runs.
//! - `front_connection.rs` is the engine's end of the edge: each request of a front is a task with an exchange.
//!   `grants.rs` below it is the table of accesses. [`front_socket`] accepts fronts of other processes;
//!   `unix_acceptor.rs` accepts their clients.
//! - [`Cluster`] is the part of this engine in a cluster. A request that names an id of another host is passed on to that host
//!   (`front_connection/forwarding.rs`); `host_socket.rs` serves the other hosts.
//! - [`launcher_socket`] accepts launchers, which start upstream servers in the session of a person.
//! - [`control_socket`] serves operators' commands. [`systemd_notify`] reports to systemd.
//! - `direct.rs` has the names and lists of tools that AI clients call without code, and the calls that wait for answers of users.
//!
//! # Invariants
//!
//! - Nothing here speaks MCP with an AI client, and nothing names the front. A front is known by its messages alone.
//! - No front is believed. A request whose grant this engine did not issue on this connection, or whose role it lacks,
//!   is refused before anything is done for it.
//! - No execution has two answers or none, whichever process dies.
//! - No worker is used by two executions at one time, and none after its run but for its session.
//! - No run of one client waits for a client that does not read: what a slow reader fills has a bound of its own.
//! - No run is reached by another owner. For others, its handle does not exist.
//!
//! # Decisions
//!
//! - A session's worker is stopped (SIGSTOP) between runs, and its socket is not read. Messages that are in the socket
//!   when it resumes are processed in a phase of their own: output and requests of threads count towards the next run.
//! - The supervisor enforces the wall-clock limit: SIGINT yields a traceback of the current position, SIGKILL follows
//!   100 ms later through the pidfd. The kernel enforces CPU time, but for sessions, whose limit the supervisor checks.
//! - A reload replaces the whole configuration. An execution keeps the upstream servers that were in force when it
//!   began; servers that are no longer used are closed when its last holder ends. Servers that the administrator's
//!   requirements do not permit any more are closed at once. While the administrator stops Lockhouse, nothing runs.
//! - Clients that share the supervisor yield CPU time: a run is scheduled as idle work (`SCHED_IDLE`) once the client's
//!   credit of 50 ms is used up, which refills at one percent of a CPU. A credit for each run would spare short runs
//!   without pause. Niceness is not enough: the kernel takes a CPU with only idle work for free, and a CPU with nice
//!   work for busy.
//! - Replies to a worker that does not read wait up to a bound. Above it, the supervisor neither reads its messages nor
//!   answers them.
//! - Futures of 9 to 14 KB are boxed. A task copies its future when it is spawned and when it ends; these copies were
//!   the most frequent instructions of a run.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

pub mod client_quotas;
mod cluster;
pub mod connected_clients;
pub mod control_socket;
mod direct;
pub mod execution;
mod front_budget;
mod front_connection;
mod front_link;
pub mod front_socket;
mod host_socket;
pub mod launcher_socket;
mod mcp_sessions;
mod open_counts;
mod pending_questions;
mod runs;
pub mod sessions;
pub mod supervisor;
pub mod systemd_notify;
mod unix_acceptor;
mod unix_connections;

pub use cluster::Cluster;
pub use front_budget::FrontBudget;
pub use front_connection::connect;
pub use host_socket::serve_cluster;
pub use unix_acceptor::UnixAcceptor;
