//! Pools of sealed workers that are forked ahead of need, one pool for each language.
//!
//! One task owns a pool (`driver.rs`). A state machine without I/O (`state.rs`) assigns idle workers to waiting
//! requests and determines how many forks are needed. Idle workers are refilled in quiet moments, since a fork slows
//! down running executions.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Used only by the crates of this workspace; obvious fields need no comment.

mod cgroup;
mod driver;
mod fair_queue;
mod launch_config;
mod lease;
pub mod protections;
mod seal_verification;
mod state;
mod stats;
mod worker;
mod worker_process;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::principal::Owner;
use lockhouse_protocol::Finding;
use tokio::sync::{mpsc, oneshot, watch};

pub use cgroup::{ControlGroupError, ControlGroups};
use driver::Request;
pub use fair_queue::QueueLimits;
pub use launch_config::ZygoteCommand;
pub use lease::Lease;
use protections::ProtectionError;
pub use seal_verification::SealError;
pub use stats::PoolStats;
use stats::SharedStats;
pub use worker::{Worker, WorkerExitReport};
pub use worker_process::WorkerProcess;
pub use zygote::ZygoteInfo;

/// Why a pool cannot provide a worker.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The interpreter or the worker binary cannot be started.
    #[error("cannot start {program}: {source}")]
    Start { program: PathBuf, source: std::io::Error },
    /// The zygote reported that it cannot work on this host, for this reason.
    #[error("{0}")]
    Refused(String),
    /// A required protection is missing or broken.
    #[error("{reason}")]
    Unprotected { reason: ProtectionError, findings: Vec<Finding> },
    /// The zygote failed, for this reason.
    #[error("the zygote failed: {0}")]
    Zygote(String),
    /// A worker failed before it was sealed, for this reason.
    #[error("a worker could not be made: {0}")]
    Worker(String),
    /// The kernel does not confirm that the worker is sealed.
    #[error(transparent)]
    Unsealed(#[from] SealError),
    /// As many executions already wait for a worker as the queue admits.
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

/// Maximum number of characters of a worker's or zygote's message that an error quotes.
const REASON_CHARS_MAX: usize = 500;

/// Truncates a message from a worker or zygote and escapes hidden characters, since a compromised one could send
/// anything.
fn bounded(reason: &str) -> String {
    lockhouse_policies::printable(reason).chars().take(REASON_CHARS_MAX).collect()
}

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Language label for metrics.
    pub language: &'static str,
    pub zygote: ZygoteCommand,
    /// Number of sealed idle workers that the pool keeps ready.
    pub idle: usize,
    /// Maximum number of concurrently running executions.
    pub running_max: usize,
    /// Maximum numbers of executions that wait for a worker.
    pub queue: QueueLimits,
    /// Number of forks after which the zygote is replaced, for new randomness and a new address-space layout.
    pub recycle_after: u32,
    /// Age at which the zygote is replaced, if it has served any execution.
    pub recycle_age: Duration,
}

/// The control groups for workers, or why there are none.
pub type ControlGroupResult = Result<ControlGroups, Arc<ControlGroupError>>;

/// The result of starting a zygote.
pub type ZygoteStart = Result<ZygoteInfo, Arc<PoolError>>;

/// A handle to the pool's task.
#[derive(Clone, Debug)]
pub struct Pool {
    requests: mpsc::Sender<Request>,
    prepared: watch::Receiver<Option<ZygoteStart>>,
    figures: SharedStats,
}

impl Pool {
    /// Starts the pool's task and its first zygote.
    pub fn start(settings: PoolSettings, groups: &ControlGroupResult) -> Self {
        let (prepared, watch) = watch::channel(None);
        let figures = SharedStats::default();
        let requests = driver::start(settings, groups.clone(), prepared, figures.clone());
        Self { requests, prepared: watch, figures }
    }

    /// Waits for a sealed worker, fairly among owners.
    pub async fn lease(&self, owner: Owner) -> Result<Lease, PoolError> {
        self.request(|answer| Request::Lease(owner, answer)).await
    }

    /// Waits for a sealed worker for a session. It uses no lease slot.
    pub async fn take_for_session(&self) -> Result<Worker, PoolError> {
        self.request(Request::Session).await
    }

    async fn request<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, PoolError>>) -> Request,
    ) -> Result<T, PoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer)).await.map_err(|_| PoolError::Closed)?;
        answered.await.map_err(|_| PoolError::Closed)?
    }

    /// Waits for the first zygote and returns its findings, or why it did not start.
    pub async fn zygote_info(&self) -> ZygoteStart {
        let mut prepared = self.prepared.clone();
        match prepared.wait_for(Option::is_some).await {
            Ok(start) => start.clone().unwrap_or_else(|| Err(Arc::new(PoolError::Closed))),
            Err(_) => Err(Arc::new(PoolError::Closed)),
        }
    }

    /// Returns the result of the latest zygote start, or `None` while the first one starts.
    pub fn zygote_info_if_known(&self) -> Option<ZygoteStart> {
        self.prepared.borrow().clone()
    }

    /// Returns the pool's counters as of its last event.
    pub fn stats(&self) -> PoolStats {
        self.figures.get()
    }

    /// Returns optional protections that this host lacks, as far as known.
    pub fn missing_protections(&self) -> Vec<String> {
        let prepared = self.prepared.borrow();
        prepared.iter().flatten().flat_map(|prepared| prepared.reduced.clone()).collect()
    }
}
