//! The inputs (events) and outputs (effects) of the state machine of a worker pool.

use std::time::Duration;

use lockhouse_messages::Owner;

use super::super::PoolError;
use super::super::fair_queue::QueueLimits;
use super::super::launch_config::ForkPurpose;

/// Maximum number of forks for sessions that one zygote may have pending. Equals the largest number of sessions that
/// can be configured.
/// Bound: workers and programs.
pub(super) const SESSION_FORKS_MAX: usize = 256;

/// The limits of a pool: how many workers it keeps, and when it replaces its zygote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    /// Minimum number of sandboxed idle workers that the pool keeps ready.
    pub(crate) idle_min: usize,
    /// Maximum number of sandboxed idle workers that the pool keeps ready. The pool keeps more than the minimum when
    /// requests find no idle worker.
    pub(crate) idle: usize,
    /// Maximum number of executions that run in the pool at one time.
    pub(crate) running_max: usize,
    /// Maximum numbers of executions that wait for a worker, in total and for each AI client.
    pub(crate) queue: QueueLimits,
    /// Number of forks after which a zygote is replaced, so that later workers get new random seeds and a new
    /// address-space layout.
    pub(crate) recycle_after: u32,
    /// Age at which a zygote is replaced, so that later workers get new random seeds and a new address-space layout.
    /// An old zygote stays as long as none of its workers has been used.
    pub(crate) recycle_age: Duration,
    /// If set, the first request starts the zygote, and the zygote is retired after this time without a request or a
    /// leased worker.
    pub(crate) unused_max: Option<Duration>,
}

impl PoolLimits {
    /// Returns how many requested forks of one zygote may be pending (not answered yet) at one time.
    pub(crate) fn pending_forks_max(&self) -> usize {
        self.running_max.max(self.idle) + SESSION_FORKS_MAX
    }
}

/// A value in a pool that may become useless: an idle worker whose process has ended, or a request whose caller no
/// longer waits.
pub(crate) trait HasEnded {
    /// Whether the worker process has ended, or the caller no longer waits for the answer to the request.
    fn has_ended(&self) -> bool;
}

/// An event that the state machine of a pool handles. `W` is a worker, `L` a request for a worker for one execution (a
/// lease), `S` a session's request for a worker.
#[derive(Debug)]
pub(crate) enum PoolEvent<W, L, S> {
    /// The pool was started. This is the first event.
    Begin,
    /// This owner (an AI client) requested a worker for one execution.
    Lease(Owner, L),
    /// A session requested a worker, which it keeps for several runs.
    Session(S),
    /// The lease of a worker was dropped. The fields are the owner of the lease, and how long it existed.
    Released(Owner, Duration),
    /// The zygote of this generation has started and is ready to fork.
    ZygoteStarted {
        generation: u32,
    },
    ZygoteNotStarted(PoolError),
    /// A fork resulted in a sandboxed worker, or failed.
    Forked {
        generation: u32,
        purpose: ForkPurpose,
        worker: Result<W, PoolError>,
    },
    /// A worker that was forked by the zygote of this generation crashed in a way that may be the result of an
    /// attack.
    Crashed {
        generation: u32,
    },
    /// The zygote of this generation has ended. Its workers have ended too, and its pending forks will not be answered.
    ZygoteGone {
        generation: u32,
        error: PoolError,
    },
    /// The time that `State::wake_at` returned has come.
    Woken,
}

/// An effect of an event: an action that the pool's task performs.
#[derive(Debug)]
pub(crate) enum PoolEffect<W, L, S> {
    /// Leases a worker to the owner of a request. The execution counts as running until the lease is dropped.
    Lease {
        owner: Owner,
        to: L,
        worker: W,
    },
    /// Gives a worker to the session that requested it.
    HandOver {
        to: S,
        worker: W,
    },
    /// Kills a worker that the pool does not need or that has ended.
    End(W),
    QueueFull {
        to: L,
        waiting: usize,
        retry_after: Duration,
    },
    /// Refuses all waiting requests with the error `reason`.
    Refuse {
        leases: Vec<L>,
        sessions: Vec<S>,
        reason: String,
    },
    /// Starts a zygote with this generation. `reason` is a label for metrics.
    StartZygote {
        generation: u32,
        reason: &'static str,
    },
    /// Retires a zygote: it forks no more workers, and ends when its last worker has ended.
    Retire {
        generation: u32,
    },
    /// Requests forks from the zygote of this generation. `warm` makes workers for executions run a warm-up program.
    Fork {
        generation: u32,
        warm: bool,
        for_runs: usize,
        for_sessions: usize,
    },
    /// Logs a temporary failure to provide a worker.
    Failed(PoolError),
    /// Logs that the current zygote could not be replaced and therefore continues.
    NotReplaced(PoolError),
    /// Makes the error of a failed zygote start known to the callers of the pool, since no other zygote runs.
    NoZygote(PoolError),
}
