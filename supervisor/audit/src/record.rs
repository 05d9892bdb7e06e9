//! Parsed audit records.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Severity;

/// A parsed audit record.
#[derive(Clone, Debug)]
pub struct Record {
    pub seq: u64,
    /// When the record was written: UTC, as RFC 3339 with microseconds.
    pub time: String,
    pub event: AuditEvent,
}

/// The event that a record describes.
#[derive(Clone, Debug)]
pub enum AuditEvent {
    /// A submitted program is about to run.
    Execution {
        execution: String,
        client: Option<String>,
        language: String,
        servers: Vec<String>,
        /// SHA-256 of the program as it ran.
        code: String,
        /// SHA-256 of the file in which the program was stored. `None` if the program was not stored.
        code_kept: Option<String>,
        code_bytes: u64,
        /// SHA-256 digest of the policy under which the program runs. `None` if there is no policy.
        policy: Option<String>,
        /// The ids that the AI client gave the request, by name.
        claimed: BTreeMap<String, String>,
    },
    /// A run was refused before it started.
    Refusal {
        execution: String,
        client: Option<String>,
        language: String,
        outcome: String,
        reason: String,
        left_out: u64,
        claimed: BTreeMap<String, String>,
    },
    /// An administrative event, such as a configuration reload, a change of a file or a login.
    Administration(AdministrativeEvent),
    /// A running program is about to load a skill (a saved function).
    Skill {
        execution: String,
        client: Option<String>,
        skill: String,
        version: u32,
        language: String,
        code: String,
        code_kept: Option<String>,
    },
    /// A permitted call is about to be made.
    Call {
        about: CallIdentity,
        arguments: Arguments,
        /// The policy's decision: `allow`, or `ask` for a call that an approver approved.
        decision: String,
        /// Location of the policy rule that permits the call, as `FILE:LINE`.
        rule: String,
        /// Scope for which the approver approved the call, such as `once`. `None` if the policy required no approval.
        approval: Option<String>,
        /// The authenticated name of the user whose credentials the server got. `None` if they were not those of a user.
        account: Option<String>,
    },
    /// An approver was asked about a call (outcome `asked`), or a request for approval ended. `through` is the channel
    /// by which the question was asked or answered.
    Approval {
        about: CallIdentity,
        digest: String,
        through: Option<String>,
        outcome: String,
        uid: Option<u32>,
        /// How the answer has proven that a person is there. `None` if no proof was required.
        presence: Option<String>,
        /// The id of the credential of a key.
        credential: Option<String>,
        /// The name of the person who answered, if roles of the policy decide who may.
        approver: Option<String>,
        /// Why that person approved alone what requires more.
        break_glass: Option<String>,
    },
    /// A call was denied by the policy, or was not approved.
    Denial { about: CallIdentity, decision: String, reason: String, rule: Option<String> },
    /// A call has ended.
    Outcome { about: CallIdentity, outcome: String, ms: f64, result_bytes: u64 },
    /// An upstream server asked the user a question.
    Question { execution: String, server: String, outcome: String },
    /// An execution has ended.
    End {
        execution: String,
        status: String,
        /// Who or what ended the execution. `None` if its program ended by itself, and in a record of an older version.
        ended_by: Option<String>,
        wall_ms: f64,
        cpu_ms: Option<f64>,
        calls: u64,
        /// Size in bytes of what the answer shows: value and output. `None` in a record of an older version.
        answer_bytes: Option<u64>,
    },
    /// Before this point of the log, records could not be written or may be lost. `records` is the number of missing
    /// records.
    Gap { since: String, records: u64, reason: String },
    /// The wall clock was set: it showed `to` when `from` would have been right.
    Clock { from: String, to: String, difference_s: f64 },
    /// A record that belongs to the hash chain itself (`open`, `checkpoint` or `close`), or an event that only a later
    /// version knows.
    Chain,
}

