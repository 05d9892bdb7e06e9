//! The identity of an AI client, how long it is valid, and the key of what the client owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockhouse_policies::ClientName;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The key of a client's sessions, stored results and executions. A client sees only objects with its own key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner(u128);

impl Owner {
    /// The user at the command line.
    pub const LOCAL: Self = Self(0);
    /// A bit that is set for owners made from a name, and for no other.
    const NAMED: u128 = 1 << 127;

    /// Creates a new owner for one connection. It is valid as long as the connection lasts.
    pub fn for_new_connection() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(u128::from(LAST.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    /// Returns the owner for the authenticated name of an AI client. A name has the same owner on every connection,
    /// and different names have different owners.
    pub fn from_name(name: &str) -> Self {
        let digest = Sha256::digest(name.as_bytes());
        let mut bits = [0; 16];
        bits.copy_from_slice(&digest[..16]);
        Self(u128::from_be_bytes(bits) | Self::NAMED)
    }

    /// The owner as hexadecimal digits, for the name of a directory.
    pub fn to_hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// Whether the limits for each client apply. They apply to clients that share this process with others, and not
    /// to the user who started the process.
    pub fn is_limited(self) -> bool {
        self.0 & Self::NAMED != 0
    }
}

/// An authenticated or local AI client. Clones share the identity.
#[derive(Clone, Debug)]
pub struct Principal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: Identity,
    validity: Validity,
}

/// The identity of an AI client without its validity, in a form that can be serialized.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// `None` if the client did not authenticate; then the name that it reports itself is used.
    #[serde(rename = "proven")]
    authenticated: Option<ProvenName>,
    owner: Owner,
    /// The servers and tools that the client is restricted to, in the form of `servers` of `run_code`; `None` for all
    /// that the policy permits.
    only: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProvenName {
    /// The authenticated name with its method: `token:NAME`, `user:UID` or `SUBJECT@ISSUER`.
    name: String,
    /// The client's name in the policy and the audit log.
    client: ClientName,
}

/// How long an authentication is valid.
#[derive(Clone, Debug)]
pub enum Validity {
    /// The authentication is valid as long as the client's connection lasts.
    Connection,
    /// The authentication is valid until this grant is revoked.
    Revocable(Grant),
    Until(Instant),
}

/// An authorization that can be revoked. Clones share it.
#[derive(Clone, Debug)]
pub struct Grant {
    number: u64,
    revoked: CancellationToken,
}

impl Default for Grant {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { number: LAST.fetch_add(1, Ordering::Relaxed) + 1, revoked: CancellationToken::new() }
    }
}

