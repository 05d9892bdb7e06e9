//! The events and effects of a pool's state machine.

use std::time::Duration;

use lockhouse_base::principal::Owner;

use super::super::PoolError;
use super::super::fair_queue::QueueLimits;
use super::super::launch_config::ForkPurpose;

/// Pending forks for sessions of one zygote; equals the largest number of sessions that can be configured.
pub(super) const SESSION_FORKS_MAX: usize = 256;

/// The size of a pool, and when its zygote is replaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    /// Number of sealed idle workers that the pool keeps ready.
    pub(crate) idle: usize,
    /// Maximum number of concurrently running executions.
    pub(crate) running_max: usize,
    pub(crate) queue: QueueLimits,
    /// Number of forks after which a zygote is replaced.
    pub(crate) recycle_after: u32,
    /// Age at which a zygote is replaced, if it has served any execution.
    pub(crate) recycle_age: Duration,
}

impl PoolLimits {
    /// Returns the upper bound of pending forks of one zygote.
    pub(crate) fn pending_forks_max(&self) -> usize {
        self.running_max.max(self.idle) + SESSION_FORKS_MAX
    }
}

/// Something that may end while a pool holds it: an idle worker, or a request whose caller gives up.
pub(crate) trait HasEnded {
    fn has_ended(&self) -> bool;
}

/// An event of a pool. `W` is a worker, `L` a request for a lease, `S` a request of a session.
#[derive(Debug)]
pub(crate) enum Event<W, L, S> {
    /// The pool was started.
    Begin,
    Lease(Owner, L),
    Session(S),
    /// A lease was released: its owner, and how long it was held.
    Released(Owner, Duration),
    ZygoteStarted {
        generation: u32,
    },
    ZygoteNotStarted(PoolError),
    /// A fork became a sealed worker, or failed.
    Forked {
        generation: u32,
        purpose: ForkPurpose,
        worker: Result<W, PoolError>,
    },
    /// A worker crashed in a way that may be an attack.
    Crashed {
        generation: u32,
    },
    /// A zygote has ended, with all of its pending forks and workers.
    ZygoteGone {
        generation: u32,
        error: PoolError,
    },
    /// The time returned by `State::wake_at` has come.
    Woken,
}

/// An effect for the pool's task to perform.
#[derive(Debug)]
pub(crate) enum Effect<W, L, S> {
    /// Leases a worker to the owner of a request, who has one more running execution until the release.
    Lease {
        owner: Owner,
        to: L,
        worker: W,
    },
    HandOver {
        to: S,
        worker: W,
    },
    /// Kills a worker that is not needed.
    End(W),
    QueueFull {
        to: L,
        waiting: usize,
        retry_after: Duration,
    },
    /// Refuses all waiting requests with this error.
    Refuse {
        leases: Vec<L>,
        sessions: Vec<S>,
        reason: String,
    },
    StartZygote {
        generation: u32,
        reason: &'static str,
    },
    /// Retires a zygote: it forks no more and ends with its last worker.
    Retire {
        generation: u32,
    },
    Fork {
        generation: u32,
        warm: bool,
        for_runs: usize,
        for_sessions: usize,
    },
    /// Logs a temporary failure.
    Failed(PoolError),
    /// Logs that the zygote could not be replaced; the current one continues.
    NotReplaced(PoolError),
    /// Reports that no zygote can run on this host.
    NoZygote(PoolError),
}
