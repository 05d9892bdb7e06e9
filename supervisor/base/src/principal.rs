//! The identity of an AI client, how long its authentication is valid, and the key of what the client owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockhouse_messages::{InputSupport, Owner};
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

/// Who asks: an AI client or the user at the command line. Names the client, says how long its authentication is valid,
/// and what the client reports of itself. Clones share the authentication.
#[derive(Clone, Debug)]
pub struct Principal {
    authentication: Arc<Authentication>,
    /// The name that the client reports itself. It counts only if the client has no authenticated name.
    reported_name: Option<ClientName>,
    abilities: InputSupport,
}

#[derive(Debug)]
struct Authentication {
    /// The authenticated name. `None` if the client did not authenticate.
    name: Option<ProvenName>,
    owner: Owner,
    /// The upstream servers and tools that the client is restricted to, in the form of the parameter `servers` of
    /// `run_code`; `None` if it may use all that the policy permits.
    only: Option<Vec<String>>,
    validity: Validity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProvenName {
    /// The authenticated name, which shows the authentication method: `token:NAME`, `user:UID`, `certificate NAME` or `SUBJECT@ISSUER`.
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
    fn new(authentication: Authentication) -> Self {
        let (reported_name, abilities) = (None, InputSupport::default());
        Self { authentication: Arc::new(authentication), reported_name, abilities }
    }

    /// Whether both are the same client with the same authentication. An expiry is not compared.
    pub fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&*self.authentication, &*other.authentication);
        let same_validity = match (&one.validity, &other.validity) {
            (Validity::Revocable(one), Validity::Revocable(other)) => one.number == other.number,
            (Validity::Connection, Validity::Connection) | (Validity::Until(_), Validity::Until(_)) => true,
            (Validity::Revocable(_) | Validity::Connection | Validity::Until(_), _) => false,
        };
        (&one.name, one.owner, &one.only) == (&other.name, other.owner, &other.only) && same_validity
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
        Self::new(Authentication { name: None, owner, only: None, validity: Validity::Connection })
    }

    /// Creates a principal for the authenticated name `name`, which is `token:NAME`, `user:UID`, `certificate NAME` or `SUBJECT@ISSUER`.
    /// `client` is the client's name in the policy and the audit log. `only` restricts the client to these upstream
    /// servers and tools.
    pub fn authenticated(name: &str, client: &str, only: Option<Vec<String>>, validity: Validity) -> Self {
        let owner = owner_of_name(name);
        let client = ClientName::new(client).authenticated([]);
        let proven = ProvenName { name: name.to_owned(), client };
        Self::new(Authentication { name: Some(proven), owner, only, validity })
    }

    /// Returns the same principal with what its authentication proves besides the name, by which roles of the policy apply.
    #[must_use]
    pub fn member_of(self, memberships: Vec<String>) -> Self {
        let mut principal = self;
        // No clone exists before this.
        if let Some(Authentication { name: Some(proven), .. }) = Arc::get_mut(&mut principal.authentication) {
            proven.client = proven.client.clone().authenticated(memberships);
        }
        principal
    }

    /// Returns the same principal with the name and the abilities that its AI client reports.
    #[must_use]
    pub fn reporting(self, name: Option<&str>, abilities: InputSupport) -> Self {
        Self { reported_name: name.map(ClientName::new), abilities, ..self }
    }

    /// Returns the client's name for the policy and the audit log: the name that belongs to its authentication, or the
    /// name that the client reports itself, if it did not authenticate. Returns `None` if it has neither.
    pub fn client(&self) -> Option<&ClientName> {
        self.authenticated_client().or(self.reported_name.as_ref())
    }

    /// Returns the client's name for the policy that belongs to its authentication; `None` if it did not authenticate.
    pub fn authenticated_client(&self) -> Option<&ClientName> {
        self.authentication.name.as_ref().map(|proven| &proven.client)
    }

    /// Returns what the AI client can ask its user.
    pub fn abilities(&self) -> InputSupport {
        self.abilities
    }

    /// Returns the authenticated name, which shows the authentication method and is unique to this client. Returns
    /// `None` if the client did not authenticate.
    pub fn name(&self) -> Option<&str> {
        self.authentication.name.as_ref().map(|proven| proven.name.as_str())
    }

    /// Returns a description of the client for operators: its authenticated name, or its connection and the name that
    /// it reports itself. A client cannot report a name that makes the description look like an authenticated name.
    pub fn describe(&self) -> String {
        if let Some(name) = self.name() {
            return name.to_owned();
        }
        let who = match self.owner() {
            Owner::LOCAL => "the command line".to_owned(),
            owner if owner.is_limited() => "anybody".to_owned(),
            owner => format!("connection {}", owner.number()),
        };
        match &self.reported_name {
            Some(name) => format!("{who} ({})", name.as_str()),
            None => who,
        }
    }

    pub fn owner(&self) -> Owner {
        self.authentication.owner
    }

    /// Returns the upstream servers and tools that the client is restricted to; `None` if it may use all that the
    /// policy permits.
    pub fn only(&self) -> Option<&[String]> {
        self.authentication.only.as_deref()
    }

    /// Whether the authentication can be revoked.
    pub fn is_revocable(&self) -> bool {
        matches!(self.authentication.validity, Validity::Revocable(_))
    }

    /// Returns the time until the authentication expires; `None` if it has no such time.
    pub fn expires_in(&self) -> Option<Duration> {
        match &self.authentication.validity {
            Validity::Connection | Validity::Revocable(_) => None,
            Validity::Until(end) => Some(end.saturating_duration_since(Instant::now())),
        }
    }

    /// Waits until the client's authentication is revoked. Waits for ever if it cannot be revoked. The expiry
    /// of a token does not end the wait, because runs that the client started with the token may continue.
    pub async fn revoked(&self) {
        match &self.authentication.validity {
            Validity::Revocable(grant) => grant.revoked().await,
            Validity::Connection | Validity::Until(_) => std::future::pending().await,
        }
    }

    /// Whether the authentication has expired or was revoked.
    pub fn has_expired(&self) -> bool {
        match &self.authentication.validity {
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

    fn reporting(principal: Principal, name: &str) -> Principal {
        principal.reporting(Some(name), InputSupport::default())
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
        let name = |of: &Principal| of.client().map(|name| name.as_str().to_owned());
        assert_eq!(name(&reporting(authenticated("token:desk", "desk"), "boss")).as_deref(), Some("desk"));
        assert_eq!(name(&reporting(Principal::anonymous(), "boss")).as_deref(), Some("boss"));
        assert_eq!(name(&Principal::anonymous()), None);
    }

    #[test]
    fn a_name_in_words_stands_for_nobody_else() {
        assert_eq!(reporting(authenticated("token:desk", "desk"), "boss").describe(), "token:desk");
        assert_eq!(reporting(Principal::anonymous(), "token:desk").describe(), "anybody (token:desk)");
        let (one, other) = (Principal::for_new_connection(), Principal::for_new_connection());
        assert!(one.describe().starts_with("connection "));
        assert!(reporting(one, "a").describe() != reporting(other, "a").describe(), "two connections");
    }

    #[test]
    fn who_comes_through_the_door_is_limited_and_who_started_the_process_is_not() {
        assert!(authenticated("token:desk", "desk").owner().is_limited());
        assert!(Principal::anonymous().owner().is_limited());
        assert!(!Principal::for_new_connection().owner().is_limited());
        assert!(!Principal::local().owner().is_limited());
    }
}
