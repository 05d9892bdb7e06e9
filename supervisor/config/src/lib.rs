//! Loads Lockhouse's own configuration, checks it as a whole, and converts it into the settings of each component.
//!
//! # Parts
//! - **Keys**: `tables.rs`, `http_tables.rs` and `server_keys.rs` declare every key once, with its type, default, range and
//!   one sentence. From the declarations, `keys.rs` derives the parser, the reference and the JSON Schema;
//!   `documentation.rs` writes the packaged configuration, and its test compares docs/configuration.md.
//! - **Loading**: [`Settings::load`] reads the files that [`Files`] names. `config_toml.rs` is the file `config.toml` as it
//!   is written, `multi_error_parser.rs` reports all of its faults at once, and `engine_settings.rs` passes the values to
//!   the settings of the part that uses them.
//! - **Servers**: `dialects.rs` reads the files in which AI clients list their servers, each in its own format, since the
//!   configuration may name such files. [`ServerEntry`] is a server of any format, still with its placeholders;
//!   `placeholders.rs` resolves them, and `servers.rs` collects the servers of all files.
//! - **Requirements**: `requirements.rs` has the servers that the administrator approves or denies for all users of the host,
//!   and the keys that replace those of the user. Approved servers match strictly (`identity.rs`), denied ones loosely
//!   (`denial.rs`).
//! - **Two parts**: `user_part.rs` is what the user's files say. [`Configuration`] combines it with the requirements, and
//!   replaces either of them alone: new requirements need no file of the user (`watched_files.rs` tells when they change).
//! - **Trust**: `file_permissions.rs` checks who else can write or read a file; `own_places.rs`, `interpreter_places.rs` and
//!   `server_programs.rs` list the files of Lockhouse that no program may change.
//! - **Sharing**: `setup_digest.rs` computes what must be equal for AI clients to share an engine, with the variables of
//!   `engine_variables.rs`.
//! - **Edits**: [`ConfigEdit`] changes `config.toml` for commands, and keeps its comments and order. `configured_files.rs`
//!   lists the files whose changes the audit log records.
//!
//! # Invariants
//! - It starts no server and no worker, and opens no network connection. The one program that it runs is `secret-tool`,
//!   for a placeholder that names an entry of the keyring.
//! - It changes no file of another product: `lockhouse-client-files` has the changes, and this crate does not depend on it.
//!   So `lockhouse serve` reads the files of AI clients, and calls nothing that could change them.
//! - It applies no permission that the file of an AI client grants.
//! - It loads no part of a configuration that has a fault: all faults are reported, and no settings result.
//! - No error shows a line of a file that may hold a secret (`redacted_diagnostic.rs`), and no `Debug` output shows a text
//!   with placeholders (`Template`).
//! - No other module than `placeholders.rs` resolves placeholders.
//!
//! # Users
//! The commands in the binary; `lockhouse-client-files`, which shares the entries and the syntax trees; and
//! `lockhouse-setup`.
#![allow(
    missing_docs,
    reason = "only the crates of this workspace use it: names and types say what fields are"
)]

mod client_access;
mod cluster_settings;
mod code_trust;
mod config_diagnostics;
mod config_edit;
mod config_toml;
mod configuration;
mod configured_files;
mod deprecated_transport;
pub mod dialects;
mod documentation;
mod engine_path;
mod engine_settings;
mod engine_sharing;
mod engine_variables;
mod env_file;
mod error;
mod every_server;
mod file_permissions;
mod files;
mod files_table;
mod forwarding;
mod http_tables;
mod interpreter_places;
mod keys;
mod module_name;
mod multi_error_parser;
mod notice_entry;
mod notice_settings;
mod oauth_settings;
mod own_places;
mod package_spec;
mod placeholders;
mod policy_files;
mod process_rights;
mod python_environment;
mod redacted_diagnostic;
mod requirements;
mod sandbox_choice;
mod search_paths;
mod secret_detection;
mod server_entry;
mod server_keys;
mod server_programs;
mod server_table;
mod servers;
mod settings;
mod setup_digest;
mod shell_quoting;
mod single_tables;
mod skip_reason;
mod skipped_server;
mod tables;
pub mod toml_tables;
mod tool_decoding;
mod unique_servers;
mod unresolved_server;
mod user_part;
mod users_table;
mod value_settings;
mod worker_pools;

pub use config_edit::{ConfigEdit, PreparedEdit};
pub use configuration::{Configuration, RequiredKeys, RequirementsState};
pub use configured_files::recorded_config_path;
pub use deprecated_transport::sse_warning;
pub use dialects::{ListedServer, Listing, list_servers};
pub use documentation::{json_schema, packaged_configuration};
pub use error::ConfigError;
pub use file_permissions::{ReadableSecret, readable_secrets};
pub use files::{ExposeMode, Files, config_path};
pub use package_spec::{InvalidPackage, PackageSpec};
pub use placeholders::{Environment, PlaceholderError};
pub use policy_files::{
    editable_policy, find_policy, load_policy, policy_path, restrict_by_requirements, write_policy,
};
pub use python_environment::{environment_in_use, managed_directory};
pub use requirements::{RequiredParts, SystemEngine};
pub use sandbox_choice::{InvalidReason, NoSandboxReason, SandboxChoice};
pub use search_paths::{find_program, installed_file};
pub use secret_detection::{
    looks_secret, replace_secrets, replace_secrets_in_arguments, secrets_directory, store_secret,
};
pub use server_entry::ServerEntry;
pub use server_table::to_server_table;
pub use settings::{Settings, apply_requirements};
pub use setup_digest::{Setup, SetupError, SetupParts};
pub use shell_quoting::shell_quote;
pub use single_tables::{
    PageSettings, ResultBounds, load_audit_settings, load_audit_settings_for_edit, load_forward_settings,
    load_page_settings, load_result_bounds, load_sink_settings, load_skill_settings, load_token_file,
    log_format,
};
pub use skip_reason::SkipReason;
pub use skipped_server::SkippedServer;
pub use unique_servers::normalize_server_name;
pub use unresolved_server::UnresolvedServer;
