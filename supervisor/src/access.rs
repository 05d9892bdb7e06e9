//! How an AI client proves who it is.
//!
//! A connection over standard input proves nothing and needs no proof: whoever started this process holds its other end. Over
//! HTTP each request is admitted by itself ([`Access`]), and comes to the front with the [`Principal`](crate::principal::Principal)
//! that it was admitted as.

mod admission;
mod failures;
mod oauth;
mod peer;
mod refused;
mod token;
mod tokens;

pub(crate) use admission::{Access, AccessSettings, Auth, Way};
pub(crate) use oauth::{KeySource, OauthSettings, algorithm, trusted_url};
pub(crate) use peer::{NamedUser, Peer, Users};
pub(crate) use refused::Refused;
pub(crate) use tokens::{Issued, TokenFile, TokenName};
