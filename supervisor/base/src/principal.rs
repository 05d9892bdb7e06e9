//! The identity of an AI client, how long its authentication is valid, and the key of what the client owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockhouse_messages::Owner;
use lockhouse_policies::ClientName;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Returns a new owner for one connection, which no other connection of this process gets.
fn new_connection_owner() -> Owner {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Owner::of_connection(LAST.fetch_add(1, Ordering::Relaxed) + 1)
}

/// Returns the owner for an authenticated name. The owner is the same on every connection with this name. Different names
/// have different owners.
pub fn owner_of_name(name: &str) -> Owner {
    let digest = Sha256::digest(name.as_bytes());
    let mut bits = [0; 16];
    bits.copy_from_slice(&digest[..16]);
    Owner::of_digest(bits)
}

/// An AI client: its identity, and how long its authentication is valid. Clones share the identity.
#[derive(Clone, Debug)]
pub struct Principal(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: Identity,
    validity: Validity,
}

/// The identity of an AI client. It does not include how long the authentication of the client is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    /// The authenticated name. `None` if the client did not authenticate; the name that the client itself
    /// reports is used in that case.
    authenticated: Option<ProvenName>,
    owner: Owner,
    /// The upstream servers and tools that the client is restricted to, in the form of the parameter `servers` of
    /// `run_code`; `None` if it may use all that the policy permits.
    only: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProvenName {
    /// The authenticated name, which shows the authentication method: `token:NAME`, `user:UID` or `SUBJECT@ISSUER`.
    name: String,
    /// The client's name in the policy and the audit log.
    client: ClientName,
}

/// How long the authentication of an AI client is valid.
#[derive(Clone, Debug)]
pub enum Validity {
    /// The authentication is valid as long as the client's connection lasts.
    Connection,
    /// The authentication is valid until this grant (a revocable authorization of the client) is revoked.
    Revocable(Grant),
    Until(Instant),
}

/// An authorization of an AI client that can be revoked. Clones refer to the same authorization.
#[derive(Clone, Debug)]
pub struct Grant {
    /// A number that is unique in this process.
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
    pub fn revoke(&self) {
        self.revoked.cancel();
    }

    /// Waits until the grant (a revocable authorization of an AI client) is revoked.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Principal {
    fn new(identity: Identity, validity: Validity) -> Self {
        Self(Arc::new(Inner { identity, validity }))
    }

    /// Whether both are the same client with the same authentication. An expiry is not compared.
    pub fn is_same(&self, other: &Self) -> bool {
        let same_validity = match (&self.0.validity, &other.0.validity) {
            (Validity::Revocable(one), Validity::Revocable(other)) => one.number == other.number,
            (Validity::Connection, Validity::Connection) | (Validity::Until(_), Validity::Until(_)) => true,
            (Validity::Revocable(_) | Validity::Connection | Validity::Until(_), _) => false,
        };
        self.0.identity == other.0.identity && same_validity
    }

    /// Returns the principal for the user at the command line.
    pub fn local() -> Self {
        Self::unproven(Owner::LOCAL)
    }

    /// Returns a new principal for the AI client at the other end of standard input and output.
    pub fn for_new_connection() -> Self {
        Self::unproven(new_connection_owner())
    }

    /// Returns the principal for all users of an HTTP server without authentication. All of them are one client.
    pub fn anonymous() -> Self {
        Self::unproven(owner_of_name(""))
    }

    fn unproven(owner: Owner) -> Self {
        Self::new(Identity { authenticated: None, owner, only: None }, Validity::Connection)
    }

    /// Creates a principal for the authenticated name `name`, which is `token:NAME`, `user:UID` or `SUBJECT@ISSUER`.
    /// `client` is the client's name in the policy and the audit log. `only` restricts the client to these upstream
    /// servers and tools.
    pub fn authenticated(name: &str, client: &str, only: Option<Vec<String>>, validity: Validity) -> Self {
        let owner = owner_of_name(name);
        let authenticated = Some(ProvenName { name: name.to_owned(), client: ClientName::new(client) });
        Self::new(Identity { authenticated, owner, only }, validity)
    }

    /// Returns the client's name for the policy and the audit log: the name that belongs to its authentication, or
    /// `reported_name`, the name that the client reports itself, if it did not authenticate. Returns `None` if it has
    /// neither.
    pub fn client(&self, reported_name: Option<&str>) -> Option<ClientName> {
        let authenticated =
            self.0.identity.authenticated.as_ref().map(|authenticated| authenticated.client.clone());
        authenticated.or_else(|| reported_name.map(ClientName::new))
    }

    /// Returns the authenticated name, which shows the authentication method and is unique to this client. Returns
    /// `None` if the client did not authenticate.
    pub fn name(&self) -> Option<&str> {
        self.0.identity.authenticated.as_ref().map(|authenticated| authenticated.name.as_str())
    }

    /// Returns a description of the client for operators: its authenticated name, or its connection and the name that
    /// it reports itself. A client cannot report a name that makes the description look like an authenticated name.
    pub fn describe(&self, reported_name: Option<&str>) -> String {
        if let Some(name) = self.name() {
            return name.to_owned();
        }
        let who = match self.0.identity.owner {
            Owner::LOCAL => "the command line".to_owned(),
            owner if owner.is_limited() => "anybody".to_owned(),
            owner => format!("connection {}", owner.number()),
        };
        match reported_name {
            Some(word) => format!("{who} ({word})"),
            None => who,
        }
    }

    pub fn owner(&self) -> Owner {
        self.0.identity.owner
    }

    /// Returns the upstream servers and tools that the client is restricted to; `None` if it may use all that the
    /// policy permits.
    pub fn only(&self) -> Option<&[String]> {
        self.0.identity.only.as_deref()
    }

    /// Whether the authentication can be revoked.
    pub fn is_revocable(&self) -> bool {
        matches!(self.0.validity, Validity::Revocable(_))
    }

    /// Returns the time until the authentication expires; `None` if it has no such time.
    pub fn expires_in(&self) -> Option<Duration> {
        match &self.0.validity {
            Validity::Connection | Validity::Revocable(_) => None,
            Validity::Until(end) => Some(end.saturating_duration_since(Instant::now())),
        }
    }

    /// Waits until the client's authentication is revoked. Waits for ever if it cannot be revoked. The expiry
    /// of a token does not end the wait, because runs that the client started with the token may continue.
    pub async fn revoked(&self) {
        match &self.0.validity {
            Validity::Revocable(grant) => grant.revoked().await,
            Validity::Connection | Validity::Until(_) => std::future::pending().await,
        }
    }

    /// Whether the authentication has expired or was revoked.
    pub fn has_expired(&self) -> bool {
        match &self.0.validity {
            Validity::Connection => false,
            Validity::Revocable(grant) => grant.revoked.is_cancelled(),
            Validity::Until(end) => Instant::now() >= *end,
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
