//! The audit log: what code ran, what it asked for, what was decided about it, and what came of it.
//!
//! Each process writes a chain of lines of its own, signed at intervals. A record is written before a call goes out, and a
//! call whose record cannot be written is not made. Values of arguments are not in it unless somebody configures that, and
//! results never are.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod administration;
mod arguments;
pub mod code;
pub mod digest;
mod follow;
mod index;
mod keeper;
mod line;
pub mod ocsf;
mod person;
pub mod read;
mod record;
mod redaction;
mod refusals;
mod retention;
mod segment;
mod sign;
pub mod verify;
mod writer;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::borrow::Cow;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lockhouse_base::language::Language;
use lockhouse_base::telemetry::{self, Stage};
use lockhouse_base::{files, secrets};
use lockhouse_policies::{ClientName, Effect, Item, PermittedCall, Place};
use lockhouse_protocol::{CallId, ExecutionId, ServerName};
use tokio::sync::Notify;

pub use administration::{InForceDigests, LoginStep, RefusedRun, Reload, ReloadCause, TokenChange};
pub use follow::{Follower, News};
pub use person::Person;
pub use record::{About, Administration, Arguments, Event, Record};
pub use redaction::REDACTED;
pub use segment::{SegmentName, segments};
pub use sign::{PublicKey, SecretError, key_files};

use code::Store;
use data_encoding::HEXLOWER;
use line::Body;
use redaction::Redaction;
use refusals::Refusals;
use sign::Secrets;
use writer::{Intervals, Writer};

/// Why a record is missing.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log {path} cannot be written: {source}")]
    Unwritten { path: PathBuf, source: std::io::Error },
    #[error("the audit log cannot be signed: {0}")]
    NoSecrets(#[from] SecretError),
}

/// Where the log is kept, and what is in it.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    pub directory: PathBuf,
    /// Of the key and the salt.
    pub keys: PathBuf,
    /// Whether the values of arguments are kept.
    pub values: bool,
    /// Names of arguments whose values are never kept.
    pub redact: Vec<String>,
    /// Whether programs are kept.
    pub code: bool,
    pub keep_days: u32,
}

/// One process's chain.
#[derive(Debug)]
pub struct Audit {
    settings: AuditSettings,
    secrets: Arc<Secrets>,
    redaction: RwLock<Redaction>,
    programs: Store,
    refusals: Mutex<Refusals>,
    writer: Mutex<Writer>,
    written: Arc<Notify>,
}

/// What a call is known by in the log.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub execution: ExecutionId,
    /// As its worker counts it.
    pub call: CallId,
    /// As the log names it.
    pub id: uuid::Uuid,
    /// The AI client that the code came from.
    pub client: Option<&'a ClientName>,
    pub server: &'a ServerName,
    /// A tool, or what else was asked for.
    pub item: &'a Item,
    /// Of the program, as its worker says.
    pub line: Option<u32>,
}

/// A program that is about to run.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    pub language: Language,
    pub code: &'a str,
    pub servers: &'a [ServerName],
    /// The name of its session.
    pub session: Option<&'a str>,
    /// The hash of the policy that is in force for it; none without a policy.
    pub policy: Option<&'a str>,
}

/// The code of a skill that running code is about to get.
#[derive(Clone, Copy, Debug)]
pub struct SkillCode<'a> {
    pub name: &'a str,
    pub version: u32,
    pub language: Language,
    pub code: &'a str,
    /// The hash of the code.
    pub digest: &'a str,
    /// The directory that it is from, where that is a shared one.
    pub shared: Option<&'a str>,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub status: &'static str,
    pub wall: Duration,
    pub cpu: Option<Duration>,
    pub calls: usize,
}

impl Audit {
    /// Makes the directory, which only its owner can read, and finds the key. No file is begun before there is a record.
    pub fn open(settings: AuditSettings) -> Result<Arc<Self>, AuditError> {
        let directory = settings.directory.clone();
        let is_new = !directory.exists();
        let usable = files::private_directory(&directory).and_then(|()| {
            if is_new {
                files::give_to_owner_of_directory(&std::fs::File::open(&directory)?, &directory)?;
            }
            use nix::unistd::{AccessFlags, access};
            Ok(access(&directory, AccessFlags::W_OK | AccessFlags::X_OK)?)
        });
        usable.map_err(|source| AuditError::Unwritten { path: directory.clone(), source })?;
        let secrets = Arc::new(Secrets::of(&settings.keys)?);
        let programs = Store::new(directory.clone());
        let writer = Writer::new(directory, secrets.clone(), Intervals::default());
        let redaction = RwLock::new(Redaction::new(settings.redact.clone()));
        let written = Arc::new(Notify::new());
        let (writer, refusals) = (writer.into(), Mutex::default());
        let audit = Arc::new(Self { settings, secrets, redaction, programs, refusals, writer, written });
        tokio::spawn(keeper::keep_up(Arc::downgrade(&audit), audit.written.clone()));
        Ok(audit)
    }

