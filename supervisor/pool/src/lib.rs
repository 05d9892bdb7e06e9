//! The pools of sandboxed workers. A pool forks and verifies workers before executions need them.
//!
//! # Parts
//!
//! - `state.rs` is the state machine of a pool, without I/O: it assigns workers to waiting requests and determines how
//!   many to fork. `state/generation.rs` renews zygotes, `fair_queue.rs` selects the next waiting client.
//! - `driver.rs` is the task that owns a pool and carries the decisions out. `zygote.rs` controls one zygote.
//! - [`Lease`] is the exclusive hold on a [`Worker`], for one execution or one session.
//! - `seal_verification.rs` verifies a worker's sandbox from outside, by what the kernel reports in `/proc`.
//! - [`protections`] says of each protection what it is for, whether it is required, and what covers its absence.
//!   `lockhouse doctor` shows the same table.
//! - [`ControlGroups`] gives each worker a group, if a part of the hierarchy is delegated. [`Socket`] is the
//!   supervisor's end of a socket. [`WorkerProcess`] sends signals and reads CPU time and memory.
//!
//! # Invariants
//!
//! - No worker gets code before its sandbox was verified. Admission, after this check, is the only constructor of a
//!   [`Worker`].
//! - No worker is reused. Its lease ends with its death, and a session's lease with the session.
//! - Nothing here knows how an interpreter is started: a zygote is a [`ZygoteCommand`].
//! - Nothing here decodes what programs request. A message of a running worker is the engine crate's.
//! - No zygote sees the supervisor's environment or descriptors: it is started with an empty environment and one
//!   socket.
//! - No report of a retired or dead zygote affects the current generation.
//!
//! # Decisions
//!
//! - One task owns each pool. Its state needs no lock, and its decisions are tested without a process.
//! - Idle workers are forked only when no request has arrived for a few milliseconds, since a fork slows down running
//!   executions.
//! - A zygote is replaced after `recycle_after` forks or `recycle_seconds`, and after a crash of one of its workers. It
//!   serves until the new one is ready.
//! - The kernel kills a zygote when the thread that started it exits, so zygotes are started on the supervisor's one
//!   thread, which lives as long as the process.
//! - A socket to a worker waits for data only, and for space only while it is full. tokio's sockets wait for both, and
//!   the kernel reports space each time when the peer has read: every reply woke the supervisor once more, for nothing.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod cgroup;
mod driver;
mod fair_queue;
mod launch_config;
mod lease;
mod proc_status;
pub mod protections;
mod seal_verification;
mod socket;
mod state;
mod stats;
mod worker;
mod worker_process;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::Owner;
use lockhouse_protocol::Finding;
use tokio::sync::{mpsc, oneshot, watch};

pub use cgroup::{ControlGroupError, ControlGroups};
use driver::PoolRequest;
pub use fair_queue::QueueLimits;
pub use launch_config::ZygoteCommand;
pub use lease::Lease;
use protections::ProtectionError;
pub use seal_verification::{SealError, ServiceParent, verify_service};
pub use socket::Socket;
pub use stats::PoolStats;
use stats::SharedStats;
pub use worker::{Worker, WorkerExitReport};
pub use worker_process::{ProcessUsage, WorkerProcess, process_usage};
pub use zygote::ZygoteInfo;

/// Why a pool cannot provide a worker.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The program of the zygote cannot be started. The program is the Python interpreter or the worker binary.
    #[error("cannot start {program}: {source}")]
    Start { program: PathBuf, source: std::io::Error },
    /// The pool provides no worker because the zygote reported that it cannot work on this host, or because zygotes
    /// or forks failed repeatedly. The text is the reason.
    #[error("{0}")]
    Refused(String),
    /// A required sandbox protection is missing on this host, or a protection does not work.
    #[error("{reason}")]
    Unprotected { reason: ProtectionError, findings: Vec<Finding> },
    /// The zygote process failed or violated the protocol. The text says how.
    #[error("the zygote failed: {0}")]
    Zygote(String),
    /// A fork failed, or the new worker failed before it was ready to receive code. The text says why.
    #[error("a worker could not be made: {0}")]
    Worker(String),
    /// The kernel's data in `/proc` does not confirm that the worker is in its sandbox.
    #[error(transparent)]
    Unsealed(#[from] SealError),
    /// The queue is full: `waiting` executions wait for a worker. The AI client should try again after `retry_after`.
    #[error("{waiting} executions wait for a worker already")]
    QueueFull { waiting: usize, retry_after: Duration },
    /// The pool's task has ended.
    #[error("the supervisor is shutting down")]
    Closed,
}

impl PoolError {
    fn zygote(reason: impl Into<String>) -> Self {
        Self::Zygote(reason.into())
    }

    fn system(errno: nix::Error) -> Self {
        Self::Zygote(errno.desc().into())
    }
}

