//! Changes the configuration files of AI clients: adds the entry that starts Lockhouse, takes servers out of them, and puts
//! the servers back.
//!
//! A change is a function from text to text, or to a list of faults. The caller reads the file, shows the change and
//! writes the result.
//!
//! # Parts
//! - `ai_client.rs`: the AI clients that Lockhouse knows ([`AiClient`]), and the paths of their files.
//! - `client_entry.rs`: [`insert`] adds or updates the entry that starts Lockhouse. `client_entry/codex.rs` does so in TOML,
//!   with the settings of Codex's code mode (`code_mode.rs`), and `client_entry/continue_yaml.rs` in YAML.
//!   `client_entry/answer_form.rs` decides which form of answers an entry selects, and finds entries with a wrong one.
//! - `entry_moves.rs`: [`take_out`] removes servers from a file, and [`put_back`] inserts them again with their former text.
//!   There is one module for each syntax: JSON, TOML and YAML.
//! - `json_edit.rs`: inserts and removes single properties in the text of a JSON file.
//!
//! How an AI client's file is *read* is a part of the configuration, since `lockhouse serve` can use such a file: see
//! `supervisor/config/src/dialects.rs`.
//!
//! # Invariants
//! - It writes no file, and asks and prints nothing. Only [`AiClient::existing_files`], [`project_files`] and
//!   [`unsuitable_entries`] read the file system at all.
//! - It starts no process, and opens no connection.
//! - No change removes a setting or a comment outside of the entries that it concerns. The result of [`take_out`] and
//!   [`put_back`] is parsed again and compared with what the file must contain; a difference is an error, never a file.
//! - No diagnostic shows a line of a file that may hold a secret.
//! - It resolves no placeholder to change a file: the text of an entry moves as it is.
//!
//! # Users
//! `lockhouse-setup`, and the commands `init`, `import`, `doctor` and `status` in the binary. `lockhouse serve` uses
//! nothing of this crate.
#![allow(
    missing_docs,
    reason = "only the crates of this workspace use it: names and types say what fields are"
)]

mod ai_client;
mod client_entry;
mod entry_moves;
mod json_edit;

pub use ai_client::{AiClient, project_files};
pub use client_entry::{
    Insertion, LaunchCommand, UnsuitableEntry, approve_run_code, insert, lists_lockhouse, own_place,
    restore_code_mode_setting, unsuitable_entries,
};
pub use entry_moves::{EntryPlace, PutBack, put_back, take_out};
