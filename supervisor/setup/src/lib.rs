//! Takes over the MCP servers of AI clients, as a transaction: plan, apply, undo.
//!
//! # Parts
//! - **Plan**: [`Inventory`] has the servers in the files of AI clients, each with the verdict of the [`Importer`]: it can be
//!   taken over, or why not. A [`Plan`] is what the user decided: the servers to add to Lockhouse's configuration, the
//!   first policy, and the files of AI clients to change ([`ClientFile`]). An [`Attempt`] is a weaker sandbox for a server
//!   that does not start in the usual one.
//! - **Apply**: [`Plan::apply`] makes the changes, in the order configuration, policy, AI clients. So a server that is
//!   removed from an AI client's file is in Lockhouse's configuration already. `server_tables.rs` writes the servers into
//!   the configuration, and their secrets into files.
//! - **Undo**: [`Undo`] takes the changes back, the newest first. A file that is as it was written gets its former content;
//!   in a file that was changed since, only the own changes are taken back.
//! - **Journal**: [`Journal`] records every change before it is made, with the content of the file before and after it. An
//!   interrupted run can be taken back too.
//!
//! # Invariants
//! - It asks nothing and prints nothing: [`Plan::apply`] and [`Undo::run`] report each step to their caller.
//! - It starts no server and opens no connection. The command `lockhouse setup` starts the servers, between the plan and
//!   its changes.
//! - It changes no file that the journal has not recorded, and removes none but those that it has written.
//! - Two processes never change files at the same time: the open journal is locked.
//! - It never writes a secret into the configuration, or into a file that other users can read.
//!
//! # Users
//! The commands `setup`, `import` and `init` in the binary.
#![allow(
    missing_docs,
    reason = "only the commands of the binary use it: names and types say what fields are"
)]

mod apply;
mod attempt;
mod candidate;
mod client_change;
mod inventory;
mod journal;
mod plan;
mod server_tables;
mod undo;

pub use apply::{Applied, replace_client_file};
pub use attempt::Attempt;
pub use candidate::{Candidate, Importer, Verdict};
pub use client_change::{ClientFile, Installation, entry_change, read_or_empty};
pub use inventory::{Found, Inventory, ServersFile, servers_files};
pub use journal::{Change, Journal, Step};
pub use plan::{NewServer, Plan};
pub use server_tables::{secret_names, write_tables};
pub use undo::{Outcome, StepResult, Undo, UndoError};
