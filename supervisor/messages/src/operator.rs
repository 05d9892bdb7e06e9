//! The requests of operators, such as listing or ending sessions, and the responses to them. They are about the runs,
//! sessions and results of all AI clients.

use std::path::PathBuf;

use lockhouse_protocol::ResultHandle;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Role;

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
    /// Find the file with this handle that a run of any AI client returned.
    FindFile(ResultHandle),
    /// List the stored results of all AI clients.
    ListResults,
    /// Return a part of a stored result, which begins at this byte of its JSON.
    ReadResult {
        handle: ResultHandle,
        offset: u64,
    },
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
            | Self::Reload => Role::Operate,
            Self::FindFile(_) | Self::ListResults | Self::ReadResult { .. } => Role::Audit,
        }
    }

    /// Whether the request changes something.
    pub fn has_effects(&self) -> bool {
        match self {
            Self::EndSessions(_) | Self::EndRuns(_) | Self::Reload | Self::Stop { .. } => true,
            Self::Health
            | Self::ListSessions
            | Self::ListRuns
            | Self::FindFile(_)
            | Self::ListResults
            | Self::ReadResult { .. } => false,
        }
    }
}

/// The response to a request of an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorResponse {
    /// The health of the process, as `/health` reports it.
    Health(Value),
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
    Results(Vec<ResultListing>),
    /// A part of the JSON of a stored result.
    ResultPart {
        text: String,
        /// Whether the result ends with this part.
        is_last: bool,
    },
    /// The engine refused the request, and nothing changed.
    Refused {
        reason: String,
    },
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

/// A file that a run returned. The operator is of the same user as the process, or root, and reads the file itself.
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
