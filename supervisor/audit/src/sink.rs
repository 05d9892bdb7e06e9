//! The audit sink: a process of an account of its own, which writes the logs of all engines of a host. An engine sends a record
//! and makes its call after the answer. It can neither change nor remove what the sink has written, and not write in the name
//! of another account: each connection is a chain of its own, whose first record has the account and process that the kernel
//! reports.
//!
//! The sink forwards the log, if its configuration has destinations: no engine can read it. An engine states which destinations its
//! own configuration names, so that none is left out without a word.
//!
//! `client.rs` is the side of the engine, `server.rs` and `connection.rs` that of the sink; `messages.rs` are the messages between
//! them. `quota.rs` limits what an account can write, and `confinement.rs` takes from the sink the right to remove a log;
//! `erasures.rs` erases names of clients.

mod address;
mod client;
mod confinement;
mod connection;
mod erasures;
mod forwarding;
mod messages;
mod quota;
mod server;
#[cfg(test)]
mod tests;

pub use address::{InvalidSinkAddress, SinkAddress};
pub(super) use client::SinkClient;
pub(super) use messages::RequiredForwarding;
pub use server::{Sink, SinkError, SinkSettings};