/// An administrative event, such as a configuration reload or a login to an upstream server.
#[derive(Clone, Debug, Default)]
pub struct AdministrativeEvent {
    /// The kind of event: one of [`ADMINISTRATIVE_EVENTS`].
    pub event: &'static str,
    /// What the event is about: the name of a token, an upstream server or a page action, the target of a change or a
    /// termination, the channel of an authentication, the command of a process, the cause of a reload, or
    /// the destination that did not receive records of the log.
    pub subject: String,
    pub outcome: String,
    pub reason: Option<String>,
    /// SHA-256 digest of the policy that is active after a reload or at the start of a process, of the accepted tool
    /// definitions, or of a file after a change. `None` if the event has none of them.
    pub digest: Option<String>,
    /// What was changed, such as `allow tickets.create`, and the file.
    pub action: Option<String>,
    pub file: Option<String>,
    /// The way by which the event came about, such as `command` or `page`.
    pub through: Option<String>,
    /// The client or the viewer of the page.
    pub client: Option<String>,
    /// The run or the session that was ended.
    pub execution: Option<String>,
    pub session: Option<String>,
    pub exit_status: Option<i32>,
    pub left_out: u64,
    /// `None` in a record of an earlier version.
    pub severity: Option<Severity>,
    pub host: Option<String>,
    /// User ID of the process through which a user caused the event. `None` if the record names no user.
    pub uid: Option<u32>,
    pub pid: Option<i32>,
    pub login_uid: Option<u32>,
    /// How whoever made a change has proven that a person is there. `None` if no proof was required.
    pub presence: Option<String>,
    /// The id of the credential of a key.
    pub credential: Option<String>,
}

/// The kinds of administrative events.
pub const ADMINISTRATIVE_EVENTS: [&str; 11] = [
    "reload",
    "token",
    "login",
    "definition",
    "change",
    "authentication",
    "termination",
    "server",
    "process",
    "action",
    "delivery",
];

/// Identifies the call that an audit record is about.
#[derive(Clone, Debug)]
pub struct CallIdentity {
    pub execution: String,
    /// ID of the call, which all audit records about the call share.
    pub call: String,
    pub client: Option<String>,
    pub server: String,
    /// What the call requested: `tool`, `resource`, `prompt` or `list`.
    pub kind: &'static str,
    /// Name of the tool or prompt, URI of the resource, or kind of the list.
    pub item: String,
    /// Number of the program's line that made the call. `None` if unknown.
    pub line: Option<u32>,
}

/// The recorded description of a call's arguments.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Names of the arguments with the JSON types of their values. Objects are described recursively.
    pub shape: Map<String, Value>,
    /// Keyed hash of the arguments. Equal arguments have equal hashes.
    pub hash: String,
    pub bytes: u64,
    /// Values of the arguments. `None` if the configuration does not enable recording them.
    pub values: Option<Map<String, Value>>,
    /// Whether the recorded values are complete and unchanged: none was redacted, truncated or omitted.
    pub values_exact: bool,
}

/// All JSON members that an audit record can have, whatever its event. `into_record` converts them to a [`Record`].
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RecordMembers {
    pub(super) seq: u64,
    pub(super) time: String,
    pub(super) event: String,
    pub(super) execution: Option<String>,
    call: Option<String>,
    line: Option<u32>,
    pub(super) client: Option<String>,
    pub(super) server: Option<String>,
    pub(super) tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    list: Option<String>,
    language: Option<String>,
    servers: Vec<String>,
    code: Option<String>,
    code_kept: Option<String>,
    code_bytes: u64,
    policy: Option<String>,
    left_out: u64,
    claimed: BTreeMap<String, String>,
    token: Option<String>,
    cause: Option<String>,
    destination: Option<String>,
    target: Option<String>,
    file: Option<String>,
    action: Option<String>,
    command: Option<String>,
    session: Option<String>,
    exit_status: Option<i32>,
    severity: Option<String>,
    host: Option<String>,
    uid: Option<u32>,
    pid: Option<i32>,
    login_uid: Option<u32>,
    pub(super) skill: Option<String>,
    version: u32,
    arguments: Map<String, Value>,
    arguments_hash: Option<String>,
    arguments_bytes: u64,
    values: Option<Map<String, Value>>,
    values_exact: bool,
    pub(super) decision: Option<String>,
    rule: Option<String>,
    approval: Option<String>,
    account: Option<String>,
    digest: Option<String>,
    through: Option<String>,
    presence: Option<String>,
    credential: Option<String>,
    approver: Option<String>,
    break_glass: Option<String>,
    pub(super) outcome: Option<String>,
    reason: Option<String>,
    ms: f64,
    result_bytes: u64,
    pub(super) status: Option<String>,
    wall_ms: f64,
    cpu_ms: Option<f64>,
    calls: u64,
    answer_bytes: Option<u64>,
    since: Option<String>,
    records: u64,
    from: Option<String>,
    to: Option<String>,
    difference_s: f64,
    ended_by: Option<String>,
}

