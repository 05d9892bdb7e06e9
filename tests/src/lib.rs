//! The harness of the black-box tests: starts the built `lockhouse` in a temporary directory and talks to it as a
//! user or an AI client does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod ambiguous_heads;
mod approver;
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

pub use ambiguous_heads::ambiguous_heads;
pub use approver::Approver;
pub use bare_zygote::{BareZygote, End};
pub use build_products::{fixture_server, target_directory};
pub use case_table::{Table, ensure, equal};
pub use client_user::{ClientUser, UserReply};
pub use command_output::CommandOutput;
pub use daemon::{ALL_VERSIONS, Daemon, Events, HttpClient, LATEST_VERSION, Reply, read_to_end};
pub use hostile::{Attack, Control, Outcome};
pub use http_server::{HttpAnswer, HttpRequest, HttpServer};
pub use issuer::{Issuer, Signer};
pub use lockhouse::{EARLIER_PRODUCTS_SERVERS, Lockhouse};
pub use loopback_client::{OTHER_ACCOUNT, get_as, get_confined, loopback_addresses};
pub use native_attacks::{NativeAttack, layers_in_words, native_attacks, native_worker};
pub use page::{Page, PageBrowser, PageEvents, PageReply, request};
pub use processes::{Process, children, descendants, front_of, is_alive, kill, processes, wait_until};
pub use search_questions::{Figures, Question, catalogues, questions};
pub use session::{Ended, Session, structured};
pub use sse_server::{SseServer, SseStream, accepted};
pub use terminal::{Desktop, on_terminal};
pub use tokens::tokens;
pub use unix_user::{UnixUser, permit_all_accounts};

/// The languages of submitted code, as `--language` and `run_code` accept them.
pub const LANGUAGES: [&str; 2] = ["python", "typescript"];
