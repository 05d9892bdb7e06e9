//! The native functions that the realm is built on, and the one way from them to the [`ToolHost`].
#![allow(unsafe_code)] // QuickJS keeps native functions for as long as the runtime; the host is only lent.

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

/// What native functions and the run loop share.
pub(super) struct Link {
    /// Points to a `&dyn ToolHost` while [`Self::lend`] runs.
    host: Cell<Option<*const ()>>,
    /// Requests without a reply.
    pub(super) under_way: Cell<u32>,
    pub(super) timers: RefCell<Timers>,
    /// Of the program that runs.
    pub(super) positions: RefCell<Option<Positions>>,
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
            started: Cell::new(Instant::now()),
        })
    }

    /// Lets native functions reach the host while `body` runs.
    pub(super) fn lend<R>(&self, host: &dyn ToolHost, body: impl FnOnce() -> R) -> R {
        struct Return<'a>(&'a Cell<Option<*const ()>>);
        impl Drop for Return<'_> {
            fn drop(&mut self) {
                self.0.set(None);
            }
        }
        let thin: *const &dyn ToolHost = &raw const host;
        self.host.set(Some(thin.cast()));
        let _return = Return(&self.host);
        body()
    }

    /// Uses the host. `None` when none is lent, as in the warm-up.
    pub(super) fn with_host<R>(&self, body: impl FnOnce(&dyn ToolHost) -> R) -> Option<R> {
        self.host.get().map(|thin| {
            // SAFETY: `lend` sets the pointer from a reference of its own frame and takes it back before that frame
            // ends, also when it unwinds; a `Link` stays on its thread. So the reference it points to is alive.
            let host: &dyn ToolHost = unsafe { *thin.cast::<&dyn ToolHost>() };
            body(host)
        })
    }

    /// Prints in pieces, and stops early when the code must stop.
    pub(super) fn print(&self, stream: Stream, text: &str) {
        self.with_host(|host| {
            let mut rest = text;
            while !rest.is_empty() && signals::pending().is_none() {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(PRINT_BYTES_MAX));
                host.print(stream, piece);
                rest = after;
            }
        });
    }
}
