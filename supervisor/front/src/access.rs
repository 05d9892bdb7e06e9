//! How an AI client proves who it is.
//!
//! A connection over standard input proves nothing and needs no proof: whoever started this process holds its other end. Over
//! HTTP each request is admitted by itself ([`Access`]), and comes to the front with the [`Principal`](lockhouse_base::principal::Principal)
//! that it was admitted as.

mod admission;
mod auth;
mod failures;
mod oauth;
mod peer;
mod refused;
mod token;
mod tokens;

pub use admission::{Access, AccessError, AccessSettings};
pub use auth::{Auth, Way};
pub use oauth::{KeySource, OauthSettings, UntrustedUrl, algorithm, trusted_url};
pub use peer::{NamedUser, Peer, Users, UsersError};
pub use refused::Refused;
pub use tokens::{Issued, TokenFile, TokenFileError, TokenName};
