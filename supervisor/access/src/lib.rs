//! Verifies the credentials of AI clients that connect over HTTP or a Unix domain socket.
//!
//! # Parts
//!
//! - [`Authenticator`] verifies one credential with the configured methods ([`AuthMethod`]) and returns the identity
//!   and its grant.
//! - [`TokenFile`] has the tokens that Lockhouse issued: names, hashes, grants and expiry (`token_format.rs` is their
//!   text). The command `lockhouse token` writes it; a running engine checks it for changes on every request.
//! - `oauth.rs` verifies access tokens that an authorization server signed for this server (RFC 9068), with keys that
//!   are fetched when they are needed.
//! - `certificates.rs` verifies client certificates of TLS, by the signature with which the client proved to have the key.
//! - [`AllowedUsers`] are users of this host, [`UnixPeer`] is the user at the other end of a connection.
//!
//! # Invariants
//!
//! - Nothing here knows HTTP or MCP. The front takes a credential from a request, and the engine passes it to this
//!   crate.
//! - No front verifies a credential. The front does not depend on this crate.
//! - No user id comes from a message. [`UnixPeer`] has one constructor, which asks the kernel.
//! - No token is stored. The file has hashes, and a comparison takes the same time for every token.
//! - No error repeats a credential.
//! - No earlier request of a connection counts: each request is authenticated on its own.
//!
//! # Decisions
//!
//! - Tokens are checked against the file on every request, so that a revoked token is refused at once, without a
//!   message between processes.
//! - A grant can only narrow what the policy permits. So a stolen token never has more rights than its owner's policy.
//! - A certificate that a proxy passes on comes without its client's signature, so it authenticates nobody: it only restricts the use
//!   of a token that is bound to it, for which no front needs to be believed.
//! - Keys of an authorization server are fetched only over HTTPS or from this host ([`trusted_url`]), since whoever
//!   supplies the keys decides who is authenticated.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod allowed_users;
mod auth_method;
mod authenticator;
mod certificates;
mod exact_name;
mod memberships;
mod oauth;
mod token_format;
mod token_store;
mod unix_peer;

pub use allowed_users::{
    AllowedUsers, ConfiguredUser, UserLookupError, client_name_of_user, principal_of_user,
};
pub use auth_method::{AuthMethod, AuthMode};
pub use authenticator::{AuthSettings, AuthSetupError, Authenticator, Evidence};
pub use certificates::{CertificateName, CertificateSettings, TrustFileError, proven_by_certificate};
pub use oauth::{
    BegunLogin, CodeClient, CodeLogin, CodeLoginError, DpopProof, DpopUse, KeySource, OauthSettings,
    UntrustedUrl, algorithm, trusted_url,
};
pub use token_store::{TokenFile, TokenFileError, TokenName, TokenRecord};
pub use unix_peer::UnixPeer;
