//! Records of what is done around runs: configurations that are loaded, runs that are refused, tokens, logins and accepted
//! definitions. None of them has a secret: of a token its name, of a login its server.

use std::time::{Instant, SystemTime};

use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, ServerName};

use super::line::Body;
use super::{Audit, AuditError, Language, Person};

/// A configuration that was to be loaded while Lockhouse runs.
#[derive(Clone, Copy, Debug)]
pub struct Reload<'a> {
    pub cause: ReloadCause,
    /// Why what was in force stays.
    pub refused: Option<&'a str>,
    /// What is in force from now on.
    pub now: InForceDigests<'a>,
    /// What was in force until now.
    pub before: InForceDigests<'a>,
}

/// The hashes of what is in force; none where there is no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InForceDigests<'a> {
    pub policy: Option<&'a str>,
    pub configuration: Option<&'a str>,
}

/// Why a configuration is loaded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadCause {
    /// SIGHUP.
    Signal,
    /// An answer of the scope `always` changed the policy.
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

/// A run that never began.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRun<'a> {
    pub execution: ExecutionId,
    pub client: Option<&'a ClientName>,
    pub language: Language,
    /// The type of the error that its client has.
    pub outcome: &'a str,
    pub reason: &'a str,
}

/// What is done with a token of ours.
#[derive(Clone, Copy, Debug)]
pub enum TokenChange<'a> {
    /// It is about to be created, for this alone of what the policy permits, until this time.
    Created {
        only: Option<&'a [String]>,
        expires: Option<SystemTime>,
    },
    /// It was to be created, and could not be written.
    NotCreated,
    Revoked,
}

/// What is done with the token that an upstream server is used with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// A person came back from the authorization server, and what they brought is about to be kept.
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
    /// A configuration was loaded again, or was not.
    pub fn reload(&self, reload: Reload<'_>) -> Result<(), AuditError> {
        let Reload { cause, refused, now, before } = reload;
        let outcome = if refused.is_some() { "refused" } else { "accepted" };
        let body = Body::new("reload").text("cause", cause.as_str()).text("outcome", outcome);
        let reason = refused.map(|reason| self.redaction().without_secrets(reason).into_owned());
        let body = body.text_if("reason", reason.as_deref());
        let body = body.text_if("policy", now.policy).text_if("configuration", now.configuration);
        let body = body.text_if("policy_before", before.policy);
        self.append(&body.text_if("configuration_before", before.configuration))
    }

    /// A run was refused before it began. Of one client only so many in a minute have a record.
    pub fn refused_run(&self, run: RefusedRun<'_>) -> Result<(), AuditError> {
        let RefusedRun { execution, client, language, outcome, reason } = run;
        let client = client.map(ClientName::as_str);
        let admitted = self.refusals().admit(client.unwrap_or_default(), Instant::now());
        let Some(left_out) = admitted else { return Ok(()) };
        let body = Body::new("refusal").text("execution", &execution.to_string()).text_if("client", client);
        let body = body.text("language", language.as_str()).text("outcome", outcome);
        let body = body.text("reason", &self.redaction().without_secrets(reason));
        self.append(&body.number_if("left_out", (left_out > 0).then_some(left_out)))
    }

    /// A token is created or revoked.
    pub fn token(&self, name: &str, change: TokenChange<'_>, by: Person) -> Result<(), AuditError> {
        let body = Body::new("token").text("token", name);
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
        self.append(&by.tell(body))
    }

    /// Somebody logs in to an upstream server, or out.
    pub fn login(&self, server: &ServerName, step: LoginStep, by: Person) -> Result<(), AuditError> {
        let body = Body::new("login").text("server", server.as_str()).text("outcome", step.as_str());
        self.append(&by.tell(body))
    }

    /// Definitions of an upstream server's tools are accepted as they are: which, and the hash of what was accepted.
    pub fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
        by: Person,
    ) -> Result<(), AuditError> {
        let tools = serde_json::to_string(tools.get(..TOOLS_MAX).unwrap_or(tools)).unwrap_or_default();
        let body = Body::new("definition").text("server", server.as_str()).text("outcome", "accepted");
        self.append(&by.tell(body.json("tools", &tools).text("digest", digest)))
    }
}

/// Tools that are named in one record.
const TOOLS_MAX: usize = 200;
