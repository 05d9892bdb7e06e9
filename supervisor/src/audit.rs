//! The audit log: one JSON object a line, written before a call goes out and after it came back.
//!
//! A call whose record cannot be written is not made. Arguments and results are not in it, only their sizes: they may
//! hold what must not be kept.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lockhouse_policies::{Item, PermittedCall};
use lockhouse_protocol::{CallId, ExecutionId, ServerName};
use serde_json::{Value, json};

/// Why a record is missing.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {path} cannot be written: {source}")]
pub(crate) struct AuditError {
    path: PathBuf,
    source: std::io::Error,
}

/// One process's segment of the log.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
    /// Whether the last record was cut off: the next one then starts on a line of its own.
    torn: AtomicBool,
}

/// What a call is known by in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) execution: ExecutionId,
    pub(crate) call: CallId,
    pub(crate) server: &'a ServerName,
    /// A tool, or what else was asked for.
    pub(crate) item: &'a Item,
}

impl Audit {
    /// Opens this process's segment in `directory`, which only its owner can read.
    pub(crate) fn open(directory: &Path) -> Result<Self, AuditError> {
        let day = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let day = day.split('T').next().unwrap_or_default().to_owned();
        let path = directory.join(format!("{day}-{}.jsonl", std::process::id()));
        let opened = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(&path));
        match opened {
            Ok(file) => Ok(Self { path, file: Mutex::new(file), torn: AtomicBool::new(false) }),
            Err(source) => Err(AuditError { path, source }),
        }
    }

    /// Before a permitted call: which rule allowed it, and which approval if it needed one.
    pub(crate) fn call(
        &self,
        subject: Subject<'_>,
        call: &PermittedCall,
        approval: Option<&str>,
    ) -> Result<(), AuditError> {
        let mut parts = json!({"rule": call.rule().to_string()});
        if let Some(approval) = approval {
            parts["approval"] = approval.into();
        }
        self.write("call", subject, parts)
    }

    /// A person was asked about a call: what binds the answer to it, and what became of it.
    pub(crate) fn approval(
        &self,
        subject: Subject<'_>,
        digest: &str,
        outcome: &str,
    ) -> Result<(), AuditError> {
        self.write("approval", subject, json!({"digest": digest, "outcome": outcome}))
    }

    /// A refused call.
    pub(crate) fn denial(&self, subject: Subject<'_>, reason: &str) -> Result<(), AuditError> {
        self.write("denial", subject, json!({"reason": reason}))
    }

    /// After a call.
    pub(crate) fn outcome(
        &self,
        subject: Subject<'_>,
        outcome: &str,
        took: Duration,
        result_bytes: usize,
    ) -> Result<(), AuditError> {
        let millis = took.as_micros() as f64 / 1000.0;
        self.write(
            "outcome",
            subject,
            json!({"outcome": outcome, "ms": millis, "result_bytes": result_bytes}),
        )
    }

    /// A question of a server to a person, and whether they answered. What was asked and answered is not in it.
    pub(crate) fn question(
        &self,
        execution: ExecutionId,
        server: &ServerName,
        outcome: &str,
    ) -> Result<(), AuditError> {
        let parts = json!({"server": server.as_str(), "outcome": outcome});
        self.append("question", execution, parts)
    }

    fn write(&self, event: &str, subject: Subject<'_>, parts: Value) -> Result<(), AuditError> {
        let mut about = json!({
            "call": subject.call.0, "server": subject.server.as_str(),
            subject.item.kind(): subject.item.as_str(),
        });
        if let (Some(about), Value::Object(parts)) = (about.as_object_mut(), parts) {
            about.extend(parts);
        }
        self.append(event, subject.execution, about)
    }

    fn append(&self, event: &str, execution: ExecutionId, parts: Value) -> Result<(), AuditError> {
        let mut record = json!({
            "time": humantime::format_rfc3339_micros(SystemTime::now()).to_string(), "event": event,
            "execution": execution.to_string(),
        });
        if let (Some(record), Value::Object(parts)) = (record.as_object_mut(), parts) {
            record.extend(parts);
        }
        let before = if self.torn.load(Ordering::Relaxed) { "\n" } else { "" };
        let line = format!("{before}{record}\n");
        // One write for a whole line: segments can be read while they grow.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(line.as_bytes());
        self.torn.store(written.is_err(), Ordering::Relaxed);
        written.map_err(|source| AuditError { path: self.path.clone(), source })
    }
}
