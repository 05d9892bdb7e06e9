//! The audit log: which code ran, which calls it requested, how they were decided, and how they ended.
//!
//! # Parts
//!
//! - [`Audit`] is the log of one process. `destination.rs` sends its records to files or to the sink; `chain_writer.rs`
//!   appends them to files, signs checkpoints, and records gaps after failed writes; `hash_chain.rs` writes one record as
//!   text with the hash of the line before it.
//! - [`Record`] and [`AuditEvent`] are what is recorded. `execution_records.rs` has programs and skills, `call_records.rs` has
//!   approvals, calls and their outcomes, `administrative_records.rs` has reloads, refused runs, tokens,
//!   logins and accepted definitions, and `administrative_acts.rs` has changes of files, authentications, ended runs,
//!   servers, processes and actions of the page. `severity.rs` decides their severity, and `recorded_files.rs` finds
//!   files that something else than Lockhouse has changed. `call_arguments.rs` and `redaction.rs` describe arguments.
//! - `segment*.rs`: a segment is the file of one process on one day. `segment_index.rs` is the index of all segments,
//!   under a lock.
//! - `signing.rs` has the keys. A key signs one record and names the next key; `log_key.rs` keeps that of the index in a file,
//!   and `log_rekey.rs` begins a new one. `log_head.rs` reads the head of the log for a witness.
//! - `delivery.rs` has what the log knows of its delivery to other machines, which another crate does.
//! - `client_names.rs` has the names of clients for records that have ids in their place.
//! - `maintenance.rs` syncs, signs and expires segments outside of the path of calls, by the log's own age
//!   (`moment.rs`).
//! - `sink.rs`: a process of another account can write the log for all engines of a host.
//! - [`program_store`] keeps submitted programs beside the log. [`reader`] and [`SegmentFollower`] read the records of
//!   all processes, [`verify`] finds tampering, and [`ocsf`] converts records to another schema.
//!
//! # Invariants
//!
//! - No call is made without a record. The record is written before the call is sent; if it cannot be written, the call
//!   is not made.
//! - No result of a call is recorded.
//! - No value of an argument is recorded, unless the configuration says so, and never one with a redacted name. A
//!   record has names, types and a keyed hash.
//! - No record waits for another process. Processes share only the index, which they write when a segment begins and
//!   ends.
//! - Nothing here takes an id that a client claims for a fact: it is recorded as a claim.
//!
//! # Decisions
//!
//! - The log is one hash chain for each process. A single chain for all would need a lock around each record, and a
//!   reader of the last line.
//! - A record is built as text, member by member, and written in one write(2).
//! - fdatasync and most signatures are done in the background: a call would otherwise wait for the disk.
//! - A segment is created with its first record, under the lock of the index. A holder of that lock sees a consistent
//!   state.
//! - The hash of arguments is keyed, because common arguments could be guessed from a plain hash.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod administrative_acts;
mod administrative_records;
mod call_arguments;
mod call_records;
mod canonical_json;
mod chain_writer;
mod client_names;
mod delivery;
mod destination;
pub mod digest;
mod execution_records;
mod hash_chain;
mod local_user;
mod log_head;
mod log_key;
mod log_rekey;
mod maintenance;
mod moment;
pub mod ocsf;
pub mod program_store;
mod proven_presence;
pub mod reader;
mod record;
mod record_throttle;
mod recorded_files;
mod redaction;
mod retention;
mod segment;
mod segment_append;
mod segment_follower;
mod segment_index;
mod severity;
mod signing;
mod sink;
pub mod verify;

use parking_lot::{Mutex, RwLock};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lockhouse_base::secrets;
use lockhouse_base::telemetry::{self, Stage};
use tokio::sync::Notify;

pub use administrative_acts::{Authentication, Change, ChangeTarget, Channel, Ended, ServerStep};
pub use administrative_records::{ActiveDigests, LoginStep, RefusedRun, Reload, ReloadCause, TokenChange};
pub use call_records::{ApprovalAnswer, CallAuthority, CallSubject};
pub use client_names::NamesById;
pub use delivery::{Delivery, DeliveryStatus, UndeliveredOutcome, UndeliveredRecords};
pub use execution_records::{ExecutionEnd, Program, SkillCode};
pub use local_user::LocalUser;
pub use log_head::{HeadError, HeadSegment, LogHead, present_key};
pub use log_key::{key_files, public_keys};
pub use log_rekey::{NewLogKey, RekeyError, rekey};
pub use proven_presence::ProvenPresence;
pub use record::{ADMINISTRATIVE_EVENTS, AdministrativeEvent, Arguments, AuditEvent, CallIdentity, Record};
pub use record_throttle::RecordThrottle;
pub use recorded_files::{ConfiguredFile, Edit, PendingChange};
pub use redaction::DEFAULT_REDACTED_NAMES;
pub use segment::{SegmentName, segments};
pub use segment_follower::{NewRecords, SegmentFollower};
pub use severity::Severity;
pub use signing::{KeyError, PublicKey};
pub use sink::{InvalidSinkAddress, Sink, SinkAddress, SinkError, SinkSettings};

use destination::{Destination, sync_programs};
use hash_chain::RecordBody;
use moment::Moment;
use redaction::Redaction;
use signing::Salt;

