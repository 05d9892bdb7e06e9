//! Sealed workers, kept ahead of need, one pool for each language.
//!
//! One task owns a pool (`driver.rs`). What happens goes through a state without I/O (`state.rs`), which hands idle workers
//! to those who wait and says how many forks are missing. Refilling waits for a quiet moment, since a fork beside a
//! running execution costs that execution time.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

mod cgroup;
mod driver;
mod figures;
mod launch;
mod lease;
mod process;
pub mod protections;
mod queue;
mod seal;
mod state;
mod worker;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::principal::Owner;
use lockhouse_protocol::Finding;
use tokio::sync::{mpsc, oneshot, watch};

pub use cgroup::{ControlGroups, GroupError};
use driver::Request;
pub use figures::Figures;
use figures::SharedFigures;
pub use launch::ZygoteCommand;
pub use lease::Lease;
pub use process::WorkerProcess;
use protections::Unprotected;
pub use queue::QueueBounds;
pub use seal::Unsealed;
pub use worker::{Death, Worker};
pub use zygote::Prepared;

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The interpreter or the worker binary cannot be started.
    #[error("cannot start {program}: {source}")]
    Start { program: PathBuf, source: std::io::Error },
    /// The zygote found that it cannot work on this host.
    #[error("{0}")]
    Refused(String),
    /// A protection is missing or does not hold.
    #[error("{reason}")]
    Unprotected { reason: Unprotected, findings: Vec<Finding> },
    /// The zygote failed.
    #[error("the zygote failed: {0}")]
    Zygote(String),
    /// A worker failed before it was sealed.
    #[error("a worker could not be made: {0}")]
    Worker(String),
    /// The kernel does not confirm the seal.
    #[error(transparent)]
    Unsealed(#[from] Unsealed),
    /// Too many wait already.
    #[error("{waiting} executions wait for a worker already")]
    QueueFull { waiting: usize, retry_after: Duration },
    /// The pool has ended.
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

/// Characters of a reason that a worker or a zygote gives.
const REASON_CHARS_MAX: usize = 500;

/// What a worker or a zygote says of itself, fit to be shown: one that was replaced could say anything.
fn bounded(reason: &str) -> String {
    lockhouse_policies::printable(reason).chars().take(REASON_CHARS_MAX).collect()
}

/// How a pool is kept.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// In figures.
    pub language: &'static str,
    pub zygote: ZygoteCommand,
    /// Sealed workers kept ahead of need.
    pub idle: usize,
    /// Executions at one time.
    pub running_max: usize,
    /// Executions that may wait.
    pub queue: QueueBounds,
    /// Forks after which the zygote is started anew, for new randomness and a new address layout.
    pub recycle_after: u32,
    /// Age at which it is, if it has forked at all.
    pub recycle_age: Duration,
}

/// Where workers get control groups, or why they get none.
pub type Groups = Result<ControlGroups, Arc<GroupError>>;

/// What became of starting a zygote.
pub type Start = Result<Prepared, Arc<PoolError>>;

/// A handle to the pool's task.
#[derive(Clone, Debug)]
pub struct Pool {
    requests: mpsc::Sender<Request>,
    prepared: watch::Receiver<Option<Start>>,
    figures: SharedFigures,
}

impl Pool {
    /// Starts the pool's task, and with it a zygote.
    pub fn start(settings: PoolSettings, groups: &Groups) -> Self {
        let (prepared, watch) = watch::channel(None);
        let figures = SharedFigures::default();
        let requests = driver::start(settings, groups.clone(), prepared, figures.clone());
        Self { requests, prepared: watch, figures }
    }

    /// Waits for a sealed worker, in turn with other owners.
    pub async fn lease(&self, owner: Owner) -> Result<Lease, PoolError> {
        self.ask(|answer| Request::Lease(owner, answer)).await
    }

    /// Waits for a sealed worker of which a session takes possession. It takes no place of those that run.
    pub async fn for_session(&self) -> Result<Worker, PoolError> {
        self.ask(Request::Session).await
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, PoolError>>) -> Request,
    ) -> Result<T, PoolError> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(request(answer)).await.map_err(|_| PoolError::Closed)?;
        answered.await.map_err(|_| PoolError::Closed)?
    }

    /// What the zygote says of this host, or why there is none. Waits for the first one.
    pub async fn prepared(&self) -> Start {
        let mut prepared = self.prepared.clone();
        match prepared.wait_for(Option::is_some).await {
            Ok(start) => start.clone().unwrap_or_else(|| Err(Arc::new(PoolError::Closed))),
            Err(_) => Err(Arc::new(PoolError::Closed)),
        }
    }

    /// The same as far as is known.
    pub fn found(&self) -> Option<Start> {
        self.prepared.borrow().clone()
    }

    /// What there is of workers, as of the last event.
    pub fn figures(&self) -> Figures {
        self.figures.get()
    }

    /// Protections that this host does not give, as far as is known.
    pub fn reduced(&self) -> Vec<String> {
        let prepared = self.prepared.borrow();
        prepared.iter().flatten().flat_map(|prepared| prepared.reduced.clone()).collect()
    }
}