impl RecordMembers {
    /// Converts the members to a typed record. A missing member becomes an empty value, since `lockhouse audit verify`
    /// reports invalid records.
    #[expect(clippy::too_many_lines, reason = "one arm for each event of the log")]
    pub(super) fn into_record(mut self) -> Record {
        let text = Option::unwrap_or_default;
        let execution = |members: &mut Self| members.execution.take().unwrap_or_default();
        let event = match self.event.as_str() {
            "execution" => AuditEvent::Execution {
                execution: execution(&mut self),
                client: self.client,
                language: text(self.language),
                servers: self.servers,
                code: text(self.code),
                code_kept: self.code_kept,
                code_bytes: self.code_bytes,
                policy: self.policy,
                claimed: self.claimed,
            },
            "refusal" => AuditEvent::Refusal {
                execution: execution(&mut self),
                client: self.client,
                language: text(self.language),
                outcome: text(self.outcome),
                reason: text(self.reason),
                left_out: self.left_out,
                claimed: self.claimed,
            },
            "skill" => AuditEvent::Skill {
                execution: execution(&mut self),
                client: self.client,
                skill: text(self.skill),
                version: self.version,
                language: text(self.language),
                code: text(self.code),
                code_kept: self.code_kept,
            },
            "call" => AuditEvent::Call {
                about: self.about(),
                arguments: Arguments {
                    shape: self.arguments,
                    hash: text(self.arguments_hash),
                    bytes: self.arguments_bytes,
                    values: self.values,
                    values_exact: self.values_exact,
                },
                decision: text(self.decision),
                rule: text(self.rule),
                approval: self.approval,
                account: self.account,
            },
            "approval" => AuditEvent::Approval {
                about: self.about(),
                digest: text(self.digest),
                through: self.through,
                outcome: text(self.outcome),
                uid: self.uid,
                presence: self.presence,
                credential: self.credential,
                approver: self.approver,
                break_glass: self.break_glass,
            },
            "denial" => AuditEvent::Denial {
                about: self.about(),
                decision: text(self.decision),
                reason: text(self.reason),
                rule: self.rule,
            },
            "outcome" => AuditEvent::Outcome {
                about: self.about(),
                outcome: text(self.outcome),
                ms: self.ms,
                result_bytes: self.result_bytes,
            },
            "question" => AuditEvent::Question {
                execution: execution(&mut self),
                server: text(self.server),
                outcome: text(self.outcome),
            },
            "end" => AuditEvent::End {
                execution: execution(&mut self),
                status: text(self.status),
                ended_by: self.ended_by,
                wall_ms: self.wall_ms,
                cpu_ms: self.cpu_ms,
                calls: self.calls,
                answer_bytes: self.answer_bytes,
            },
            "gap" => {
                AuditEvent::Gap { since: text(self.since), records: self.records, reason: text(self.reason) }
            }
            "clock" => AuditEvent::Clock {
                from: text(self.from),
                to: text(self.to),
                difference_s: self.difference_s,
            },
            other => match ADMINISTRATIVE_EVENTS.into_iter().find(|known| *known == other) {
                Some(event) => AuditEvent::Administration(self.administration(event)),
                None => AuditEvent::Chain,
            },
        };
        Record { seq: self.seq, time: self.time, event }
    }

    fn administration(&mut self, event: &'static str) -> AdministrativeEvent {
        let subject = match event {
            "reload" => self.cause.take(),
            "token" => self.token.take(),
            "login" | "definition" | "server" => self.server.take(),
            "process" => self.command.take(),
            "action" => self.action.take(),
            "delivery" => self.destination.take(),
            "authentication" => self.through.clone(),
            _ => self.target.take(),
        };
        AdministrativeEvent {
            event,
            subject: subject.unwrap_or_default(),
            outcome: self.outcome.take().unwrap_or_default(),
            reason: self.reason.take(),
            digest: self.policy.take().or(self.digest.take()),
            action: self.action.take(),
            file: self.file.take(),
            through: self.through.take(),
            client: self.client.take(),
            execution: self.execution.take(),
            session: self.session.take(),
            exit_status: self.exit_status,
            left_out: self.left_out,
            severity: self.severity.as_deref().and_then(Severity::parse),
            host: self.host.take(),
            uid: self.uid,
            pid: self.pid,
            login_uid: self.login_uid,
            presence: self.presence.take(),
            credential: self.credential.take(),
        }
    }

    fn about(&mut self) -> CallIdentity {
        let (kind, item) = match (self.tool.take(), self.resource.take(), self.prompt.take()) {
            (Some(tool), ..) => ("tool", Some(tool)),
            (_, Some(resource), _) => ("resource", Some(resource)),
            (.., Some(prompt)) => ("prompt", Some(prompt)),
            _ => ("list", self.list.take()),
        };
        CallIdentity {
            execution: self.execution.take().unwrap_or_default(),
            call: self.call.take().unwrap_or_default(),
            client: self.client.take(),
            server: self.server.take().unwrap_or_default(),
            kind,
            item: item.unwrap_or_default(),
            line: self.line,
        }
    }
}
