//! Verifies the credentials of AI clients that connect over HTTP.
//!
//! The engine asks [`Authenticator`] about each credential that a front passes on. The command line manages the tokens
//! in [`TokenFile`].
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Only the crates of this workspace use it; obvious fields need no comment.

mod allowed_users;
mod auth_method;
mod authenticator;
mod oauth;
mod token_format;
mod token_store;
mod unix_peer;

pub use allowed_users::{AllowedUsers, ConfiguredUser, UserLookupError};
pub use auth_method::{AuthMethod, AuthMode};
pub use authenticator::{AuthSettings, AuthSetupError, Authenticator, Evidence};
pub use oauth::{KeySource, OauthSettings, UntrustedUrl, algorithm, trusted_url};
pub use token_store::{TokenFile, TokenFileError, TokenName, TokenRecord};
pub use unix_peer::UnixPeer;
