//! Foundations of the supervisor's crates: files, JSON, secrets, telemetry, the lifecycle, identities, and checks of
//! peers.
//!
//! # Parts
//!
//! - [`principal`] is the identity of an AI client. Sessions, runs and results belong to an owner.
//! - [`lifecycle`] is the state of the process: ready, serving, draining, closed.
//! - [`files`], [`text_files`], [`directories`], [`path_trust`], [`access_list`]: Lockhouse's own files, files that
//!   people write, and whether another account can change a path or lead it elsewhere. [`delegated_files`] lets a
//!   process of root write files for a process of another account (`lockhouse --account USER`). [`own_places`] are
//!   places that no program and no sandboxed server gets.
//! - [`json`] counts the values of JSON text before a tree is parsed (`json/raw_text.rs` scans without a tree), and
//!   truncates long values along their structure.
//! - [`secrets`] redacts configured values from what servers print. [`child_stderr`] reads the standard error of child
//!   processes.
//! - [`telemetry`] has one function for each metric, the log, and the spans of traces.
//! - [`listen`], [`http_checks`], [`tcp_connection`], [`unix_accept`], [`confined_mark`]: what every server of the
//!   product checks about a request and about who is at the other end of a connection. [`localhost_listener`] and
//!   [`browser_opening`] let a browser of this host in.
//! - [`audit_files`] has the names of the files of an audit log, which the cluster copies.
//! - [`own_host`] is what this process is in a cluster, and [`fence`] says whether a host may act.
//! - [`percent`], [`plain_text`], [`line_buffer`], [`representable_time`], [`log_throttle`] and the limiters of rates are small parts.
//!
//! # Invariants
//!
//! - No logic of the product is here: nothing decides about a run, a call or a server.
//! - Nothing here accepts a connection of a sandboxed upstream server. Its processes carry a mark that they cannot
//!   remove.
//! - No file of Lockhouse is opened through a symbolic link, replaced in steps, or readable for others.
//! - No text from a peer is parsed into a tree before its values were counted.
//! - No control character reaches a log line, and no configured secret reaches a log line or an error message.
//!
//! # Decisions
//!
//! - Two bytes of JSON can take two hundred in a tree. So results, values and definitions stay text in the supervisor;
//!   only outlines are parsed, and arguments after their values were counted.
//! - A request is charged when its cost is known. The charge may exceed the client's allowance; its requests are then
//!   refused until the excess has been paid off. If the cost were charged in parts that can each be refused, a client
//!   that retries as instructed could be refused for ever.
//! - Spans for OpenTelemetry have a target of their own, which the log ignores, so log lines do not change with traces.
//!   The exporter is behind the feature `otel`, because it is a second HTTP client in the process that holds the
//!   secrets.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

pub mod access_list;
pub mod audit_files;
pub mod browser_opening;
pub mod child_stderr;
pub mod confined_mark;
pub mod delegated_files;
pub mod directories;
pub mod expiring_map;
pub mod fence;
pub mod files;
pub mod host_name;
pub mod http_checks;
pub mod json;
pub mod keyed_limiter;
pub mod lifecycle;
pub mod line_buffer;
pub mod listen;
pub mod localhost_listener;
pub mod log_throttle;
mod new_file;
pub mod own_host;
pub mod own_places;
pub mod path_trust;
pub mod percent;
pub mod plain_text;
pub mod principal;
pub mod process_group;
pub mod process_roles;
pub mod representable_time;
pub mod sealing_key;
pub mod secrets;
pub mod tcp_connection;
pub mod telemetry;
pub mod text_files;
pub mod token_bucket;
pub mod unix_accept;
pub mod url_protection;