    /// What the configuration says must be seen nowhere.
    pub fn keep_out(&self, secrets: secrets::Secrets) {
        self.redaction.write().set_secrets(secrets);
    }

    /// Before code runs.
    pub fn execution(
        &self,
        execution: ExecutionId,
        client: Option<&ClientName>,
        program: Program<'_>,
    ) -> Result<(), AuditError> {
        let Program { language, code, servers, session, policy } = program;
        let hash = HEXLOWER.encode(&line::hash(code.as_bytes()));
        let kept = self.keep_code(language, code, &hash);
        let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
        let body = Body::new("execution").text("execution", &execution.to_string());
        let body = body.text_if("client", client.map(ClientName::as_str)).text("language", language.as_str());
        let body = body.json("servers", &serde_json::to_string(&names).unwrap_or_default());
        let body = body.text_if("session", session);
        let body = body.text("code", &hash).number("code_bytes", code.len());
        self.append(&body.text_if("code_kept", kept.as_deref()).text_if("policy", policy))
    }

    /// Before running code gets the code of a skill.
    pub fn skill(
        &self,
        execution: ExecutionId,
        client: Option<&ClientName>,
        skill: SkillCode<'_>,
    ) -> Result<(), AuditError> {
        let SkillCode { digest: hash, shared, .. } = skill;
        let kept = self.keep_code(skill.language, skill.code, hash);
        let body = Body::new("skill").text("execution", &execution.to_string());
        let body = body.text_if("client", client.map(ClientName::as_str)).text("skill", skill.name);
        let body = body.number("version", skill.version).text("language", skill.language.as_str());
        let body = body.text("code", hash).number("code_bytes", skill.code.len());
        let body = body.text_if("code_kept", kept.as_deref());
        self.append(&body.text_if("directory", shared))
    }

    /// Keeps a program beside the log, where that is configured. Gives the hash of the text that is kept.
    fn keep_code(&self, language: Language, code: &str, hash: &str) -> Option<String> {
        if !self.settings.code {
            return None;
        }
        let redaction = self.redaction();
        let text = redaction.without_secrets(code);
        let hash = match &text {
            Cow::Borrowed(_) => hash.to_owned(),
            Cow::Owned(text) => HEXLOWER.encode(&line::hash(text.as_bytes())),
        };
        match self.programs.keep(language, &text, &hash) {
            Ok(()) => Some(hash),
            Err(error) => {
                tracing::error!("a program cannot be kept beside the audit log: {error}");
                None
            }
        }
    }

    /// After code has run.
    pub fn end(&self, execution: ExecutionId, end: End) -> Result<(), AuditError> {
        let End { status, wall, cpu, calls } = end;
        let body = Body::new("end").text("execution", &execution.to_string()).text("status", status);
        let body = body.number("wall_ms", millis(wall));
        let body = match cpu {
            Some(cpu) => body.number("cpu_ms", millis(cpu)),
            None => body,
        };
        self.append(&body.number("calls", calls))
    }

    /// Before a permitted call: which rule allowed it, and which approval if it needed one. A call that is an execution of its
    /// own has the hash of its policy.
    pub fn call(
        &self,
        subject: Subject<'_>,
        call: &PermittedCall,
        approval: Option<&str>,
        policy: Option<&str>,
    ) -> Result<(), AuditError> {
        let canonical = arguments::canonical(call.arguments());
        let body = self
            .about("call", subject)
            .json("arguments", &arguments::shape(call.arguments(), &self.redaction()));
        let body = body.text("arguments_hash", &HEXLOWER.encode(&self.secrets.hash(&canonical)));
        let mut body = body.number("arguments_bytes", canonical.len());
        if self.settings.values {
            let kept = arguments::values(call.arguments(), &self.redaction());
            body = body.json("values", &kept.json).number("values_exact", kept.exact);
        }
        let decision = if approval.is_some() { "ask" } else { "allow" };
        let body = body.text("decision", decision).text("rule", &call.rule().to_string());
        self.append(&body.text_if("approval", approval).text_if("policy", policy))
    }

