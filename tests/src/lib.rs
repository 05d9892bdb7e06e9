//! The harness of the black-box tests: the built `lockhouse` in a directory of its own, met as a person or an AI
//! client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod approver;
mod bare_zygote;
mod door;
mod finished;
mod hostile;
mod http_server;
mod issuer;
mod lockhouse;
mod native;
mod person;
mod processes;
mod questions;
mod session;
mod table;
mod tokens;

pub use approver::Approver;
pub use bare_zygote::{BareZygote, End};
pub use door::{ALL_VERSIONS, Door, Events, LATEST_VERSION, Reply, Visitor, read_to_end};
pub use finished::Finished;
pub use hostile::{Attack, Control, Outcome};
pub use http_server::{HttpAnswer, HttpRequest, HttpServer};
pub use issuer::{Issuer, Signer};
pub use lockhouse::{Lockhouse, fixture_server, target_directory};
pub use native::{NativeAttack, layers_in_words, native_attacks, native_worker};
pub use person::{Person, Says};
pub use processes::{Process, children, descendants, is_alive, kill, wait_until};
pub use questions::{Figures, Question, catalogues, questions};
pub use session::{Ended, Session, structured};
pub use table::{Table, ensure, equal};
pub use tokens::tokens;

/// Both languages, as `--language` and `run_code` take them.
pub const LANGUAGES: [&str; 2] = ["python", "typescript"];
