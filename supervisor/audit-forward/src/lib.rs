//! Delivers the audit log to other machines while it is written: to the systemd journal, to a syslog server over TLS, and
//! to an OpenTelemetry collector.
//!
//! # Parts
//!
//! - [`Forwarding`] is a thread of this process with one task for each [`Destination`]. `forwarder.rs` is that task: it
//!   forwards while it holds the destination's lock, and measures how far another process is behind otherwise.
//! - `backlog.rs` knows the segments and how much of each was delivered; `segment_reader.rs` reads the next batch of one.
//!   `cursor_file.rs` stores what was delivered.
//! - `active_forwarder.rs` sends batches, moves the cursor, and waits after failures (`backoff.rs`).
//! - `receiver.rs` is the connection to a destination: `journald.rs`, `syslog.rs` or `otlp.rs`. `message.rs` writes a
//!   record in the configured format; `tls.rs` has the certificates.
//! - [`DestinationEntry`] is a destination as it is configured, and [`Credentials`] are its resolved secrets.
//! - [`report`] tells for each destination what was delivered, for `lockhouse audit forward`.
//!
//! # Invariants
//!
//! - A record is delivered at least once. The cursor of a destination moves past a record only after the destination has
//!   acknowledged it, or, for syslog, which acknowledges nothing, after `syslog.rs` found that its machine received it.
//! - The records of a segment are delivered in their order.
//! - What cannot be delivered is recorded in the audit log, and this record is delivered like any other.
//! - Nothing waits for a destination, unless the configuration requires delivery: then calls do.
//! - Nothing is queued in memory beyond one batch: the log itself is the queue.
//! - No response of a destination is trusted: its size and its time are limited, and no redirect is followed.
//!
//! # Decisions
//!
//! - One process forwards to a destination, the holder of a lock on a file that the kernel releases when the process ends.
//!   All others are ready to continue, so nobody has to be started.
//! - The tasks have a thread and a runtime of their own: they read files and wait for the disk.
//! - Each process measures how far a destination is behind from the log and the cursor alone. It believes no other
//!   process.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod acceptance;
mod active_forwarder;
mod backlog;
mod backoff;
mod credentials;
mod cursor_file;
mod delivery_error;
mod destination;
mod destination_entry;
mod forwarder;
mod forwarding;
mod journald;
mod message;
mod otlp;
mod receiver;
pub mod report;
mod segment_reader;
mod state_files;
mod syslog;
mod tls;

use std::path::PathBuf;

use serde::Deserialize;

pub use credentials::{Credentials, InvalidHeader};
pub use destination::{Destination, DestinationError};
pub use destination_entry::{ClientIdentity, DestinationEntry};
pub use forwarding::{ForwardError, Forwarding};

/// Maximum number of destinations to which the audit log is forwarded.
/// Bound: the audit log.
pub const DESTINATIONS_MAX: usize = 8;

/// The settings of forwarding.
#[derive(Clone, Debug)]
pub struct ForwardSettings {
    pub destinations: Vec<ForwardDestination>,
    pub format: ForwardFormat,
    /// A file with the certificates, in PEM format, that the destinations' certificates must be issued by. `None` for the
    /// certificates that the system trusts.
    pub ca: Option<PathBuf>,
    /// The directory of the audit log.
    pub log: PathBuf,
    /// The directory of persistent state, in which the cursors are stored.
    pub state: PathBuf,
    pub accounts: SegmentAccounts,
}

/// A destination with what identifies this machine to it.
#[derive(Clone, Debug)]
pub struct ForwardDestination {
    pub destination: Destination,
    pub credentials: Credentials,
}

/// What says whose records a segment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentAccounts {
    /// The owner of its file, who has written it.
    Owner,
    /// Its first record: the audit sink has written the file, and states there which account connected to it.
    FirstRecord,
}

/// The form in which syslog servers and the journal receive records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardFormat {
    /// The record as the audit log has it, with its segment and its Unix user.
    #[default]
    Json,
    /// An event of the Open Cybersecurity Schema Framework, with the record as `raw_data`.
    Ocsf,
}
