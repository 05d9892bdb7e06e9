//! Who an AI client is, as far as it is proven, and what is theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockhouse_policies::ClientName;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Whose a session, a kept result or an execution is. Whoever has not the same one does not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner(u128);

impl Owner {
    /// The person at the command line.
    pub const LOCAL: Self = Self(0);
    /// Set in those of names, and in no other.
    const NAMED: u128 = 1 << 127;

    /// Whoever holds a connection that has just been made, as long as it lasts.
    pub fn of_connection() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(u128::from(LAST.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    /// Whoever proves this name, on every connection: of two names it is never the same.
    pub fn of_name(name: &str) -> Self {
        let digest = Sha256::digest(name.as_bytes());
        let mut bits = [0; 16];
        bits.copy_from_slice(&digest[..16]);
        Self(u128::from_be_bytes(bits) | Self::NAMED)
    }

    /// As text, for the name of a folder.
    pub fn to_hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// Whether it shares this process with others, so that what is configured for each client holds for it. Whoever started
    /// the process has it for themselves.
    pub fn is_limited(self) -> bool {
        self.0 & Self::NAMED != 0
    }
}

/// An AI client that was admitted. Copies are the same one.
#[derive(Clone, Debug)]
pub struct Principal(Arc<Admitted>);

#[derive(Debug)]
struct Admitted {
    identity: Identity,
    standing: Standing,
}

/// Who it is: what of a principal can be written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// None where nothing is proven, and a client's own word has to do.
    proven: Option<Proven>,
    owner: Owner,
    /// Of what the policy permits, this alone, as in `servers` of `run_code`.
    only: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Proven {
    /// In the words of one kind of proof: `token:NAME`, `user:UID`, `SUBJECT@ISSUER`.
    name: String,
    /// As the policy and the audit log know them.
    client: ClientName,
}

/// How long what was proven counts.
#[derive(Clone, Debug)]
pub enum Standing {
    /// As long as the connection.
    Lasting,
    /// Until it is revoked.
    Revocable(Grant),
    Until(Instant),
}

/// What was granted until it is revoked. Copies are the same one.
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
    /// Names it among the grants of this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn revoke(&self) {
        self.revoked.cancel();
    }

    /// Waits until it is revoked.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

impl Principal {
    /// Who was admitted elsewhere, as their identity was written down there.
    pub fn admitted(identity: Identity, standing: Standing) -> Self {
        Self(Arc::new(Admitted { identity, standing }))
    }

    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// What can be revoked of it.
    pub fn grant(&self) -> Option<&Grant> {
        match &self.0.standing {
            Standing::Revocable(grant) => Some(grant),
            Standing::Lasting | Standing::Until(_) => None,
        }
    }

    /// The person at the command line.
    pub fn local() -> Self {
        Self::unproven(Owner::LOCAL)
    }

    /// The one client at the other end of a pipe.
    pub fn of_connection() -> Self {
        Self::unproven(Owner::of_connection())
    }

    /// Everybody who reaches a door that asks for no proof: they are one client.
    pub fn anybody() -> Self {
        Self::unproven(Owner::of_name(""))
    }

    fn unproven(owner: Owner) -> Self {
        Self::admitted(Identity { proven: None, owner, only: None }, Standing::Lasting)
    }

    /// Who has proven to be `name`, in the words of one kind of proof: `token:NAME`, `user:UID`, `SUBJECT@ISSUER`. The policy
    /// and the audit log know them as `client`.
    pub fn proven(name: &str, client: &str, only: Option<Vec<String>>, standing: Standing) -> Self {
        let owner = Owner::of_name(name);
        let proven = Some(Proven { name: name.to_owned(), client: ClientName::of(client) });
        Self::admitted(Identity { proven, owner, only }, standing)
    }

    /// The name by which the policy and the audit log know them; what the client calls itself counts only where nothing is
    /// proven.
    pub fn client(&self, own_word: Option<&str>) -> Option<ClientName> {
        let proven = self.0.identity.proven.as_ref().map(|proven| proven.client.clone());
        proven.or_else(|| own_word.map(ClientName::of))
    }

    /// What was proven, in words that stand for nobody else.
    pub fn name(&self) -> Option<&str> {
        self.0.identity.proven.as_ref().map(|proven| proven.name.as_str())
    }

    /// Who it is, for people: what was proven, or the connection, with what its client calls itself. No client can call itself
    /// what another one has proven.
    pub fn in_words(&self, own_word: Option<&str>) -> String {
        if let Some(name) = self.name() {
            return name.to_owned();
        }
        let who = match self.0.identity.owner {
            Owner::LOCAL => "the command line".to_owned(),
            owner if owner.is_limited() => "anybody".to_owned(),
            Owner(number) => format!("connection {number}"),
        };
        match own_word {
            Some(word) => format!("{who} ({word})"),
            None => who,
        }
    }

    pub fn owner(&self) -> Owner {
        self.0.identity.owner
    }

    /// Of what the policy permits, this alone.
    pub fn only(&self) -> Option<&[String]> {
        self.0.identity.only.as_deref()
    }

    /// Waits until it is taken back, which may be never. A token that only ends in time lets go on what it began.
    pub async fn revoked(&self) {
        match &self.0.standing {
            Standing::Revocable(grant) => grant.revoked().await,
            Standing::Lasting | Standing::Until(_) => std::future::pending().await,
        }
    }

    /// Waits until what was proven counts no more, which may be never.
    pub async fn over(&self) {
        match &self.0.standing {
            Standing::Lasting => std::future::pending().await,
            Standing::Revocable(grant) => grant.revoked().await,
            Standing::Until(end) => tokio::time::sleep_until(*end).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proven(name: &str, client: &str) -> Principal {
        Principal::proven(name, client, None, Standing::Lasting)
    }

    #[test]
    fn one_name_is_one_owner_and_a_connection_is_nobody_else() {
        let token = |name: &str| proven(&format!("token:{name}"), name).owner();
        assert_eq!(token("a"), token("a"));
        assert_ne!(token("a"), token("b"));
        assert_ne!(Principal::of_connection().owner(), Principal::of_connection().owner());
        assert_ne!(proven("user:1", "a").owner(), token("a"));
        assert_ne!(Principal::anybody().owner(), Owner::LOCAL);
    }

    #[test]
    fn what_is_proven_counts_more_than_what_a_client_says_of_itself() {
        let name = |of: Option<ClientName>| of.map(|name| name.as_str().to_owned());
        assert_eq!(name(proven("token:desk", "desk").client(Some("boss"))).as_deref(), Some("desk"));
        assert_eq!(name(Principal::anybody().client(Some("boss"))).as_deref(), Some("boss"));
        assert_eq!(name(Principal::anybody().client(None)), None);
    }

    #[test]
    fn a_name_in_words_stands_for_nobody_else() {
        assert_eq!(proven("token:desk", "desk").in_words(Some("boss")), "token:desk");
        assert_eq!(Principal::anybody().in_words(Some("token:desk")), "anybody (token:desk)");
        let (one, other) = (Principal::of_connection(), Principal::of_connection());
        assert!(one.in_words(Some("a")) != other.in_words(Some("a")), "two connections");
        assert!(one.in_words(None).starts_with("connection "));
    }

    #[test]
    fn who_comes_through_the_door_is_limited_and_who_started_the_process_is_not() {
        assert!(proven("token:desk", "desk").owner().is_limited());
        assert!(Principal::anybody().owner().is_limited());
        assert!(!Principal::of_connection().owner().is_limited());
        assert!(!Principal::local().owner().is_limited());
    }
}
