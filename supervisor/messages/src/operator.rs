//! The requests of operators, such as listing or ending sessions, and the responses to them. They are about the runs,
//! sessions and results of all AI clients.

use std::path::PathBuf;

use lockhouse_protocol::{ResultHandle, ServerName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    DefinitionReview, EnrolmentCode, KeyChallenge, KeyListing, KeyRegistration, Presence, PresenceProof,
    Role, SecretName, SecretValue,
};

/// A request of an operator: what the engine must do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorRequest {
    Health,
    ListSessions,
    EndSessions(EndedSessions),
    ListRuns,
    EndRuns(EndedRuns),
    /// Reload the configuration, as on SIGHUP.
    Reload,
    /// End this process. Active runs end with the reason.
    Stop {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// Return the path of the file with this handle that a run of any AI client returned. Only for the commands of earlier
    /// versions, which read the file themselves.
    FindFile(ResultHandle),
    /// Return a part of the file with this handle that a run of any AI client returned. The part begins at this byte.
    ReadFile {
        handle: ResultHandle,
        offset: u64,
    },
    /// List the stored results of all AI clients.
    ListResults,
    /// Return a part of a stored result, which begins at this byte of its JSON.
    ReadResult {
        handle: ResultHandle,
        offset: u64,
    },
    /// Restrict the policy at once by the text of a policy file that the person proposes, whom the engine of the system serves.
    /// Without a text, take the proposal back.
    ProposePolicy {
        text: Option<String>,
    },
    /// Show how the proposal differs from the approved policy.
    ShowProposal,
    /// Make the proposal with this digest the approved policy. Root needs no proof.
    AcceptProposal {
        digest: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        proof: Option<PresenceProof>,
    },
    /// Return what a key must sign to accept the proposal with this digest. `port` is that of `localhost` at which the page is
    /// that asks the key.
    ChallengeProposal {
        digest: String,
        port: u16,
    },
    /// Begin the login of the person to an upstream server over HTTP, with these scopes in addition to the configured ones. Root
    /// needs no proof.
    BeginLogin {
        server: ServerName,
        scopes: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        proof: Option<PresenceProof>,
    },
    /// Return how far that login is. `redirect` is the address to which the browser was redirected, if the person pasted it.
    ContinueLogin {
        server: ServerName,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        redirect: Option<String>,
    },
    /// Delete the stored token of an upstream server.
    LogOut {
        server: ServerName,
    },
    /// End the sessions and runs of the AI clients of the user with this authenticated name, and remove their results and files.
    ForgetUser {
        name: String,
    },
    /// Set a secret of a server, which no request reads back. Only for root.
    SetSecret {
        name: SecretName,
        value: SecretValue,
    },
    /// Connect to a server of the system's engine, and show its tools whose definitions nobody has accepted.
    ReviewDefinitions {
        server: String,
    },
    /// Accept all definitions of a server, which have this digest. Root needs no proof.
    AcceptDefinitions {
        server: String,
        digest: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        proof: Option<PresenceProof>,
    },
    /// Return what a key must sign to accept the definitions with this digest, as for [`Self::ChallengeProposal`].
    ChallengeDefinitions {
        server: String,
        digest: String,
        port: u16,
    },
    /// Permit the registration of one key. Only for root.
    BeginEnrolment,
    /// Register a key.
    EnrolKey(Box<KeyRegistration>),
    /// Requests the hosts of the cluster. Answered with [`OperatorResponse::Hosts`].
    ListHosts,
    /// Let this host of the cluster take no new work, or take it again. What it has is served. Answered with
    /// [`OperatorResponse::Hosts`].
    DrainHost {
        undo: bool,
    },
    /// Let this host of the cluster end when its runs have ended, at the latest after `drain_seconds` of the configuration.
    LeaveCluster,
    /// Requests what is active on the other hosts of the cluster. Answered with [`OperatorResponse::Elsewhere`].
    ListElsewhere,
    /// List the registered keys.
    ListKeys,
    /// Remove the registered key with this credential id. Only for root.
    RemoveKey(String),
}

/// Which sessions a request ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedSessions {
    /// All sessions of all AI clients.
    All,
    /// The session with this name. The request is refused if several AI clients have a session with the name.
    Named(String),
    /// The session with this [`SessionListing::id`].
    Numbered(u64),
}

/// Which runs a request ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedRuns {
    All,
    /// The run with this [`RunListing::execution`].
    One(String),
}

