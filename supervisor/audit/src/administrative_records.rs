//! Lockhouse's audit log: the records of administrative events. These are configuration reloads, refused runs, changes
//! to tokens, logins to upstream servers, and accepted tool definitions. The records contain names of tokens and
//! servers, but no secrets.

use std::time::{Instant, SystemTime};

use lockhouse_messages::RequestClaims;
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, Language, ServerName};

use super::hash_chain::RecordBody;
use super::{Audit, AuditError, LocalUser, ProvenPresence, Severity};

/// An attempt to load a new configuration while Lockhouse runs.
#[derive(Clone, Copy, Debug)]
pub struct Reload<'a> {
    pub cause: ReloadCause,
    /// Why the new configuration was refused. `None` if it was accepted.
    pub refused: Option<&'a str>,
    /// SHA-256 digests of the policy and the configuration that are active after the reload.
    pub now: ActiveDigests<'a>,
    /// SHA-256 digests of the policy and the configuration that were active before the reload.
    pub before: ActiveDigests<'a>,
}

/// SHA-256 digests of the policy, of the configuration and of the administrator's requirements, each `None` if there is
/// no such file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveDigests<'a> {
    pub policy: Option<&'a str>,
    pub configuration: Option<&'a str>,
    pub requirements: Option<&'a str>,
}

impl ActiveDigests<'_> {
    pub(super) fn write_to(self, body: RecordBody) -> RecordBody {
        let body = body.text_if("policy", self.policy).text_if("configuration", self.configuration);
        body.text_if("requirements", self.requirements)
    }
}

/// What triggered a reload of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadCause {
    /// The process received SIGHUP.
    Signal,
    /// An approver permitted a call with the scope `always`, which changed the policy.
    Approval,
    /// An operator ran `lockhouse reload`: this user, if the kernel reports one.
    Operator(Option<LocalUser>),
    /// The administrator's requirements changed.
    Requirements,
}

impl ReloadCause {
    fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Approval => "approval",
            Self::Operator(_) => "operator",
            Self::Requirements => "requirements",
        }
    }

    /// Returns the user who caused the reload. The sender of a signal is not known: it is then the process itself.
    fn user(self) -> LocalUser {
        match self {
            Self::Operator(Some(user)) => user,
            Self::Signal | Self::Approval | Self::Operator(None) | Self::Requirements => LocalUser::current(),
        }
    }
}

/// A run that was refused before it started.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRun<'a> {
    pub execution: ExecutionId,
    pub client: Option<&'a ClientName>,
    pub language: Language,
    /// The ids that the AI client gave the request.
    pub claims: &'a RequestClaims,
    /// The `type` of the error in the response to the AI client, such as `RateLimited`.
    pub outcome: &'a str,
    pub reason: &'a str,
}

/// A change to an access token for Lockhouse's own HTTP endpoint.
#[derive(Clone, Copy, Debug)]
pub enum TokenChange<'a> {
    /// The token is about to be created. `only` lists the upstream servers and tools that the token may use (`None`:
    /// all). `expires` is the expiry of the token (`None`: never).
    Created {
        only: Option<&'a [String]>,
        expires: Option<SystemTime>,
    },
    /// The token could not be created, because the token file could not be written.
    NotCreated,
    Revoked,
}

/// A step of an OAuth login to an upstream server, or the logout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// The user returned from the authorization server, and the upstream server's OAuth token is about to be stored.
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

fn login_body(server: &ServerName, step: LoginStep) -> RecordBody {
    RecordBody::new("login").text("server", server.as_str()).text("outcome", step.as_str())
}

impl Audit {
    /// Records a reload of the configuration, whether it was accepted or refused.
    pub fn reload(&self, reload: Reload<'_>) -> Result<(), AuditError> {
        let Reload { cause, refused, now, before } = reload;
        let outcome = if refused.is_some() { "refused" } else { "accepted" };
        let body = RecordBody::new("reload").text("cause", cause.as_str()).text("outcome", outcome);
        let reason = refused.map(|reason| self.redaction.read().without_secrets(reason).into_owned());
        let body = body.text_if("reason", reason.as_deref());
        let body = now.write_to(body).text_if("policy_before", before.policy);
        let body = body.text_if("configuration_before", before.configuration);
        let body = body.text_if("requirements_before", before.requirements);
        self.append_act(body, Severity::of("reload", &[outcome]), cause.user())
    }