/// Why the audit log could not be opened, or why a record could not be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log {path} cannot be written: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the audit log cannot be signed: {0}")]
    Keys(#[from] KeyError),
    /// A destination of the log is behind by more than the configuration permits.
    #[error(
        "the audit log is not delivered: {destination} {behind}{fault}. forward_within_seconds permits {within} s; see `lockhouse audit forward`"
    )]
    Undelivered { destination: String, behind: String, within: u64, fault: String },
    /// The configuration requires delivery, and this process does not forward the log.
    #[error(
        "the audit log is not delivered: this process does not forward it, and forward_within_seconds requires it"
    )]
    NotForwarded,
    /// A destination to which the audit sink forwards the log is behind by more than the configuration permits. The sink
    /// has not written the record.
    #[error("the audit sink: {reason}")]
    UndeliveredBySink { reason: String },
}

impl AuditError {
    /// Whether records can be written, and a call is refused only because they are not delivered in time.
    pub fn is_about_delivery(&self) -> bool {
        match self {
            Self::Undelivered { .. } | Self::NotForwarded | Self::UndeliveredBySink { .. } => true,
            Self::Write { .. } | Self::Keys(_) => false,
        }
    }
}

/// Settings of the audit log: where it is stored, what is recorded, and for how many days it is kept.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    pub directory: PathBuf,
    /// Directory of the key that signs the audit log, and of the salt for keyed hashes of arguments.
    pub keys: PathBuf,
    /// Whether the values of call arguments are recorded, not only their names, types and keyed hash.
    pub values: bool,
    /// Patterns of argument names whose values are never recorded.
    pub redact: Vec<String>,
    /// Whether submitted programs are stored in files beside the audit log.
    pub code: bool,
    pub keep_days: u32,
    /// Whether records have ids in place of the names of AI clients and their users, so that a name can be erased.
    pub erasable_names: bool,
    /// The audit sink, which writes the log instead of this process. `None` if there is none.
    pub sink: Option<SinkAddress>,
    /// The destinations to which the log must be forwarded, as the configuration names them. Without a sink, this process
    /// forwards it.
    pub forward: Vec<String>,
    /// Maximum age of a record that is not delivered to each destination; calls are refused beyond it. `None` if calls
    /// do not depend on the delivery.
    pub forward_within: Option<Duration>,
}

/// The audit log of one process.
#[derive(Debug)]
pub struct Audit {
    settings: AuditSettings,
    salt: Salt,
    redaction: RwLock<Redaction>,
    refusals: Mutex<RecordThrottle>,
    /// The authentications that were refused, by their channel.
    refused_logins: Mutex<RecordThrottle>,
    /// The authentications that were accepted, by the AI client.
    accepted_logins: Mutex<RecordThrottle>,
    destination: Destination,
    written: Arc<Notify>,
    /// The destinations to which the log is forwarded. Empty until they are known.
    deliveries: OnceLock<Vec<Arc<Delivery>>>,
}

impl Audit {
    /// Opens the audit log: creates its private directory, and loads or creates the signing key and the salt. The first
    /// segment is created with the first record.
    pub fn open(settings: AuditSettings) -> Result<Arc<Self>, AuditError> {
        let destination = Destination::open(&settings)?;
        let salt = Salt::load_or_create(&settings.keys)?;
        let redaction = RwLock::new(Redaction::new(settings.redact.clone()));
        let written = Arc::new(Notify::new());
        let audit = Arc::new(Self {
            settings,
            salt,
            redaction,
            refusals: Mutex::default(),
            refused_logins: Mutex::default(),
            accepted_logins: Mutex::default(),
            destination,
            deliveries: OnceLock::new(),
            written,
        });
        if matches!(audit.destination, Destination::Files { .. }) {
            tokio::spawn(maintenance::run(Arc::downgrade(&audit), audit.written.clone()));
        }
        Ok(audit)
    }

    /// Sets the secrets of the configuration, which are redacted in all later audit records.
    pub fn redact_secrets(&self, secrets: secrets::Secrets) {
        self.redaction.write().set_secrets(secrets);
    }

    /// Returns whether an audit record could be written now. If the last write failed, tests this by writing a file.
    pub fn is_writable(&self) -> bool {
        self.destination.is_writable(&self.settings.directory)
    }

    /// Closes the audit log when the process exits: signs the last records and ends the current segment.
    pub fn close(&self) {
        let (writer, programs) = match &self.destination {
            Destination::Files { writer, programs } => (writer, programs),
            Destination::Sink { records, .. } => return records.lock().close(),
        };
        let mut writer = writer.lock();
        let has_new_segment = writer.take_new_segment();
        writer.close(Moment::now(), "exit");
        drop(writer);
        sync_programs(programs);
        if has_new_segment {
            self.expire();
        }
    }

    fn expire(&self) {
        let AuditSettings { directory, keys, keep_days, .. } = &self.settings;
        if let Err(error) = retention::expire(directory, keys, *keep_days, Moment::now()) {
            tracing::warn!(
                "cannot remove expired segments of the audit log in {}: {error}",
                directory.display()
            );
        }
    }

    fn append(&self, body: &RecordBody) -> Result<(), AuditError> {
        let started = Instant::now();
        let appended = self.destination.append(body);
        telemetry::record_stage(Stage::Audit, started.elapsed());
        appended.inspect_err(|_| telemetry::count_audit_failure())?;
        self.written.notify_one();
        Ok(())
    }

    /// Erases names of clients, so that nobody can tell whose the records are that have their ids. Does nothing, and returns
    /// false, if records have the names themselves.
    ///
    /// # Errors
    /// [`AuditError::Write`] if they may still be there.
    pub fn erase_names(&self, names: &[String]) -> Result<bool, AuditError> {
        if self.settings.erasable_names {
            self.destination.erase_names(names)?;
        }
        Ok(self.settings.erasable_names)
    }

    /// Returns a text in which the secrets of the configuration are replaced, as in the audit log.
    pub fn without_secrets(&self, text: &str) -> String {
        self.redaction.read().without_secrets(text).into_owned()
    }
}
