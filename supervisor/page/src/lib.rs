//! The live page: a web page on which a person sees what Lockhouse does, and decides.
//!
//! `lockhouse page` is a process of its own. It has no connection to an upstream server and no secret of the
//! configuration. It shows what operators' commands show, and can do what they can do: the binary crate implements
//! [`Operator`] with these commands, and keeps [`Sections`] up to date. This crate serves both to browsers
//! ([`server`](serve)), and reads the audit log ([`activity`]).
//!
//! A request passes these checks in order: [`request_check`] (host, origin, kind of request), the session
//! ([`access`]), and for an action, what the viewer may do ([`permissions`]).
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only user is the binary crate: names and types say what fields are.

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
mod sections;
mod server;
pub mod text;
mod viewer;

pub use access::{Access, LoginLink, NoRandomNumbers, TokenCheck, TokenLogin, ValidityCheck};
pub use action::{Action, Decision, Effect, Operator, Scope};
pub use activity::{ActiveRun, Activity, ServerStates};
pub use attachment::Attachment;
pub use error::{ActionError, ErrorCode};
pub use listener::{InvalidAddress, ListenAddress, ListenError, Listener};
pub use sections::{Section, Sections};
pub use server::{PageServer, serve};
pub use viewer::Viewer;
