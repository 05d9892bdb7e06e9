//! Lockhouse's audit log: the records of administrative acts. These are changes of files, authentications, ended runs,
//! starts and ends of upstream servers and of Lockhouse's own processes, and actions of the live page. The records
//! contain names and digests, but no secrets.

use std::path::Path;
use std::time::Instant;

use lockhouse_base::host_name::host_name;
use lockhouse_protocol::ServerName;

use super::hash_chain::RecordBody;
use super::{ActiveDigests, Audit, AuditError, LocalUser, ProvenPresence, Severity};

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTarget {
    Policy,
    Configuration,
    Requirements,
    /// A file of an AI client.
    Client,
    /// The Python packages that programs can import.
    Packages,
    /// A function that code has saved for later programs.
    Skill,
    /// The keys with which people prove that they are there.
    Keys,
    /// A secret of a server.
    Secret,
    /// What is stored about a user.
    User,
}

impl ChangeTarget {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Configuration => "configuration",
            Self::Requirements => "requirements",
            Self::Client => "client",
            Self::Packages => "packages",
            Self::Skill => "skill",
            Self::Keys => "keys",
            Self::Secret => "secret",
            Self::User => "user",
        }
    }
}

/// The way by which a change or another act came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A command of Lockhouse.
    Command,
    /// The live page.
    Page,
    /// An answer with the scope `always` to a question about calls.
    Approval,
    /// Something else than Lockhouse has written the file.
    File,
    /// The HTTP endpoint of this process.
    Http,
    /// The control socket, for a user of the process itself.
    Operator,
    /// The control socket, for root, while the process belongs to another user.
    Administrator,
}

impl Channel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Page => "page",
            Self::Approval => "approval",
            Self::File => "file",
            Self::Http => "http",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    /// Returns the channel of a request at the control socket of this process.
    pub fn of_operator(by: LocalUser) -> Self {
        let is_own = by.uid == nix::unistd::geteuid().as_raw();
        if by.uid == 0 && !is_own { Self::Administrator } else { Self::Operator }
    }
}

/// A change of a file.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub target: ChangeTarget,
    pub file: &'a Path,
    /// What is changed, such as `allow tickets.create`.
    pub action: &'a str,
    pub through: Channel,
    /// SHA-256 digests of the file before and after the change, as far as they are known. `None` if there is no file.
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
    /// How whoever makes it has proven that a person is there. `None` if no proof was required.
    pub presence: Option<&'a ProvenPresence>,
    /// Why a recorded change was not made. `None` if it is about to be made, or was made.
    pub failed: Option<&'a str>,
}

/// A person or a program that has authenticated to Lockhouse, or has failed to.
#[derive(Clone, Copy, Debug)]
pub struct Authentication<'a> {
    pub through: Channel,
    /// The name of the person or the client. `None` if it is not known.
    pub name: Option<&'a str>,
    /// Why it was refused. `None` if it was accepted.
    pub refused: Option<&'a str>,
    /// The number of authentications with the same outcome before this one that have no record.
    pub left_out: u64,
}

/// What an operator or an administrator ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    Run(&'a str),
    Session(&'a str),
    /// This process.
    Process,
    /// The Lockhouse processes of all accounts of this machine.
    AllProcesses,
}

/// A step in the life of an upstream server.
#[derive(Clone, Copy, Debug)]
pub struct ServerStep<'a> {
    pub server: &'a ServerName,
    /// `started`, `failed` (it could not be started), `lost` (the connection ended by itself) or `stopped` (Lockhouse ended
    /// it).
    pub outcome: &'static str,
    pub reason: Option<&'a str>,
    /// The exit status of the server's process, if it exited by itself.
    pub exit_status: Option<i32>,
}

impl Audit {
    /// Adds to the record of an administrative act what each of them has: the severity, the host and the user.
    pub(super) fn append_act(
        &self,
        body: RecordBody,
        severity: Severity,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let body = body.text("severity", severity.as_str()).text_if("host", host_name().as_deref());
        self.append(&by.write_to(body))
    }

    /// Records a change of a file: before it is made, or that it could not be made.
    pub fn change(&self, change: Change<'_>, by: LocalUser) -> Result<(), AuditError> {
        let Change { target, file, action, through, before, after, presence, failed } = change;
        let outcome = if failed.is_some() { "failed" } else { "changed" };
        let body = RecordBody::new("change").text("target", target.as_str());
        let body =
            body.text("file", &file.display().to_string()).text("action", &self.without_secrets(action));
        let body = body.text("through", through.as_str()).text("outcome", outcome);
        let reason = failed.map(|reason| self.without_secrets(reason));
        let body = body.text_if("reason", reason.as_deref());
        let body = body.text_if("digest", after).text_if("digest_before", before);
        let body = presence.iter().fold(body, |body, presence| presence.write_to(body));
        let by = presence.map_or(by, |presence| presence.person(by));
        self.append_act(body, Severity::of("change", &[outcome, target.as_str()]), by)
    }