impl OperatorRequest {
    /// Returns the role that a grant must have for this request. The content of results is for those who may read what
    /// programs did, and not for those who operate the service.
    pub fn role(&self) -> Role {
        match self {
            Self::Health
            | Self::ListSessions
            | Self::EndSessions(_)
            | Self::ListRuns
            | Self::EndRuns(_)
            | Self::Stop { .. }
            | Self::Reload
            | Self::ProposePolicy { .. }
            | Self::ShowProposal
            | Self::ContinueLogin { .. }
            | Self::LogOut { .. }
            | Self::ForgetUser { .. }
            | Self::ReviewDefinitions { .. }
            | Self::EnrolKey(_)
            | Self::ListHosts
            | Self::ListElsewhere
            | Self::DrainHost { .. }
            | Self::LeaveCluster
            | Self::ListKeys => Role::Operate,
            Self::AcceptProposal { .. }
            | Self::ChallengeProposal { .. }
            | Self::BeginLogin { .. }
            | Self::SetSecret { .. }
            | Self::AcceptDefinitions { .. }
            | Self::ChallengeDefinitions { .. } => Role::Policy,
            Self::BeginEnrolment | Self::RemoveKey(_) => Role::Approve,
            Self::FindFile(_) | Self::ReadFile { .. } | Self::ListResults | Self::ReadResult { .. } => {
                Role::Audit
            }
        }
    }

    /// Whether the request changes something.
    pub fn has_effects(&self) -> bool {
        match self {
            Self::EndSessions(_)
            | Self::EndRuns(_)
            | Self::DrainHost { .. }
            | Self::LeaveCluster
            | Self::Reload
            | Self::Stop { .. }
            | Self::ProposePolicy { .. }
            | Self::AcceptProposal { .. }
            | Self::BeginLogin { .. }
            | Self::ContinueLogin { .. }
            | Self::LogOut { .. }
            | Self::ForgetUser { .. }
            | Self::SetSecret { .. }
            | Self::AcceptDefinitions { .. }
            | Self::BeginEnrolment
            | Self::EnrolKey(_)
            | Self::RemoveKey(_) => true,
            Self::Health
            | Self::ListHosts
            | Self::ListElsewhere
            | Self::ListKeys
            | Self::ListSessions
            | Self::ListRuns
            | Self::FindFile(_)
            | Self::ReadFile { .. }
            | Self::ListResults
            | Self::ReadResult { .. }
            | Self::ShowProposal
            | Self::ChallengeProposal { .. }
            | Self::ReviewDefinitions { .. }
            | Self::ChallengeDefinitions { .. } => false,
        }
    }
}

/// The response to a request of an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorResponse {
    /// The health of the process, as `/health` reports it.
    Health(Value),
    Hosts(HostListing),
    Elsewhere(Vec<HostActivity>),
    Sessions(Vec<SessionListing>),
    /// The names of the sessions that were ended. Their active runs are being stopped.
    EndedSessions(Vec<String>),
    Runs(Vec<RunListing>),
    /// The execution ids of the runs that are being stopped.
    EndedRuns(Vec<String>),
    Reloaded(ReloadReport),
    /// The process ends its runs, and then itself.
    Stopping,
    File(FileLocation),
    /// A part of a file that a run returned.
    FilePart {
        /// The name of the file.
        name: String,
        content: Vec<u8>,
        /// Whether the file ends with this part.
        is_last: bool,
    },
    Results(Vec<ResultListing>),
    /// A part of the JSON of a stored result.
    ResultPart {
        text: String,
        /// Whether the result ends with this part.
        is_last: bool,
    },
    Proposal(PolicyProposal),
    Challenge(KeyChallenge),
    Login(LoginProgress),
    LoggedOut(Logout),
    /// What belonged to the user is removed from the process.
    UserForgotten,
    Definitions(Box<DefinitionReview>),
    /// The definitions of this number of tools were accepted.
    DefinitionsAccepted(usize),
    /// One key can be registered with this code, for this number of seconds.
    Enrolment {
        code: EnrolmentCode,
        seconds: u64,
    },
    KeyEnrolled(KeyListing),
    Keys(Vec<KeyListing>),
    /// The key with this credential id was removed.
    KeyRemoved(String),
    /// The engine refused the request, and nothing changed.
    Refused {
        reason: String,
    },
}

/// The policy that a person proposes for the engine of the system. It restricts the approved policy, and permits nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyProposal {
    /// SHA-256 of it and of the approved policy. `None` if there is no proposal.
    pub digest: Option<String>,
    /// The differences to the approved policy, first those that may permit more, which have no effect yet.
    pub changes: Vec<ProposedChange>,
    /// Number of differences that `changes` leaves out.
    pub left_out: usize,
    /// What the person must prove to accept it. Root accepts it without a proof, and with `none` only root does.
    pub presence: Presence,
}

/// The result of a logout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Logout {
    /// Nothing was stored.
    Nothing,
    /// The credential was deleted. If it was a token, the authorization server has revoked it.
    Complete,
    /// The tokens were deleted, but the authorization server did not revoke them. The text is the reason.
    NotRevoked(String),
}