impl Grant {
    /// The number of the grant, unique in this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn revoke(&self) {
        self.revoked.cancel();
    }

    /// Waits until the grant is revoked.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Principal {
    /// Creates a principal for an identity that was authenticated in another part of the process.
    pub fn new(identity: Identity, validity: Validity) -> Self {
        Self(Arc::new(Inner { identity, validity }))
    }

    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The grant, if the authentication can be revoked.
    pub fn grant(&self) -> Option<&Grant> {
        match &self.0.validity {
            Validity::Revocable(grant) => Some(grant),
            Validity::Connection | Validity::Until(_) => None,
        }
    }

    /// The user at the command line.
    pub fn local() -> Self {
        Self::unproven(Owner::LOCAL)
    }

    /// The AI client at the other end of standard input and output.
    pub fn for_new_connection() -> Self {
        Self::unproven(Owner::for_new_connection())
    }

    /// Everybody who uses an HTTP server without authentication. All of them are one client.
    pub fn anonymous() -> Self {
        Self::unproven(Owner::from_name(""))
    }

    fn unproven(owner: Owner) -> Self {
        Self::new(Identity { authenticated: None, owner, only: None }, Validity::Connection)
    }

    /// Creates a principal for an authenticated name: `token:NAME`, `user:UID` or `SUBJECT@ISSUER`. `client` is its
    /// name in the policy and the audit log.
    pub fn authenticated(name: &str, client: &str, only: Option<Vec<String>>, validity: Validity) -> Self {
        let owner = Owner::from_name(name);
        let authenticated = Some(ProvenName { name: name.to_owned(), client: ClientName::new(client) });
        Self::new(Identity { authenticated, owner, only }, validity)
    }

    /// The client's name for the policy and the audit log: the authenticated name, or else the name that the client
    /// reports itself.
    pub fn client(&self, reported_name: Option<&str>) -> Option<ClientName> {
        let authenticated =
            self.0.identity.authenticated.as_ref().map(|authenticated| authenticated.client.clone());
        authenticated.or_else(|| reported_name.map(ClientName::new))
    }

    /// The authenticated name with its method, unique to this client; `None` without authentication.
    pub fn name(&self) -> Option<&str> {
        self.0.identity.authenticated.as_ref().map(|authenticated| authenticated.name.as_str())
    }

    /// Describes the client for operators: its authenticated name, or its connection and the name that it reports
    /// itself. No client can report a name so that it looks like an authenticated one.
    pub fn describe(&self, reported_name: Option<&str>) -> String {
        if let Some(name) = self.name() {
            return name.to_owned();
        }
        let who = match self.0.identity.owner {
            Owner::LOCAL => "the command line".to_owned(),
            owner if owner.is_limited() => "anybody".to_owned(),
            Owner(number) => format!("connection {number}"),
        };
        match reported_name {
            Some(word) => format!("{who} ({word})"),
            None => who,
        }
    }

    pub fn owner(&self) -> Owner {
        self.0.identity.owner
    }

    /// The servers and tools that the client is restricted to; `None` for all that the policy permits.
    pub fn only(&self) -> Option<&[String]> {
        self.0.identity.only.as_deref()
    }

    /// Waits until the authentication is revoked; for ever if it cannot be. A token that expires does not stop what
    /// was begun with it.
    pub async fn revoked(&self) {
        match &self.0.validity {
            Validity::Revocable(grant) => grant.revoked().await,
            Validity::Connection | Validity::Until(_) => std::future::pending().await,
        }
    }

    /// Waits until the authentication is no longer valid, because it expired or was revoked; for ever if it stays
    /// valid.
    pub async fn expired(&self) {
        match &self.0.validity {
            Validity::Connection => std::future::pending().await,
            Validity::Revocable(grant) => grant.revoked().await,
            Validity::Until(end) => tokio::time::sleep_until(*end).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authenticated(name: &str, client: &str) -> Principal {
        Principal::authenticated(name, client, None, Validity::Connection)
    }

    #[test]
    fn one_name_is_one_owner_and_a_connection_is_nobody_else() {
        let token = |name: &str| authenticated(&format!("token:{name}"), name).owner();
        assert_eq!(token("a"), token("a"));
        assert_ne!(token("a"), token("b"));
        assert_ne!(Principal::for_new_connection().owner(), Principal::for_new_connection().owner());
        assert_ne!(authenticated("user:1", "a").owner(), token("a"));
        assert_ne!(Principal::anonymous().owner(), Owner::LOCAL);
    }

    #[test]
    fn what_is_proven_counts_more_than_what_a_client_says_of_itself() {
        let name = |of: Option<ClientName>| of.map(|name| name.as_str().to_owned());
        assert_eq!(name(authenticated("token:desk", "desk").client(Some("boss"))).as_deref(), Some("desk"));
        assert_eq!(name(Principal::anonymous().client(Some("boss"))).as_deref(), Some("boss"));
        assert_eq!(name(Principal::anonymous().client(None)), None);
    }

    #[test]
    fn a_name_in_words_stands_for_nobody_else() {
        assert_eq!(authenticated("token:desk", "desk").describe(Some("boss")), "token:desk");
        assert_eq!(Principal::anonymous().describe(Some("token:desk")), "anybody (token:desk)");
        let (one, other) = (Principal::for_new_connection(), Principal::for_new_connection());
        assert!(one.describe(Some("a")) != other.describe(Some("a")), "two connections");
        assert!(one.describe(None).starts_with("connection "));
    }

    #[test]
    fn who_comes_through_the_door_is_limited_and_who_started_the_process_is_not() {
        assert!(authenticated("token:desk", "desk").owner().is_limited());
        assert!(Principal::anonymous().owner().is_limited());
        assert!(!Principal::for_new_connection().owner().is_limited());
        assert!(!Principal::local().owner().is_limited());
    }
}
