//! Audit records of administrative events: reloads of the configuration, refused runs, tokens, logins, and accepted
//! tool definitions. They contain names of tokens and servers, and no secrets.

use std::time::{Instant, SystemTime};

use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, ServerName};

use super::hash_chain::RecordBody;
use super::{Audit, AuditError, Language, LocalUser};

/// An attempt to load a new configuration while Lockhouse runs.
#[derive(Clone, Copy, Debug)]
pub struct Reload<'a> {
    pub cause: ReloadCause,
    /// Why the new configuration was refused. `None` if it was accepted.
    pub refused: Option<&'a str>,
    /// Digests of the configuration that is active from now on.
    pub now: ActiveDigests<'a>,
    /// Digests of the configuration that was active before.
    pub before: ActiveDigests<'a>,
}

/// Digests of the policy and the configuration. `None` where there is no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveDigests<'a> {
    pub policy: Option<&'a str>,
    pub configuration: Option<&'a str>,
}

/// What triggered a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadCause {
    /// The process received SIGHUP.
    Signal,
    /// An approval with the scope `always` changed the policy.
    Approval,
}

impl ReloadCause {
    fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Approval => "approval",
        }
    }
}

/// A run that was refused before it started.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRun<'a> {
    pub execution: ExecutionId,
    pub client: Option<&'a ClientName>,
    pub language: Language,
    /// The error type that the AI client got.
    pub outcome: &'a str,
    pub reason: &'a str,
}

/// A change to an access token for Lockhouse's own HTTP endpoint.
#[derive(Clone, Copy, Debug)]
pub enum TokenChange<'a> {
    /// The token is about to be created. `only` restricts it to some upstream servers and tools.
    Created {
        only: Option<&'a [String]>,
        expires: Option<SystemTime>,
    },
    /// The token could not be written.
    NotCreated,
    Revoked,
}

/// A step of a login to an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// The user returned from the authorization server, and the token is about to be stored.
    Answered,
    Granted,
    Failed,
    LoggedOut,
}

impl LoginStep {
    fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Granted => "granted",
            Self::Failed => "failed",
            Self::LoggedOut => "logged out",
        }
    }
}

impl Audit {
    /// Records a reload, accepted or refused.
    pub fn reload(&self, reload: Reload<'_>) -> Result<(), AuditError> {
        let Reload { cause, refused, now, before } = reload;
        let outcome = if refused.is_some() { "refused" } else { "accepted" };
        let body = RecordBody::new("reload").text("cause", cause.as_str()).text("outcome", outcome);
        let reason = refused.map(|reason| self.redaction().without_secrets(reason).into_owned());
        let body = body.text_if("reason", reason.as_deref());
        let body = body.text_if("policy", now.policy).text_if("configuration", now.configuration);
        let body = body.text_if("policy_before", before.policy);
        self.append(&body.text_if("configuration_before", before.configuration))
    }

    /// Records a refused run. Only a limited number per client and minute is recorded.
    pub fn refused_run(&self, run: RefusedRun<'_>) -> Result<(), AuditError> {
        let RefusedRun { execution, client, language, outcome, reason } = run;
        let client = client.map(ClientName::as_str);
        let admitted = self.refusals().admit(client.unwrap_or_default(), Instant::now());
        let Some(left_out) = admitted else { return Ok(()) };
        let body =
            RecordBody::new("refusal").text("execution", &execution.to_string()).text_if("client", client);
        let body = body.text("language", language.as_str()).text("outcome", outcome);
        let body = body.text("reason", &self.redaction().without_secrets(reason));
        self.append(&body.number_if("left_out", (left_out > 0).then_some(left_out)))
    }

    /// Records the creation or revocation of a token.
    pub fn token(&self, name: &str, change: TokenChange<'_>, by: LocalUser) -> Result<(), AuditError> {
        let body = RecordBody::new("token").text("token", name);
        let body = match change {
            TokenChange::Created { only, expires } => {
                let only = only.map(|only| serde_json::to_string(only).unwrap_or_default());
                let expires = expires.map(|time| humantime::format_rfc3339_seconds(time).to_string());
                let body = body.text("outcome", "created").number_if("only", only);
                body.text_if("expires", expires.as_deref())
            }
            TokenChange::NotCreated => body.text("outcome", "failed"),
            TokenChange::Revoked => body.text("outcome", "revoked"),
        };
        self.append(&by.write_to(body))
    }

    /// Records a login to an upstream server, or a logout.
    pub fn login(&self, server: &ServerName, step: LoginStep, by: LocalUser) -> Result<(), AuditError> {
        let body = RecordBody::new("login").text("server", server.as_str()).text("outcome", step.as_str());
        self.append(&by.write_to(body))
    }

    /// Records that a user accepted the tool definitions of an upstream server: the tools, and the digest of their
    /// definitions.
    pub fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let tools = serde_json::to_string(tools.get(..TOOLS_MAX).unwrap_or(tools)).unwrap_or_default();
        let body = RecordBody::new("definition").text("server", server.as_str()).text("outcome", "accepted");
        self.append(&by.write_to(body.json("tools", &tools).text("digest", digest)))
    }
}

/// Maximum number of tool names in one record.
const TOOLS_MAX: usize = 200;