impl Logout {
    /// Whether anything was stored.
    #[must_use]
    pub fn had_token(&self) -> bool {
        *self != Self::Nothing
    }
}

/// How far a login to an upstream server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginProgress {
    /// It has not begun: the person must prove first that they are there.
    Unproven(Presence),
    Starting,
    /// The person must open this address in a browser.
    Waiting {
        address: String,
    },
    Granted {
        /// When the token expires, in seconds since 1970, if the authorization server said so.
        expires: Option<u64>,
        /// Whether it is renewed without another login.
        is_renewable: bool,
    },
    /// The reason.
    Failed(String),
}

/// One entry of a policy that a proposal changes, adds or removes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedChange {
    pub table: String,
    pub entry: String,
    /// The value in the approved policy. `None` if it has no such entry.
    pub approved: Option<String>,
    /// The value in the proposal. `None` if it has no such entry.
    pub proposed: Option<String>,
    /// Whether it may permit more than the approved policy.
    pub widens: bool,
}

/// The hosts of a cluster, as one of them knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostListing {
    /// Empty if the engine is part of no cluster.
    pub hosts: Vec<ListedHost>,
    /// Why the state that the hosts share cannot be reached. `None` if it can.
    pub problem: Option<String>,
}

/// One host of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedHost {
    pub name: String,
    /// Whether this is the host that answers.
    pub is_this: bool,
    /// Where the others reach it.
    pub address: String,
    /// The version of Lockhouse.
    pub version: String,
    /// `serving` or `draining`.
    pub state: String,
    pub runs: usize,
    /// Number of runs that could begin at once.
    pub free: usize,
    pub sessions: usize,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// Seconds since it renewed its lease.
    pub heard_s: u64,
    /// SHA-256 of the configuration in force, and of the policy. Empty if there is none.
    pub configuration: String,
    pub policy: String,
}

/// What is active on another host of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostActivity {
    pub host: String,
    /// Whether the host has answered. If it has not, the lists are empty.
    pub has_answered: bool,
    pub runs: Vec<RunListing>,
    pub sessions: Vec<SessionListing>,
}

/// One session in the list of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionListing {
    /// ID of the session, unique within the engine's process.
    pub id: u64,
    pub name: String,
    /// The owner of the session: an authenticated identity or a connection, with the name that the AI client
    /// reports itself.
    pub owner: String,
    pub language: String,
    /// The state of the session: `idle` or `running`.
    pub state: String,
    pub runs: u32,
    /// Seconds since the last run of the session ended. While a run is active, seconds since the start of that run.
    pub unused_s: u64,
    pub age_s: u64,
}

/// One active run in the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunListing {
    pub execution: String,
    /// The name of the AI client that started the run. `None` for `lockhouse run`, and for an AI client that does not
    /// give its name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    pub language: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// The state of the run: `running`, `waiting` (for a worker or for its session), or `waiting for a person` (for
    /// the answer to a question).
    pub state: String,
    /// What the oldest pending question of the run asks about, such as the approval of a call. `None` if no question
    /// is pending.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_for: Option<String>,
    /// For how many seconds the oldest question of the run has been pending. `None` if no question is pending.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_s: Option<f64>,
    /// Seconds since the run was requested.
    pub age_s: f64,
    /// The process id of the worker, its CPU time and its resident memory. For a worker of a session, the CPU time
    /// includes that of earlier runs. `None` while the run has no worker.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worker: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_bytes: Option<u64>,
}

/// What a reload of the configuration has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Whether the files as they are now are in force. If not, the previous configuration stays in force.
    pub in_force: bool,
    /// The generation of the configuration that is in force after the reload.
    pub generation: u64,
    /// Why the new configuration was refused. `None` if it is in force.
    pub error: Option<String>,
    /// The configuration tables whose changes take effect only when the process is restarted.
    pub restart_required: Vec<String>,
    /// The digests of what is in force after the reload. Empty from a process of an earlier version.
    #[serde(default)]
    pub digests: DigestsInForce,
}

/// SHA-256 digests of what is in force in a process, as the audit log has them; each `None` if there is no such file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestsInForce {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub configuration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requirements: Option<String>,
}

/// Where a file is that a run returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLocation {
    pub name: String,
    pub path: PathBuf,
}

/// One stored result in the list of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultListing {
    pub handle: String,
    /// What was stored: `value` for a value or output that was too long for an answer, `answer` for the answer of a
    /// background run.
    pub kind: String,
    pub bytes: u64,
    /// Seconds since the result was stored, and until it expires.
    pub age_s: f64,
    pub expires_s: f64,
}
