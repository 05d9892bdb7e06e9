//! Who an AI client is, as far as it is proven, and what is theirs.
//!
//! A connection over standard input proves nothing and needs no proof: whoever started this process holds its other end. Over
//! HTTP each request is admitted by itself, and comes to the front with the [`Principal`] that it was admitted as.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockhouse_policies::ClientName;
use sha2::{Digest, Sha256};

/// Whose a session, a kept result or an execution is. Whoever has not the same one does not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(u128);

impl Owner {
    /// The person at the command line.
    pub(crate) const LOCAL: Self = Self(0);

    /// Whoever holds a connection that has just been made, as long as it lasts.
    pub(crate) fn of_connection() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(u128::from(LAST.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    /// Whoever proves this name, on every connection: of two names it is never the same.
    fn of_name(name: &str) -> Self {
        let digest = Sha256::digest(name.as_bytes());
        let mut bits = [0; 16];
        bits.copy_from_slice(&digest[..16]);
        Self(u128::from_be_bytes(bits))
    }
}

/// An AI client that was admitted. Copies are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Principal(Arc<Admitted>);

#[derive(Debug)]
struct Admitted {
    /// None where nothing is proven, and a client's own word has to do.
    name: Option<ClientName>,
    owner: Owner,
    /// Of what the policy permits, this alone, as in `servers` of `run_code`.
    only: Option<Vec<String>>,
}

impl Principal {
    /// The one client at the other end of a pipe.
    pub(crate) fn of_connection() -> Self {
        Self(Arc::new(Admitted { name: None, owner: Owner::of_connection(), only: None }))
    }

    /// Everybody who reaches a door that asks for no proof: they are one client.
    pub(crate) fn anybody() -> Self {
        Self(Arc::new(Admitted { name: None, owner: Owner::of_name(""), only: None }))
    }

    /// Who has proven to be `name`, in the words of one kind of proof: `token:NAME`, `user:UID`, `SUBJECT@ISSUER`. The policy
    /// and the audit log know them as `client`.
    pub(crate) fn proven(name: &str, client: &str, only: Option<Vec<String>>) -> Self {
        let owner = Owner::of_name(name);
        Self(Arc::new(Admitted { name: Some(ClientName::of(client)), owner, only }))
    }

    /// The name by which the policy and the audit log know them; what the client calls itself counts only where nothing is
    /// proven.
    pub(crate) fn client(&self, own_word: Option<&str>) -> Option<ClientName> {
        self.0.name.clone().or_else(|| own_word.map(ClientName::of))
    }

    pub(crate) fn owner(&self) -> Owner {
        self.0.owner
    }

    /// Of what the policy permits, this alone.
    pub(crate) fn only(&self) -> Option<&[String]> {
        self.0.only.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_one_owner_and_a_connection_is_nobody_else() {
        let token = |name: &str| Principal::proven(&format!("token:{name}"), name, None).owner();
        assert_eq!(token("a"), token("a"));
        assert_ne!(token("a"), token("b"));
        assert_ne!(Principal::of_connection().owner(), Principal::of_connection().owner());
        assert_ne!(Principal::proven("user:1", "a", None).owner(), token("a"));
        assert_ne!(Principal::anybody().owner(), Owner::LOCAL);
    }

    #[test]
    fn what_is_proven_counts_more_than_what_a_client_says_of_itself() {
        let name = |of: Option<ClientName>| of.map(|name| name.as_str().to_owned());
        let proven = Principal::proven("token:desk", "desk", None);
        assert_eq!(name(proven.client(Some("boss"))).as_deref(), Some("desk"));
        assert_eq!(name(Principal::anybody().client(Some("boss"))).as_deref(), Some("boss"));
        assert_eq!(name(Principal::anybody().client(None)), None);
    }
}