    /// Records a refused run. For each AI client, at most 20 refused runs per minute are recorded; the others are only
    /// counted.
    pub fn refused_run(&self, run: RefusedRun<'_>) -> Result<(), AuditError> {
        let RefusedRun { execution, client, language, claims, outcome, reason } = run;
        let client = client.map(ClientName::as_str);
        let admitted = self.refusals.lock().admit(client.unwrap_or_default(), Instant::now());
        let Some(left_out) = admitted else { return Ok(()) };
        let body =
            RecordBody::new("refusal").text("execution", &execution.to_string()).text_if("client", client);
        let body = body.text("language", language.as_str()).text("outcome", outcome);
        let body = body.text("reason", &self.redaction.read().without_secrets(reason));
        let body = self.with_claims(body, claims);
        self.append(&body.number_if("left_out", (left_out > 0).then_some(left_out)))
    }

    /// Records the creation or revocation of an access token for Lockhouse's HTTP endpoint, and the user who did it.
    pub fn token(&self, name: &str, change: TokenChange<'_>, by: LocalUser) -> Result<(), AuditError> {
        let body = RecordBody::new("token").text("token", name);
        let outcome = match change {
            TokenChange::Created { .. } => "created",
            TokenChange::NotCreated => "failed",
            TokenChange::Revoked => "revoked",
        };
        let body = body.text("outcome", outcome);
        let body = match change {
            TokenChange::Created { only, expires } => {
                let only = only.map(|only| serde_json::to_string(only).unwrap_or_default());
                let expires = expires.map(|time| humantime::format_rfc3339_seconds(time).to_string());
                body.number_if("only", only).text_if("expires", expires.as_deref())
            }
            TokenChange::NotCreated | TokenChange::Revoked => body,
        };
        self.append_act(body, Severity::of("token", &[outcome]), by)
    }

    /// Records a step of a login to an upstream server, or a logout, and the user who did it. `presence` is how that user has
    /// proven to be there, if a proof was required.
    pub fn login(
        &self,
        server: &ServerName,
        step: LoginStep,
        presence: Option<&ProvenPresence>,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let body = login_body(server, step);
        let body = presence.iter().fold(body, |body, presence| presence.write_to(body));
        let by = presence.map_or(by, |presence| presence.person(by));
        self.append_act(body, Severity::of("login", &[step.as_str()]), by)
    }

    /// Records a step of a login of a user of the service to an upstream server, or a logout. `client` is that user's name.
    pub fn user_login(
        &self,
        server: &ServerName,
        step: LoginStep,
        client: Option<&ClientName>,
    ) -> Result<(), AuditError> {
        let body = login_body(server, step);
        let body = body.text_if("client", client.map(ClientName::as_str));
        self.append_act(body, Severity::of("login", &[step.as_str()]), LocalUser::current())
    }

    /// Records that the user `by` accepted the tool definitions of an upstream server, and with which proof that a person is
    /// there, if one was required. `digest` is the digest of all accepted definitions. The record has the names of at most 200 of the tools.
    pub fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
        presence: Option<&ProvenPresence>,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let tools = serde_json::to_string(tools.get(..TOOLS_MAX).unwrap_or(tools)).unwrap_or_default();
        let body = RecordBody::new("definition").text("server", server.as_str()).text("outcome", "accepted");
        let body = body.json("tools", &tools).text("digest", digest);
        let body = presence.iter().fold(body, |body, presence| presence.write_to(body));
        let by = presence.map_or(by, |presence| presence.person(by));
        self.append_act(body, Severity::of("definition", &["accepted"]), by)
    }
}

/// Maximum number of tool names in one record of accepted definitions. Further names are omitted.
const TOOLS_MAX: usize = 200;
