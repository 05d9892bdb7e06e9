//! The live page: a web page on which a person sees what Lockhouse does, and decides.
//!
//! `lockhouse page` is a process of its own. It shows what operators' commands show, and can do what they can do.
//!
//! # Parts
//!
//! - [`serve`] and [`PageServer`] serve the page (`router.rs`, `api.rs`, `events.rs`). `assets.rs` embeds its files.
//! - `request_check.rs` rejects other hosts, other origins and other kinds of requests. [`Access`] has one-time links,
//!   the browser that the process opened, tokens, and the sessions that they begin. `permissions.rs` says what a
//!   [`Viewer`] may do.
//! - [`Sections`] has what is shown now, as JSON; every open page gets a section again when it has changed.
//! - [`Operator`] is the interface for what the page does: an [`Action`] is carried out by the code of operators'
//!   commands.
//! - [`Activity`] reads the audit log: runs with their calls, denials, latencies, savings.
//! - [`Listener`] opens the socket: a loopback port or a Unix domain socket. [`Attachment`] is what a viewer downloads.
//!
//! # Invariants
//!
//! - Nothing here connects to an upstream server, reads the configuration or knows one of its secrets.
//! - Nothing here depends on the front or the engine crate: `base` and `audit` are all that the page knows.
//! - No request is served before it passed, in this order, host and origin, the session, and for an action the viewer's
//!   permissions.
//! - No action is carried out on something else than what was shown: it names what the viewer saw, and fails if that
//!   has changed.
//! - No text of a program or a server is shown as markup, and no file of a run is displayed by the browser.
//! - No page listens to other hosts.
//!
//! # Decisions
//!
//! - The page is a process of its own, so that a fault in what browsers reach affects no run and reaches no secret.
//! - Sections are replaced as a whole. A page that was disconnected gets every section again, and needs no history.
//! - A link works once, and begins a session with two secrets: a cookie that no script can read, and a key that the
//!   page's script sends. Browsers send cookies to every port of a host, so a server of another user of this machine
//!   could receive the cookie alone.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod access;
mod action;
mod activity;
mod api;
mod assets;
mod attachment;
mod error;
mod events;
mod listener;
mod page_state;
mod permissions;
mod request_check;
mod response_headers;
mod router;
mod section;
mod sections;
mod server;
pub mod text;
mod viewer;

pub use access::{Access, BrowserLogin, LoginLink, NoRandomNumbers, TokenCheck, TokenLogin, ValidityCheck};
pub use action::{Action, Decision, KeyProof, NewKey, Operator, PageLogin, PageRecord, Scope, ToolEffect};
pub use activity::{ActiveRun, Activity, ServerStates};
pub use attachment::Attachment;
pub use error::{ActionError, ErrorCode};
pub use listener::{InvalidAddress, ListenError, Listener, PageAddress};
pub use section::Section;
pub use sections::Sections;
pub use server::{PageServer, serve};
pub use viewer::{PageRights, Viewer, ViewerToken};
