//! The audit log: which code ran, which calls it requested, how they were decided, and how they ended.
//!
//! # Parts
//!
//! - [`Audit`] is the log of one process. `destination.rs` sends its records to files or to the sink; `chain_writer.rs`
//!   appends them to files, signs checkpoints, and records gaps after failed writes; `hash_chain.rs` writes one record as
//!   text with the hash of the line before it.
//! - [`Record`] and [`AuditEvent`] are what is recorded. `administrative_records.rs` has reloads, refused runs, tokens,
//!   logins and accepted definitions, and `administrative_acts.rs` has changes of files, authentications, ended runs,
//!   servers, processes and actions of the page. `severity.rs` decides their severity, and `recorded_files.rs` finds
//!   files that something else than Lockhouse has changed. `call_arguments.rs` and `redaction.rs` describe arguments.
//! - `segment*.rs`: a segment is the file of one process on one day. `segment_index.rs` is the index of all segments,
//!   under a lock.
//! - `signing.rs` has the keys. A key signs one record and names the next key; `log_key.rs` keeps that of the index in a file,
//!   and `log_rekey.rs` begins a new one. `log_head.rs` reads the head of the log for a witness.
//! - `delivery.rs` has what the log knows of its delivery to other machines, which another crate does.
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
mod canonical_json;
mod chain_writer;
mod delivery;
mod destination;
pub mod digest;
mod hash_chain;
mod local_user;
mod log_head;
mod log_key;
mod log_rekey;
mod maintenance;
mod moment;
pub mod ocsf;
pub mod program_store;
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
use lockhouse_messages::RequestClaims;
use lockhouse_policies::{CallTarget, ClientName, Effect, PermittedCall, SourceLocation};
use lockhouse_protocol::{CallId, CallOutcome, ExecutionId, Language, ServerName};
use tokio::sync::Notify;

pub use administrative_acts::{Authentication, Change, ChangeTarget, Channel, Ended, ServerStep};
pub use administrative_records::{ActiveDigests, LoginStep, RefusedRun, Reload, ReloadCause, TokenChange};
pub use delivery::{Delivery, DeliveryStatus, UndeliveredOutcome, UndeliveredRecords};
pub use local_user::LocalUser;
pub use log_head::{HeadError, HeadSegment, LogHead, present_key};
pub use log_key::{key_files, public_keys};
pub use log_rekey::{NewLogKey, RekeyError, rekey};
pub use record::{ADMINISTRATIVE_EVENTS, AdministrativeEvent, Arguments, AuditEvent, CallIdentity, Record};
pub use record_throttle::RecordThrottle;
pub use recorded_files::{ConfiguredFile, Edit, PendingChange};
pub use redaction::DEFAULT_REDACTED_NAMES;
pub use segment::{SegmentName, segments};
pub use segment_follower::{NewRecords, SegmentFollower};
pub use severity::Severity;
pub use signing::{KeyError, PublicKey};
pub use sink::{InvalidSinkAddress, Sink, SinkAddress, SinkError, SinkSettings};

use data_encoding::HEXLOWER;
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
    /// The audit sink, which writes the log instead of this process. `None` if there is none.
    pub sink: Option<SinkAddress>,
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

/// Identifies a call to an upstream server in the audit records about that call.
#[derive(Clone, Copy, Debug)]
pub struct CallSubject<'a> {
    pub execution: ExecutionId,
    /// Id of the request that makes the call, assigned by the worker.
    pub call: CallId,
    /// ID of the call, which all audit records about the call share.
    pub id: uuid::Uuid,
    /// Name of the AI client for which the call is made. `None` if the client has no name.
    pub client: Option<&'a ClientName>,
    pub server: &'a ServerName,
    /// The tool, resource, prompt or list that was requested.
    pub item: &'a CallTarget,
    /// Number of the program's line that made the call, as reported by the worker. `None` if unknown.
    pub line: Option<u32>,
}

/// A submitted program that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    pub language: Language,
    pub code: &'a str,
    pub servers: &'a [ServerName],
    /// Name of the session in which the program runs, or `None` if it runs without a session.
    pub session: Option<&'a str>,
    /// SHA-256 digest of the active policy. `None` if there is no policy.
    pub policy: Option<&'a str>,
    /// The ids that the AI client gave the request.
    pub claims: &'a RequestClaims,
}

