//! The records of executions: the programs and skills that run, with their code, and how they end.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use lockhouse_messages::RequestClaims;
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, Language, ServerName};

use super::destination::Destination;
use super::hash_chain::{self, RecordBody};
use super::{Audit, AuditError};

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
    pub(super) fn with_claims(&self, body: RecordBody, claims: &RequestClaims) -> RecordBody {
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
}

/// Returns a time in milliseconds, as records have it.
pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}