    /// A person was asked about a call: what binds the answer to it, how they were reached, what became of it, and which user
    /// of this machine answered, if it was one.
    pub fn approval(
        &self,
        subject: Subject<'_>,
        digest: &str,
        (through, by): (Option<&str>, Option<Person>),
        outcome: &str,
    ) -> Result<(), AuditError> {
        let body = self.about("approval", subject).text("digest", digest).text_if("through", through);
        let body = body.text("outcome", outcome);
        self.append(&match by {
            Some(person) => person.tell(body),
            None => body,
        })
    }

    /// A call that is not made: the policy denies it, or a person was asked and it was not approved. With the line of the
    /// policy that refuses it, where there is one.
    pub fn denial(
        &self,
        subject: Subject<'_>,
        decision: Effect,
        reason: &str,
        rule: Option<&Place>,
    ) -> Result<(), AuditError> {
        let rule = rule.map(Place::to_string);
        let body = self.about("denial", subject).text("decision", decision.as_str());
        let body = body.text("reason", &self.redaction().without_secrets(reason));
        self.append(&body.text_if("rule", rule.as_deref()))
    }

    /// After a call.
    pub fn outcome(
        &self,
        subject: Subject<'_>,
        outcome: &str,
        took: Duration,
        result_bytes: usize,
    ) -> Result<(), AuditError> {
        let body = self.about("outcome", subject).text("outcome", outcome).number("ms", millis(took));
        self.append(&body.number("result_bytes", result_bytes))
    }

    /// A question of a server to a person, and whether they answered. What was asked and answered is not in it.
    pub fn question(
        &self,
        execution: ExecutionId,
        server: &ServerName,
        outcome: &str,
    ) -> Result<(), AuditError> {
        let body = Body::new("question").text("execution", &execution.to_string());
        self.append(&body.text("server", server.as_str()).text("outcome", outcome))
    }

    /// Whether a record could be written now. After one could not, it is tried in a file of its own.
    pub fn is_writable(&self) -> bool {
        use nix::unistd::{AccessFlags, access};
        let directory = &self.settings.directory;
        if access(directory, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
            return false;
        }
        !self.writer().lacks_records() || probe(directory).is_ok()
    }

    /// Signs everything, and ends the file.
    pub fn close(&self) {
        let mut writer = self.writer();
        let has_begun = writer.take_begun();
        writer.close(SystemTime::now(), "exit");
        drop(writer);
        self.sync_programs();
        if has_begun {
            self.expire();
        }
    }

    fn sync_programs(&self) {
        if let Err(error) = self.programs.sync() {
            tracing::error!("programs beside the audit log did not reach the disk: {error}");
        }
    }

    fn expire(&self) {
        let AuditSettings { directory, keep_days, .. } = &self.settings;
        if let Err(error) = retention::expire(directory, &self.secrets, *keep_days, SystemTime::now()) {
            tracing::warn!("old parts of the audit log in {} stay: {error}", directory.display());
        }
    }

    fn about(&self, event: &'static str, subject: Subject<'_>) -> Body {
        let Subject { execution, call: _, id, client, server, item, line } = subject;
        let mut buffer = uuid::Uuid::encode_buffer();
        let body = Body::new(event).text("execution", &execution.to_string());
        let body = body.text("call", id.hyphenated().encode_lower(&mut buffer));
        let body = body.text_if("client", client.map(ClientName::as_str)).text("server", server.as_str());
        let body = body.text(item.kind(), &self.redaction().without_secrets(item.as_str()));
        body.number_if("line", line)
    }

    fn append(&self, body: &Body) -> Result<(), AuditError> {
        let started = Instant::now();
        let mut writer = self.writer();
        let appended = writer.append(SystemTime::now(), body);
        telemetry::took(Stage::Audit, started.elapsed());
        appended.map_err(|source| {
            telemetry::unrecorded();
            AuditError::Unwritten { path: writer.path(), source }
        })?;
        self.written.notify_one();
        Ok(())
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock()
    }

    fn redaction(&self) -> RwLockReadGuard<'_, Redaction> {
        self.redaction.read()
    }
}

/// As much as a record of a large call takes.
const PROBE_BYTES: usize = 16 * 1024;

/// Writes a file, as a record would be, and removes it.
fn probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!(".probe-{}", std::process::id()));
    // Whatever is there, and wherever it leads: a new file is written, and nothing else.
    let _ = std::fs::remove_file(&path);
    let opened = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
    let written = opened.and_then(|mut file| file.write_all(&[b' '; PROBE_BYTES]));
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}

fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
