//! What a pool's state hears and tells.

use std::time::Duration;

use lockhouse_base::principal::Owner;

use super::super::PoolError;
use super::super::launch::Purpose;
use super::super::queue::QueueBounds;

/// Forks for sessions that one zygote may owe at a time: as many as a configuration permits sessions.
pub(super) const SESSION_FORKS_MAX: usize = 256;

/// How large a pool is, and how long a zygote serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Workers kept ahead of need.
    pub(crate) idle: usize,
    /// Executions at one time.
    pub(crate) running_max: usize,
    pub(crate) queue: QueueBounds,
    /// Forks after which a zygote is replaced.
    pub(crate) recycle_after: u32,
    /// Age at which it is, if it has forked at all.
    pub(crate) recycle_age: Duration,
}

impl Bounds {
    /// Forks that one zygote may owe at a time.
    pub(crate) fn forks_max(&self) -> usize {
        self.running_max.max(self.idle) + SESSION_FORKS_MAX
    }
}

/// What may end by itself while a pool holds it: an idle worker, or the request of somebody who gives up.
pub(crate) trait Ends {
    fn has_ended(&self) -> bool;
}

/// What happens to a pool. `W` is a worker, `L` the request for a lease, `S` that of a session.
#[derive(Debug)]
pub(crate) enum Event<W, L, S> {
    /// The pool begins.
    Begin,
    Lease(Owner, L),
    Session(S),
    /// By whom, and how long it was held.
    Released(Owner, Duration),
    ZygoteStarted {
        generation: u32,
    },
    ZygoteNotStarted(PoolError),
    /// A fork has become a sealed worker, or has not.
    Forked {
        generation: u32,
        purpose: Purpose,
        worker: Result<W, PoolError>,
    },
    /// A worker ended as one does that was attacked from within.
    Crashed {
        generation: u32,
    },
    /// A zygote has ended, and with it every fork that it owes and every worker.
    ZygoteGone {
        generation: u32,
        error: PoolError,
    },
    /// The time of `State::wake_at` has come.
    Woken,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Effect<W, L, S> {
    /// The owner has one more that runs, until it is released.
    Lease {
        owner: Owner,
        to: L,
        worker: W,
    },
    HandOver {
        to: S,
        worker: W,
    },
    /// Nobody needs the worker.
    End(W),
    QueueFull {
        to: L,
        waiting: usize,
        retry_after: Duration,
    },
    /// Everybody who waits is told.
    Refuse {
        leases: Vec<L>,
        sessions: Vec<S>,
        reason: String,
    },
    StartZygote {
        generation: u32,
        reason: &'static str,
    },
    /// The zygote forks no more, and ends with its last worker.
    Retire {
        generation: u32,
    },
    Fork {
        generation: u32,
        warm: bool,
        for_runs: usize,
        for_sessions: usize,
    },
    /// Something failed that may succeed the next time.
    Failed(PoolError),
    /// A zygote could not be replaced, and goes on.
    NotReplaced(PoolError),
    /// There is no zygote, and there will be none without a change of the host.
    NoZygote(PoolError),
}
