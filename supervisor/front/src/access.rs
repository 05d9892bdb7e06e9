//! Access of AI clients over HTTP.
//!
//! The front takes the credential of each request from its head and its connection ([`credentials`]), and the engine
//! verifies it. A refusal becomes an HTTP response ([`rejection`]).

mod client_turns;
mod credentials;
mod failure_log;
mod known_access;
mod metadata;
mod peer;
mod rejection;
mod request_authenticator;

pub(crate) use client_turns::{ClientTurn, ClientTurns};
pub(crate) use credentials::ShownBy;
pub(crate) use metadata::metadata_routes;
pub(crate) use peer::Peer;
pub(crate) use rejection::Rejection;
pub(crate) use request_authenticator::{RequestAuthenticator, Verification};