    /// Records that somebody authenticated to Lockhouse, or failed to.
    pub fn authentication(&self, event: Authentication<'_>, by: LocalUser) -> Result<(), AuditError> {
        let Authentication { through, name, refused, left_out } = event;
        let outcome = if refused.is_some() { "refused" } else { "accepted" };
        let body = RecordBody::new("authentication").text("through", through.as_str());
        let body = body.text_if("client", name).text("outcome", outcome);
        let reason = refused.map(|reason| self.without_secrets(reason));
        let body = body.text_if("reason", reason.as_deref());
        let body = body.number_if("left_out", (left_out > 0).then_some(left_out));
        self.append_act(body, Severity::of("authentication", &[outcome]), by)
    }

    /// Records that a credential of a client was accepted, or why it was refused. At most 20 accepted ones of a client and
    /// 20 refused ones of a channel are recorded in a minute; the others are only counted.
    pub fn credential(
        &self,
        through: Channel,
        client: Option<&str>,
        refused: Option<&str>,
    ) -> Result<(), AuditError> {
        let admitted = match refused {
            None => self.accepted_logins.lock().admit(client.unwrap_or_default(), Instant::now()),
            Some(_) => self.refused_logins.lock().admit(through.as_str(), Instant::now()),
        };
        let Some(left_out) = admitted else { return Ok(()) };
        let event = Authentication { through, name: client, refused, left_out };
        self.authentication(event, LocalUser::current())
    }

    /// Records that an operator or an administrator ends a run, a session or this process.
    pub fn termination(
        &self,
        ended: Ended<'_>,
        reason: Option<&str>,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let through = Channel::of_operator(by).as_str();
        let body = RecordBody::new("termination");
        let body = match ended {
            Ended::Run(execution) => body.text("target", "run").text("execution", execution),
            Ended::Session(name) => body.text("target", "session").text("session", name),
            Ended::Process => body.text("target", "process"),
            Ended::AllProcesses => body.text("target", "all processes"),
        };
        let reason = reason.map(|reason| self.without_secrets(reason));
        let body =
            body.text("through", through).text("outcome", "ended").text_if("reason", reason.as_deref());
        self.append_act(body, Severity::of("termination", &[through]), by)
    }

    /// Records a start or an end of an upstream server.
    pub fn server(&self, step: ServerStep<'_>) -> Result<(), AuditError> {
        let ServerStep { server, outcome, reason, exit_status } = step;
        let body = RecordBody::new("server").text("server", server.as_str()).text("outcome", outcome);
        let reason = reason.map(|reason| self.without_secrets(reason));
        let body = body.text_if("reason", reason.as_deref()).number_if("exit_status", exit_status);
        self.append_act(body, Severity::of("server", &[outcome]), LocalUser::current())
    }

    /// Records that this process begins to serve: the command, and the digests of what is in force.
    pub fn process_started(
        &self,
        command: &str,
        in_force: ActiveDigests<'_>,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let body = RecordBody::new("process").text("command", command).text("outcome", "started");
        let body = in_force.write_to(body);
        self.append_act(body, Severity::of("process", &["started"]), by)
    }

    /// Records that this process ends, and why.
    pub fn process_stopped(&self, command: &str, reason: &str, by: LocalUser) -> Result<(), AuditError> {
        let body = RecordBody::new("process").text("command", command).text("outcome", "stopped");
        let body = body.text("reason", &self.without_secrets(reason));
        self.append_act(body, Severity::of("process", &["stopped"]), by)
    }

    /// Records that an operator lets this process, which is a host of a cluster, take no new work, or take it again.
    pub fn process_drained(&self, command: &str, is_undone: bool, by: LocalUser) -> Result<(), AuditError> {
        let outcome = if is_undone { "serving" } else { "draining" };
        let body = RecordBody::new("process").text("command", command);
        let body = body.text("through", Channel::of_operator(by).as_str()).text("outcome", outcome);
        self.append_act(body, Severity::of("process", &[outcome]), by)
    }

    /// Records that the viewer of the live page requests an action, or that the action has failed for this reason.
    pub fn page_action(
        &self,
        action: &str,
        viewer: &str,
        failed: Option<&str>,
        by: LocalUser,
    ) -> Result<(), AuditError> {
        let outcome = if failed.is_some() { "failed" } else { "requested" };
        let body = RecordBody::new("action").text("action", action).text("client", viewer);
        let reason = failed.map(|reason| self.without_secrets(reason));
        let body = body.text("through", Channel::Page.as_str()).text("outcome", outcome);
        let body = body.text_if("reason", reason.as_deref());
        self.append_act(body, Severity::of("action", &[outcome]), by)
    }
}
