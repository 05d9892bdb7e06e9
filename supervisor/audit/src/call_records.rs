//! The records of calls to upstream servers: their approvals and denials, the calls themselves, and their outcomes.

use std::time::Duration;

use data_encoding::HEXLOWER;
use lockhouse_policies::{CallTarget, ClientName, Effect, PermittedCall, SourceLocation};
use lockhouse_protocol::{CallId, CallOutcome, ExecutionId, ServerName};

use super::execution_records::millis;
use super::hash_chain::RecordBody;
use super::{Audit, AuditError, LocalUser, ProvenPresence, Severity, call_arguments, canonical_json};

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

/// By what a permitted call is made, besides the rule of the policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallAuthority<'a> {
    /// The scope of the approval, if one was required.
    pub approval: Option<&'a str>,
    /// The digest of the policy; only the record of a direct call (one without code) has it.
    pub policy: Option<&'a str>,
    /// The authenticated name of the user whose credentials the server gets. `None` if they are not those of a user.
    pub account: Option<&'a str>,
}

/// How a question about a call reached a person, or how its answer came.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalAnswer<'a> {
    /// The channel of the question or the answer.
    pub through: Option<&'a str>,
    /// The user of this machine who answered. `None` if unknown.
    pub by: Option<LocalUser>,
    /// How the answer has proven that a person is there. `None` if no proof was required.
    pub presence: Option<&'a ProvenPresence>,
    /// The name of the person who answered, if roles of the policy decide who may.
    pub approver: Option<&'a ClientName>,
    /// Why that person approved alone what requires more.
    pub break_glass: Option<&'a str>,
}

impl Audit {
    /// Records a permitted call before it is made, with the policy rule that permits it.
    ///
    /// # Errors
    /// [`AuditError`] if the record cannot be written, or if the log is not delivered in time. The call must then not be
    /// made.
    pub fn call(
        &self,
        subject: CallSubject<'_>,
        call: &PermittedCall,
        authority: CallAuthority<'_>,
    ) -> Result<(), AuditError> {
        let CallAuthority { approval, policy, account } = authority;
        // A sink checks it when it gets the record.
        if self.settings.sink.is_none() {
            self.check_delivery()?;
        }
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
        let body = body.text_if("approval", approval).text_if("policy", policy);
        self.append(&body.text_if("account", account))
    }

    /// Records that an approver was asked about a call (outcome `asked`), or how the request for approval ended.
    /// `digest` is the digest of the call.
    pub fn approval(
        &self,
        subject: CallSubject<'_>,
        digest: &str,
        answer: ApprovalAnswer<'_>,
        outcome: &str,
    ) -> Result<(), AuditError> {
        let ApprovalAnswer { through, by, presence, approver, break_glass } = answer;
        let body = self.call_body("approval", subject).text("digest", digest).text_if("through", through);
        let body = body.text("outcome", outcome);
        let body = body.text_if("approver", approver.map(ClientName::as_str));
        let reason = break_glass.map(|reason| self.without_secrets(reason));
        let body = match &reason {
            Some(reason) => body.text("break_glass", reason).text("severity", Severity::High.as_str()),
            None => body,
        };
        let body = presence.iter().fold(body, |body, presence| presence.write_to(body));
        let by = by.map(|by| presence.map_or(by, |presence| presence.person(by)));
        self.append(&by.iter().fold(body, |body, by| by.write_to(body)))
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

    fn call_body(&self, event: &'static str, subject: CallSubject<'_>) -> RecordBody {
        let CallSubject { execution, call: _, id, client, server, item, line } = subject;
        let mut buffer = uuid::Uuid::encode_buffer();
        let body = RecordBody::new(event).text("execution", &execution.to_string());
        let body = body.text("call", id.hyphenated().encode_lower(&mut buffer));
        let body = body.text_if("client", client.map(ClientName::as_str)).text("server", server.as_str());
        let body = body.text(item.kind(), &self.redaction.read().without_secrets(item.as_str()));
        body.number_if("line", line)
    }
}
