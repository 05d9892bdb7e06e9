//! The harness of the black-box tests: starts the built `lockhouse` in a temporary directory and talks to it as a user
//! or an AI client does.
//!
//! # Parts
//!
//! - [`Lockhouse`] runs commands in a directory of its own. [`Session`] is an AI client over standard input and output,
//!   [`Daemon`] one over HTTP. [`Approver`] answers questions, [`ClientUser`] is the user of an AI client, [`Page`] is
//!   a browser without a screen.
//! - [`HttpServer`], [`SseServer`] and [`Issuer`] are servers whose answers the test chooses. `tests/servers/` has
//!   upstream servers: `scripted.py` follows a script and can be killed, stopped or flooded; `tracker.py` has typed
//!   tools and constant answers; `canned.py`, `flooding.py`, `accounts.py` and `conformance.py` serve single suites.
//! - [`BareZygote`] starts a zygote without a supervisor, so that incomplete sandboxes can be tested.
//! - [`BareService`] starts service processes, such as the front for HTTP, that `native-service` lets attack.
//! - [`Attack`] is a hostile program of `tests/hostile/`: its header names the layers that block it, its outcome, and
//!   whether the same program must succeed outside of the sandbox. [`NativeAttack`] is one in C, which `native-worker`
//!   runs.
//! - [`Table`] collects the rows of a test. A failed test prints all rows that failed.
//! - `src/bin/` has benchmarks, load, and the programs that tests start: `hostile-peer` violates the protocol,
//!   `lacking` runs a program as if the host lacked a protection.
//!
//! # Suites
//!
//! A suite is a module of one of two test programs: `tests/tests/product.rs` has all that need the built programs,
//! `tests/tests/repository.rs` those that read sources and documents. The first lines of `tests/tests/SUITE.rs` say
//! what a suite tests. CONTRIBUTING.md has the commands.
//!
//! # Invariants
//!
//! - No black-box test uses a type of the supervisor's crates: it knows what a user knows. Peers of the sandbox use the
//!   crates `protocol` and `worker`.
//! - No test depends on another one, on their order, or on files outside of its directory.
//! - No test waits for a fixed time where it can wait for an event ([`wait_until`]).
//! - No hostile program is trusted to report its own failure: outcomes are read from the process and the supervisor.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on panics; tests print tables"
)]

mod ambiguous_heads;
mod approver;
mod bare_service;
mod bare_zygote;
mod build_products;
mod case_table;
mod client_user;
mod command_output;
mod daemon;
mod hostile;
mod http_server;
mod issuer;
mod lockhouse;
mod loopback_client;
mod native_attacks;
mod page;
mod processes;
mod search_questions;
mod session;
mod sse_server;
mod terminal;
mod tokens;
mod unix_user;

use std::hash::{BuildHasher, Hasher};

pub use ambiguous_heads::ambiguous_heads;
pub use approver::Approver;
pub use bare_service::BareService;
pub use bare_zygote::{BareZygote, End};
pub use build_products::{fixture_server, target_directory};
pub use case_table::{Table, ensure, equal};
pub use client_user::{ClientUser, UserReply};
pub use command_output::CommandOutput;
pub use daemon::{ALL_VERSIONS, Daemon, Events, HttpClient, LATEST_VERSION, Reply, read_to_end};
pub use hostile::{Attack, Control, Ending, Outcome};
pub use http_server::{HttpAnswer, HttpRequest, HttpServer};
pub use issuer::{Issuer, Signer};
pub use lockhouse::{EARLIER_PRODUCTS_SERVERS, Lockhouse};
pub use loopback_client::{OTHER_ACCOUNT, get_as, get_confined, loopback_addresses};
pub use native_attacks::{NativeAttack, layers_in_words, native_attacks, native_worker};
pub use page::{Page, PageBrowser, PageEvents, PageReply, request};
pub use processes::{
    Process, children, descendants, front_of, fronts_of, is_alive, kill, processes, signer_of, wait_until,
};
pub use search_questions::{Figures, Question, catalogues, questions};
pub use session::{Ended, Session, structured};
pub use sse_server::{SseServer, SseStream, accepted};
pub use terminal::{Desktop, on_terminal};
pub use tokens::tokens;
pub use unix_user::{UnixUser, permit_all_accounts};

/// Returns a port of 127.0.0.1 for a server that the test starts, and may start again: one that the kernel gives no connection.
///
/// # Panics
/// If no such port is free.
#[must_use]
pub fn free_port() -> u16 {
    /// Below those that Linux gives connections by default, which begin at 32,768.
    const PORTS: std::ops::Range<u16> = 10_000..32_000;
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let random = || {
        let hash = std::collections::hash_map::RandomState::new().build_hasher().finish();
        PORTS.start + u16::try_from(hash % u64::from(PORTS.end - PORTS.start)).unwrap_or_default()
    };
    std::iter::repeat_with(random).take(1_000).find(is_free).expect("a free port")
}

/// Whether the full forms of tests run (`LOCKHOUSE_TESTS=full`), which take longer.
#[must_use]
pub fn is_full() -> bool {
    std::env::var("LOCKHOUSE_TESTS").is_ok_and(|form| form == "full")
}

/// The languages of submitted code, as `--language` and `run_code` accept them.
pub const LANGUAGES: [&str; 2] = ["python", "typescript"];