/// Maximum length, in characters, of a message from a worker or zygote that an error quotes.
/// Bound: workers and programs.
const REASON_CHARS_MAX: usize = 500;

/// Truncates a message from a worker or zygote to [`REASON_CHARS_MAX`] and escapes its hidden characters, since a
/// compromised process could send any text.
fn bounded(reason: &str) -> String {
    lockhouse_policies::printable(reason).chars().take(REASON_CHARS_MAX).collect()
}

/// The settings of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSettings {
    /// The kind of the workers, as label of metrics: the language, or `python_packages`.
    pub language: &'static str,
    /// How to start the pool's zygote.
    pub zygote: ZygoteCommand,
    /// Maximum number of sandboxed idle workers that the pool keeps ready. The pool keeps one at first, and more when
    /// requests find no idle worker.
    pub idle: usize,
    /// Maximum number of executions that run in the pool at one time.
    pub running_max: usize,
    /// Maximum numbers of executions that wait for a worker: of all AI clients together, and of each AI client.
    pub queue: QueueLimits,
    /// Number of forks after which the zygote is replaced, so that later workers get new random seeds and a
    /// new address-space layout.
    pub recycle_after: u32,
    /// Age at which the zygote is replaced, so that later workers get new random seeds and a new address-space
    /// layout. An old zygote stays as long as none of its workers has been used.
    pub recycle_age: Duration,
    /// If set, the first request starts the zygote, and the zygote is ended after this time without a request or a leased
    /// worker. If `None`, the zygote runs as long as the pool.
    pub unused_max: Option<Duration>,
}

/// The cgroup hierarchy below which each worker gets its own control group, or the reason why workers have no control
/// groups.
pub type ControlGroupResult = Result<ControlGroups, Arc<ControlGroupError>>;

/// The result of starting a zygote: what it reported about itself and the host, or why the start failed.
pub type ZygoteStart = Result<ZygoteInfo, Arc<PoolError>>;

/// A handle to the task that owns a pool. Clones refer to the same pool.
#[derive(Clone, Debug)]
pub struct Pool {
    requests: mpsc::Sender<PoolRequest>,
    /// The result of the latest zygote start; `None` until the first start has succeeded or failed. A failed start of a
    /// replacement is not reported here, since the previous zygote continues.
    prepared: watch::Receiver<Option<ZygoteStart>>,
    figures: SharedStats,
}

impl Pool {
    /// Starts the task that owns the pool. The task starts the first zygote. `groups` is the cgroup hierarchy for
    /// the control groups of workers, or the reason why they have none.
    pub fn start(settings: PoolSettings, groups: &ControlGroupResult) -> Self {
        let (prepared, watch) = watch::channel(None);
        let figures = SharedStats::default();
        let requests = driver::start(settings, groups.clone(), prepared, figures.clone());
        Self { requests, prepared: watch, figures }
    }

    /// Waits for a sandboxed worker for one execution of this owner. Waiting owners are served in turn.
    pub async fn lease(&self, owner: Owner) -> Result<Lease, PoolError> {
        self.request(|answer| PoolRequest::Lease(owner, answer)).await
    }

    /// Waits for a sandboxed worker for a session, which keeps the worker for several runs. Workers of sessions do
    /// not count towards `running_max`.
    pub async fn take_for_session(&self) -> Result<Worker, PoolError> {
        self.request(PoolRequest::Session).await
    }

    async fn request<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, PoolError>>) -> PoolRequest,
    ) -> Result<T, PoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer)).await.map_err(|_| PoolError::Closed)?;
        answered.await.map_err(|_| PoolError::Closed)?
    }

    /// Waits until the first zygote start has succeeded or failed, and returns the result of the latest start.
    pub async fn zygote_info(&self) -> ZygoteStart {
        let mut prepared = self.prepared.clone();
        match prepared.wait_for(Option::is_some).await {
            Ok(start) => start.clone().unwrap_or_else(|| Err(Arc::new(PoolError::Closed))),
            Err(_) => Err(Arc::new(PoolError::Closed)),
        }
    }

    /// Returns the result of the latest zygote start, or `None` while the first zygote is starting.
    pub fn zygote_info_if_known(&self) -> Option<ZygoteStart> {
        self.prepared.borrow().clone()
    }

    /// Returns the pool's statistics, such as the number of idle workers, as they were after the last event of its
    /// task.
    pub fn stats(&self) -> PoolStats {
        self.figures.get()
    }

    /// Returns the optional sandbox protections that this host lacks, as texts for users. Empty until a zygote has
    /// started.
    pub fn missing_protections(&self) -> Vec<String> {
        let prepared = self.prepared.borrow();
        prepared.iter().flatten().flat_map(|prepared| prepared.reduced.clone()).collect()
    }
}
