//! Records as they are read.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One record.
#[derive(Clone, Debug)]
pub struct Record {
    pub seq: u64,
    /// RFC 3339 with microseconds, by UTC.
    pub time: String,
    pub event: Event,
}

/// What a record tells.
#[derive(Clone, Debug)]
pub enum Event {
    /// Code is about to run.
    Execution {
        execution: String,
        client: Option<String>,
        language: String,
        servers: Vec<String>,
        /// SHA-256.
        code: String,
        /// The SHA-256 of the file beside the log.
        code_kept: Option<String>,
        code_bytes: u64,
        /// The hash of its policy.
        policy: Option<String>,
    },
    /// A run was refused before it began.
    Refusal {
        execution: String,
        client: Option<String>,
        language: String,
        outcome: String,
        reason: String,
        left_out: u64,
    },
    /// Something was done around runs: to the configuration, a token, a login or definitions.
    Administration(Administration),
    /// The code of a skill is about to be given to running code.
    Skill {
        execution: String,
        client: Option<String>,
        skill: String,
        version: u32,
        language: String,
        code: String,
        code_kept: Option<String>,
    },
    /// A permitted call is about to go out.
    Call {
        about: About,
        arguments: Arguments,
        /// `allow`, or `ask` for one that a person approved.
        decision: String,
        /// `FILE:LINE`.
        rule: String,
        /// How far the person's answer goes.
        approval: Option<String>,
    },
    /// A person was asked.
    Approval { about: About, digest: String, through: Option<String>, outcome: String, uid: Option<u32> },
    /// A call was refused: by the policy, or by the person to whom it left the call.
    Denial { about: About, decision: String, reason: String, rule: Option<String> },
    /// A call is over.
    Outcome { about: About, outcome: String, ms: f64, result_bytes: u64 },
    /// A server asked the person something.
    Question { execution: String, server: String, outcome: String },
    /// Code has run.
    End { execution: String, status: String, wall_ms: f64, cpu_ms: Option<f64>, calls: u64 },
    /// Records are missing here, and why.
    Gap { since: String, records: u64, reason: String },
    /// What the log says of itself: `open`, `checkpoint`, `close`, or what a later version has.
    Chain,
}

/// What was done around runs.
#[derive(Clone, Debug)]
pub struct Administration {
    /// `reload`, `token`, `login` or `definition`.
    pub event: &'static str,
    /// The name of the token or of the server; why a configuration was loaded.
    pub subject: String,
    pub outcome: String,
    pub reason: Option<String>,
    /// The hash of the policy, or of what was accepted.
    pub digest: Option<String>,
    /// Of the person who did it.
    pub uid: Option<u32>,
    pub login_uid: Option<u32>,
}

/// What a call is known by.
#[derive(Clone, Debug)]
pub struct About {
    pub execution: String,
    /// The same in every record of one call.
    pub call: String,
    pub client: Option<String>,
    pub server: String,
    /// `tool`, `resource`, `prompt` or `list`.
    pub kind: &'static str,
    /// The name, the URI, or what was listed.
    pub item: String,
    /// Of the program.
    pub line: Option<u32>,
}

/// What is known of the arguments of a call.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Names with types, or with the shapes of objects.
    pub shape: Map<String, Value>,
    /// The same for the same arguments.
    pub hash: String,
    pub bytes: u64,
    /// Where the configuration keeps them.
    pub values: Option<Map<String, Value>>,
    /// Whether the values are all there, each as it was.
    pub values_exact: bool,
}

/// Any record: its members, as far as it has them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Members {
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
    token: Option<String>,
    cause: Option<String>,
    uid: Option<u32>,
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
    digest: Option<String>,
    through: Option<String>,
    pub(super) outcome: Option<String>,
    reason: Option<String>,
    ms: f64,
    result_bytes: u64,
    pub(super) status: Option<String>,
    wall_ms: f64,
    cpu_ms: Option<f64>,
    calls: u64,
    since: Option<String>,
    records: u64,
}

impl Members {
    /// The record that they make. What is missing in it is told as empty: it is `verify` that says what is wrong.
    #[expect(clippy::too_many_lines, reason = "one arm for each event of the log")]
    pub(super) fn into_record(mut self) -> Record {
        let text = Option::unwrap_or_default;
        let execution = |members: &mut Self| members.execution.take().unwrap_or_default();
        let event = match self.event.as_str() {
            "execution" => Event::Execution {
                execution: execution(&mut self),
                client: self.client,
                language: text(self.language),
                servers: self.servers,
                code: text(self.code),
                code_kept: self.code_kept,
                code_bytes: self.code_bytes,
                policy: self.policy,
            },
            "refusal" => Event::Refusal {
                execution: execution(&mut self),
                client: self.client,
                language: text(self.language),
                outcome: text(self.outcome),
                reason: text(self.reason),
                left_out: self.left_out,
            },
            "reload" => self.administration("reload", |members| members.cause.take()),
            "token" => self.administration("token", |members| members.token.take()),
            "login" => self.administration("login", |members| members.server.take()),
            "definition" => self.administration("definition", |members| members.server.take()),
            "skill" => Event::Skill {
                execution: execution(&mut self),
                client: self.client,
                skill: text(self.skill),
                version: self.version,
                language: text(self.language),
                code: text(self.code),
                code_kept: self.code_kept,
            },
            "call" => Event::Call {
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
            },
            "approval" => Event::Approval {
                about: self.about(),
                digest: text(self.digest),
                through: self.through,
                outcome: text(self.outcome),
                uid: self.uid,
            },
            "denial" => Event::Denial {
                about: self.about(),
                decision: text(self.decision),
                reason: text(self.reason),
                rule: self.rule,
            },
            "outcome" => Event::Outcome {
                about: self.about(),
                outcome: text(self.outcome),
                ms: self.ms,
                result_bytes: self.result_bytes,
            },
            "question" => Event::Question {
                execution: execution(&mut self),
                server: text(self.server),
                outcome: text(self.outcome),
            },
            "end" => Event::End {
                execution: execution(&mut self),
                status: text(self.status),
                wall_ms: self.wall_ms,
                cpu_ms: self.cpu_ms,
                calls: self.calls,
            },
            "gap" => Event::Gap { since: text(self.since), records: self.records, reason: text(self.reason) },
            _ => Event::Chain,
        };
        Record { seq: self.seq, time: self.time, event }
    }

    fn administration(
        &mut self,
        event: &'static str,
        subject: impl Fn(&mut Self) -> Option<String>,
    ) -> Event {
        Event::Administration(Administration {
            event,
            subject: subject(self).unwrap_or_default(),
            outcome: self.outcome.take().unwrap_or_default(),
            reason: self.reason.take(),
            digest: self.policy.take().or(self.digest.take()),
            uid: self.uid,
            login_uid: self.login_uid,
        })
    }

    fn about(&mut self) -> About {
        let (kind, item) = match (self.tool.take(), self.resource.take(), self.prompt.take()) {
            (Some(tool), ..) => ("tool", Some(tool)),
            (_, Some(resource), _) => ("resource", Some(resource)),
            (.., Some(prompt)) => ("prompt", Some(prompt)),
            _ => ("list", self.list.take()),
        };
        About {
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