/// The code of a skill (a saved function) that a running program is about to load.
#[derive(Clone, Copy, Debug)]
pub struct SkillCode<'a> {
    pub name: &'a str,
    pub version: u32,
    pub language: Language,
    pub code: &'a str,
    /// SHA-256 of the skill's code.
    pub digest: &'a str,
    /// Directory of the skill, if it is a shared skill. `None` if the skill belongs to the AI client.
    pub shared: Option<&'a str>,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionEnd {
    pub status: &'static str,
    /// Who or what ended the execution before its program ended by itself, such as `client` or `deadline`. `None` if
    /// the program ended by itself.
    pub ended_by: Option<&'static str>,
    pub wall: Duration,
    pub cpu: Option<Duration>,
    pub calls: usize,
    /// Size in bytes of what the answer shows: value and output.
    pub answer_bytes: usize,
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

    /// Records that a program is about to run, and stores the program if the configuration enables that.
    pub async fn execution(
        self: &Arc<Self>,
        execution: ExecutionId,
        client: Option<&ClientName>,
        program: Program<'_>,
    ) -> Result<(), AuditError> {
        let Program { language, code, servers, session, policy, claims } = program;
        let hash = HEXLOWER.encode(&hash_chain::hash(code.as_bytes()));
        let kept = self.keep_code(language, code, &hash).await;
        let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
        let body = RecordBody::new("execution").text("execution", &execution.to_string());
        let body = body.text_if("client", client.map(ClientName::as_str)).text("language", language.as_str());
        let body = body.json("servers", &serde_json::to_string(&names).unwrap_or_default());
        let body = self.with_claims(body.text_if("session", session), claims);
        let body = body.text("code", &hash).number("code_bytes", code.len());
        self.append(&body.text_if("code_kept", kept.as_deref()).text_if("policy", policy))
    }

    /// Adds the ids that the AI client gave its request, as the member `claimed`.
    fn with_claims(&self, body: RecordBody, claims: &RequestClaims) -> RecordBody {
        let claimed: serde_json::Map<String, serde_json::Value> = claims
            .named()
            .map(|(name, claim)| (name.to_owned(), self.redaction.read().without_secrets(claim).into()))
            .collect();
        if claimed.is_empty() { body } else { body.json("claimed", &serde_json::json!(claimed).to_string()) }
    }

    /// Records that a running program is about to load a skill (a saved function), and stores the skill's code if the
    /// configuration enables that.
    pub async fn skill(
        self: &Arc<Self>,
        execution: ExecutionId,
        client: Option<&ClientName>,
        skill: SkillCode<'_>,
    ) -> Result<(), AuditError> {
        let SkillCode { digest: hash, shared, .. } = skill;
        let kept = self.keep_code(skill.language, skill.code, hash).await;
        let body = RecordBody::new("skill").text("execution", &execution.to_string());
        let body = body.text_if("client", client.map(ClientName::as_str)).text("skill", skill.name);
        let body = body.number("version", skill.version).text("language", skill.language.as_str());
        let body = body.text("code", hash).number("code_bytes", skill.code.len());
        let body = body.text_if("code_kept", kept.as_deref());
        self.append(&body.text_if("directory", shared))
    }

    /// Stores the code of a program or skill, with the SHA-256 `hash`, in a file beside the audit log, if the
    /// configuration enables that. Returns the SHA-256 of the stored text, which differs from `hash` if secrets were
    /// redacted, or `None` if nothing was stored. The file is created on a blocking thread, because creating a file may
    /// wait for the journal of the file system.
    async fn keep_code(self: &Arc<Self>, language: Language, code: &str, hash: &str) -> Option<String> {
        if !self.settings.code {
            return None;
        }
        let text = self.redaction.read().without_secrets(code).into_owned();
        let hash =
            if text == code { hash.to_owned() } else { HEXLOWER.encode(&hash_chain::hash(text.as_bytes())) };
        if let Destination::Files { programs, .. } = &self.destination
            && programs.is_kept(language, &hash)
        {
            return Some(hash);
        }
        let audit = self.clone();
        let keep = move || {
            let kept = match &audit.destination {
                Destination::Files { programs, .. } => programs.keep(language, &text, &hash),
                Destination::Sink { programs, .. } => programs.lock().keep(language, &text),
            };
            kept.map(|()| hash)
        };
        match tokio::task::spawn_blocking(keep).await.map_err(std::io::Error::other).flatten() {
            Ok(hash) => Some(hash),
            Err(error) => {
                tracing::error!("cannot store a program beside the audit log: {error}");
                None
            }
        }
    }

    /// Records the end of an execution, with its status, its wall-clock and CPU time, its number of calls and the size
    /// of its answer.
    pub fn end(&self, execution: ExecutionId, end: ExecutionEnd) -> Result<(), AuditError> {
        let ExecutionEnd { status, ended_by, wall, cpu, calls, answer_bytes } = end;
        let body = RecordBody::new("end").text("execution", &execution.to_string()).text("status", status);
        let body = body.text_if("ended_by", ended_by).number("wall_ms", millis(wall));
        let body = match cpu {
            Some(cpu) => body.number("cpu_ms", millis(cpu)),
            None => body,
        };
        self.append(&body.number("calls", calls).number("answer_bytes", answer_bytes))
    }

    /// Records a permitted call before it is made, with the policy rule that permits it. `approval` is the scope of the
    /// approval, if one was required. `policy` is the digest of the policy; only the record of a direct call (one
    /// without code) has it.
    ///
    /// # Errors
    /// [`AuditError`] if the record cannot be written, or if the log is not delivered in time. The call must then not be
    /// made.
    pub fn call(
        &self,
        subject: CallSubject<'_>,
        call: &PermittedCall,
        approval: Option<&str>,
        policy: Option<&str>,
    ) -> Result<(), AuditError> {
        self.check_delivery()?;
        let sent = call.everything_sent();
        let canonical = canonical_json::canonical(&sent);
        let body = self
            .call_body("call", subject)
            .json("arguments", &call_arguments::shape(&sent, &self.redaction.read()));
        let body = body.text("arguments_hash", &HEXLOWER.encode(&self.salt.hash(&canonical)));
        let mut body = body.number("arguments_bytes", canonical.len());
        if self.settings.values {
            let kept = call_arguments::values(&sent, &self.redaction.read());
            body = body.json("values", &kept.json).number("values_exact", kept.exact);
        }
        let decision = if approval.is_some() { "ask" } else { "allow" };
        let body = body.text("decision", decision).text("rule", &call.rule().to_string());
        self.append(&body.text_if("approval", approval).text_if("policy", policy))
    }

    /// Records that an approver was asked about a call (outcome `asked`), or how the request for approval ended.
    /// `digest` is the digest of the call. `through` is the channel of the question or the answer, and `by` is the user
    /// of this machine who answered, if known.
    pub fn approval(
        &self,
        subject: CallSubject<'_>,
        digest: &str,
        (through, by): (Option<&str>, Option<LocalUser>),
        outcome: &str,
    ) -> Result<(), AuditError> {
        let body = self.call_body("approval", subject).text("digest", digest).text_if("through", through);
        let body = body.text("outcome", outcome);
        self.append(&match by {
            Some(person) => person.write_to(body),
            None => body,
        })
    }

    /// Records a call that was denied (`decision` is `Deny`), or that required approval and was not approved (`Ask`).
    /// `rule` is the location of the policy rule that led to this, if there is one.
    pub fn denial(
        &self,
        subject: CallSubject<'_>,
        decision: Effect,
        reason: &str,
        rule: Option<&SourceLocation>,
    ) -> Result<(), AuditError> {
        let rule = rule.map(SourceLocation::to_string);
        let body = self.call_body("denial", subject).text("decision", decision.as_str());
        let body = body.text("reason", &self.redaction.read().without_secrets(reason));
        self.append(&body.text_if("rule", rule.as_deref()))
    }

    /// Records the outcome of a call, with its duration and the size of its result.
    pub fn outcome(
        &self,
        subject: CallSubject<'_>,
        outcome: CallOutcome,
        took: Duration,
        result_bytes: usize,
    ) -> Result<(), AuditError> {
        let body =
            self.call_body("outcome", subject).text("outcome", outcome.as_str()).number("ms", millis(took));
        self.append(&body.number("result_bytes", result_bytes))
    }

    /// Records that an upstream server asked the user a question (elicitation), and how the question ended. The texts
    /// of the question and of the answer are not recorded.
    pub fn question(
        &self,
        execution: ExecutionId,
        server: &ServerName,
        outcome: &str,
    ) -> Result<(), AuditError> {
        let body = RecordBody::new("question").text("execution", &execution.to_string());
        self.append(&body.text("server", server.as_str()).text("outcome", outcome))
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

    fn call_body(&self, event: &'static str, subject: CallSubject<'_>) -> RecordBody {
        let CallSubject { execution, call: _, id, client, server, item, line } = subject;
        let mut buffer = uuid::Uuid::encode_buffer();
        let body = RecordBody::new(event).text("execution", &execution.to_string());
        let body = body.text("call", id.hyphenated().encode_lower(&mut buffer));
        let body = body.text_if("client", client.map(ClientName::as_str)).text("server", server.as_str());
        let body = body.text(item.kind(), &self.redaction.read().without_secrets(item.as_str()));
        body.number_if("line", line)
    }

    fn append(&self, body: &RecordBody) -> Result<(), AuditError> {
        let started = Instant::now();
        let appended = self.destination.append(body);
        telemetry::record_stage(Stage::Audit, started.elapsed());
        appended.inspect_err(|_| telemetry::count_audit_failure())?;
        self.written.notify_one();
        Ok(())
    }

    /// Returns a text in which the secrets of the configuration are replaced, as in the audit log.
    pub fn without_secrets(&self, text: &str) -> String {
        self.redaction.read().without_secrets(text).into_owned()
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
