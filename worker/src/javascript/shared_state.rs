//! State shared by native functions and the run loop, including the connection to the supervisor ([`ToolHost`]).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use lockhouse_protocol::Stream;
use lockhouse_worker::signals;
use lockhouse_worker::tool_host::ToolHost;

use super::source_map::SourceMap;
use super::timers::Timers;

/// Maximum length of one text passed to [`ToolHost::print`], in bytes.
const PRINT_BYTES_MAX: usize = 16 * 1024;

/// State of a realm, shared by all of its native functions.
pub(super) struct SharedState {
    /// Connection to the supervisor; `None` before the first run and during the warm-up.
    pub(super) host: Cell<Option<&'static dyn ToolHost>>,
    /// Number of requests to the supervisor that have no reply yet.
    pub(super) in_flight: Cell<u32>,
    pub(super) timers: RefCell<Timers>,
    /// Source map of the running program; between runs, of the previous one.
    pub(super) source_map: RefCell<Option<SourceMap>>,
    /// Advice for the case that the running program has no value, such as to end with an expression.
    pub(super) missing_value_advice: Cell<Option<String>>,
    /// Whether the running program has printed anything.
    pub(super) has_printed: Cell<bool>,
    /// Number of runs of the session so far, including the current one; 0 outside of sessions.
    pub(super) runs: Cell<u32>,
    /// Memory limit of the worker's programs, in bytes; 0 in the zygote, which runs no program that uses files.
    pub(super) memory_bytes: Cell<u64>,
    /// Whether the running or the previous program was sent with a description of files of the host.
    pub(super) knows_files: Cell<bool>,
    /// Generator behind `Math.random`, seeded in each worker.
    random: RefCell<fastrand::Rng>,
    /// Start of the run, the origin of `performance.now()`.
    pub(super) started: Cell<Instant>,
}

impl SharedState {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            host: Cell::new(None),
            in_flight: Cell::new(0),
            timers: RefCell::default(),
            source_map: RefCell::default(),
            missing_value_advice: Cell::default(),
            has_printed: Cell::new(false),
            runs: Cell::new(0),
            memory_bytes: Cell::new(0),
            knows_files: Cell::new(false),
            random: RefCell::new(fastrand::Rng::with_seed(0)),
            started: Cell::new(Instant::now()),
        })
    }

    /// Seeds the random number generator from the kernel.
    pub(super) fn reseed(&self) {
        let mut seed = [0; 8];
        // Fails only before the kernel's generator is initialized, long before any program runs.
        let _ = getrandom::fill(&mut seed);
        self.random.replace(fastrand::Rng::with_seed(u64::from_ne_bytes(seed)));
    }

    /// Returns a random number in [0, 1).
    pub(super) fn random(&self) -> f64 {
        self.random.borrow_mut().f64()
    }

    /// Sends printed text to the supervisor in pieces. Stops early on an interrupt.
    pub(super) fn print(&self, stream: Stream, text: &str) {
        self.has_printed.set(true);
        let Some(host) = self.host.get() else { return };
        let mut rest = text;
        while !rest.is_empty() && signals::pending().is_none() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PRINT_BYTES_MAX));
            host.print(stream, piece);
            rest = after;
        }
    }
}
