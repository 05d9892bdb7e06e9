//! What native functions and the run loop share, first of all the one way to the [`ToolHost`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use lockhouse_protocol::Stream;
use lockhouse_worker::signals;
use lockhouse_worker::tool_host::ToolHost;

use super::positions::Positions;
use super::timers::Timers;

/// The longest text that [`ToolHost::print`] gets at once.
const PRINT_BYTES_MAX: usize = 16 * 1024;

/// Held by each native function of a realm.
pub(super) struct Link {
    /// None in the warm-up: nothing leaves.
    pub(super) host: Cell<Option<&'static dyn ToolHost>>,
    /// Requests without a reply.
    pub(super) under_way: Cell<u32>,
    pub(super) timers: RefCell<Timers>,
    /// Of the program that runs.
    pub(super) positions: RefCell<Option<Positions>>,
    /// Runs of the session so far.
    pub(super) runs: Cell<u32>,
    /// Behind `Math.random`; seeded in each worker.
    random: RefCell<fastrand::Rng>,
    /// The zero of `performance.now()`.
    pub(super) started: Cell<Instant>,
}

impl Link {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            host: Cell::new(None),
            under_way: Cell::new(0),
            timers: RefCell::default(),
            positions: RefCell::default(),
            runs: Cell::new(0),
            random: RefCell::new(fastrand::Rng::with_seed(0)),
            started: Cell::new(Instant::now()),
        })
    }

    /// Gives the realm randomness of its own, from the kernel.
    pub(super) fn reseed(&self) {
        let mut seed = [0; 8];
        // The kernel refuses only before it has gathered any, long before programs start.
        let _ = getrandom::fill(&mut seed);
        self.random.replace(fastrand::Rng::with_seed(u64::from_ne_bytes(seed)));
    }

    /// From 0 up to 1, without 1.
    pub(super) fn random(&self) -> f64 {
        self.random.borrow_mut().f64()
    }

    /// Prints in pieces, and stops early when the code must stop.
    pub(super) fn print(&self, stream: Stream, text: &str) {
        let Some(host) = self.host.get() else { return };
        let mut rest = text;
        while !rest.is_empty() && signals::pending().is_none() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PRINT_BYTES_MAX));
            host.print(stream, piece);
            rest = after;
        }
    }
}
