//! Authentication of AI clients.
//!
//! A stdio connection needs no credentials, because only the process that started Lockhouse can use its pipes. Over
//! HTTP, [`Authenticator`] authenticates each request and attaches the resulting
//! [`Principal`](lockhouse_base::principal::Principal) to it.

mod auth_error;
mod auth_method;
mod authenticator;
mod failure_log;
mod oauth;
mod peer_credentials;
mod token_format;
mod token_store;

pub use auth_error::Rejection;
pub use auth_method::{AuthMethod, AuthMode};
pub use authenticator::{AuthSettings, AuthSetupError, Authenticator};
pub use oauth::{KeySource, OauthSettings, UntrustedUrl, algorithm, trusted_url};
pub use peer_credentials::{AllowedUsers, ConfiguredUser, Peer, UserLookupError};
pub use token_store::{TokenFile, TokenFileError, TokenName, TokenRecord};
