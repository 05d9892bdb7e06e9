//! The table of the grants of one front. It is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_access::Evidence;
use lockhouse_base::principal::Principal;
use lockhouse_messages::{Credential, GrantId, Owner};
use sha2::{Digest, Sha256};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Maximum number of grants of one front. If the table is full, the client with the most grants loses the grant that it
/// has not used for the longest time. Its next request with that credential gets a new grant.
/// Bound: engines and fronts.
const GRANTS_MAX: usize = 4_096;

/// Identifies a credential, without containing a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CredentialKey {
    Token([u8; 32]),
    /// A token with a proof. Who sends it without one learns of no other grant.
    BoundToken([u8; 32]),
    /// A token with the certificate of its client.
    CertificateToken([u8; 32]),
    Certificate([u8; 32]),
    User(u32),
    None,
}

impl CredentialKey {
    pub(super) fn of(evidence: Evidence<'_>) -> Self {
        match evidence {
            Evidence::Token(token) => Self::Token(Sha256::digest(token.as_bytes()).into()),
            Evidence::BoundToken(token, _) => Self::BoundToken(Sha256::digest(token.as_bytes()).into()),
            Evidence::CertificateToken(token, certificate) => {
                let both = Sha256::new().chain_update(token).chain_update(certificate.own());
                Self::CertificateToken(both.finalize().into())
            }
            Evidence::Certificate(certificate) => Self::Certificate(Sha256::digest(certificate.own()).into()),
            Evidence::User(peer) => Self::User(peer.uid()),
            Evidence::Nothing => Self::None,
        }
    }
}

#[derive(Debug)]
struct Grant {
    credential: CredentialKey,
    principal: Principal,
    /// Whether the credential was refused after it had been accepted.
    is_suspended: bool,
    /// The time of the last use, as a count of uses.
    last_used: u64,
    /// The credential itself. `None` without a cluster: no other host needs it.
    passed_on: Option<Arc<Credential>>,
    /// Stops the task that waits for the revocation.
    _stop: DropGuard,
}

#[derive(Debug, Default)]
pub(super) struct GrantTable {
    grants: HashMap<GrantId, Grant>,
    by_credential: HashMap<CredentialKey, GrantId>,
    uses: u64,
}

/// The result of [`GrantTable::issue`].
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) grant: GrantId,
    pub(super) is_new: bool,
    /// Other grants that ended to make room.
    pub(super) ended: Vec<GrantId>,
}

impl GrantTable {
    /// Returns the holder of a grant. `None` if there is no such grant, if it has expired or was revoked, or while it is
    /// suspended.
    pub(super) fn find(&mut self, id: GrantId) -> Option<Principal> {
        let grant = self.valid(id)?;
        (!grant.is_suspended).then(|| grant.principal.clone())
    }

    /// Suspends the grant of a credential that was just refused: a front may have sent requests under it meanwhile. It lasts until the
    /// credential is accepted again.
    pub(super) fn suspend(&mut self, credential: &CredentialKey) {
        let id = self.by_credential.get(credential);
        if let Some(grant) = id.and_then(|id| self.grants.get_mut(id)) {
            grant.is_suspended = true;
        }
    }

    fn valid(&mut self, id: GrantId) -> Option<&mut Grant> {
        self.uses += 1;
        if self.grants.get(&id)?.principal.has_expired() {
            self.remove(id);
            return None;
        }
        let grant = self.grants.get_mut(&id)?;
        grant.last_used = self.uses;
        Some(grant)
    }

    /// Returns the valid grant of a credential that was just verified, or makes one. `stop` is cancelled when the new grant is
    /// removed.
    pub(super) fn issue(
        &mut self,
        credential: CredentialKey,
        principal: &Principal,
        stop: &CancellationToken,
    ) -> Issued {
        self.uses += 1;
        let mut ended = Vec::new();
        if let Some(id) = self.by_credential.get(&credential).copied() {
            if let Some(known) = self.valid(id).filter(|known| known.principal.is_same(principal)) {
                known.is_suspended = false;
                return Issued { grant: id, is_new: false, ended };
            }
            self.remove(id);
            ended.push(id);
        }
        if self.grants.len() >= GRANTS_MAX {
            ended.extend(self.make_room());
        }
        let id = GrantId::new_random();
        self.by_credential.insert(credential.clone(), id);
        let grant = Grant {
            credential,
            principal: principal.clone(),
            is_suspended: false,
            last_used: self.uses,
            passed_on: None,
            _stop: stop.clone().drop_guard(),
        };
        self.grants.insert(id, grant);
        Issued { grant: id, is_new: true, ended }
    }

    /// Stores the newest credential of a grant, so that it can be passed on to another host.
    pub(super) fn set_credential(&mut self, id: GrantId, credential: &Credential) {
        if let Some(grant) = self.grants.get_mut(&id)
            && grant.passed_on.as_deref() != Some(credential)
        {
            grant.passed_on = Some(Arc::new(credential.clone()));
        }
    }

    pub(super) fn credential(&self, id: GrantId) -> Option<Arc<Credential>> {
        self.grants.get(&id)?.passed_on.clone()
    }

    pub(super) fn remove(&mut self, id: GrantId) {
        if let Some(grant) = self.grants.remove(&id)
            && self.by_credential.get(&grant.credential) == Some(&id)
        {
            self.by_credential.remove(&grant.credential);
        }
    }

    /// Removes the grants that have expired, or otherwise one of the client with the most. Returns what it removed.
    fn make_room(&mut self) -> Vec<GrantId> {
        let expired = self.grants.iter().filter(|(_, grant)| grant.principal.has_expired());
        let mut removed: Vec<GrantId> = expired.map(|(id, _)| *id).collect();
        if removed.is_empty() {
            removed.extend(self.least_used_of_largest_owner());
        }
        for id in &removed {
            self.remove(*id);
        }
        removed
    }

    fn least_used_of_largest_owner(&self) -> Option<GrantId> {
        let mut counts: HashMap<Owner, usize> = HashMap::new();
        for grant in self.grants.values() {
            *counts.entry(grant.principal.owner()).or_default() += 1;
        }
        let (owner, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let own = self.grants.iter().filter(|(_, grant)| grant.principal.owner() == owner);
        own.min_by_key(|(_, grant)| grant.last_used).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockhouse_base::principal::{Grant as Revocable, Validity};
    use tokio::time::Instant;

    use super::*;

    fn key(number: u32) -> CredentialKey {
        CredentialKey::User(number)
    }

    fn principal(name: &str, validity: Validity) -> Principal {
        Principal::authenticated(name, name, None, validity)
    }

    fn issue(table: &mut GrantTable, number: u32, principal: &Principal) -> Issued {
        table.issue(key(number), principal, &CancellationToken::new())
    }

    #[test]
    fn a_credential_keeps_its_grant_while_it_is_valid_and_means_the_same() {
        let mut table = GrantTable::default();
        let revocable = Revocable::default();
        let desk = principal("token:desk", Validity::Revocable(revocable.clone()));
        let first = issue(&mut table, 1, &desk);
        assert!(first.is_new && !issue(&mut table, 1, &desk).is_new);
        assert_eq!(issue(&mut table, 1, &desk).grant, first.grant);
        assert_ne!(issue(&mut table, 2, &desk).grant, first.grant, "another credential");
        assert_eq!(table.find(first.grant).expect("valid").name(), Some("token:desk"));
        let narrower = Principal::authenticated(
            "token:desk",
            "token:desk",
            Some(vec!["git".into()]),
            Validity::Revocable(revocable.clone()),
        );
        let replaced = issue(&mut table, 1, &narrower);
        assert_eq!((replaced.is_new, replaced.ended), (true, vec![first.grant]));
        assert!(table.find(first.grant).is_none());
        revocable.revoke();
        assert!(table.find(replaced.grant).is_none(), "revoked");
        assert!(table.find(GrantId::new_random()).is_none(), "invented");
    }

    #[tokio::test]
    async fn a_grant_ends_with_its_expiry() {
        let mut table = GrantTable::default();
        let until = |seconds| Validity::Until(Instant::now() + Duration::from_secs(seconds));
        let valid = issue(&mut table, 1, &principal("a@b", until(60))).grant;
        let expired = issue(&mut table, 2, &principal("a@b", until(0))).grant;
        assert!(table.find(valid).is_some() && table.find(expired).is_none());
        assert_eq!((table.grants.len(), table.by_credential.len()), (1, 1));
    }

    #[test]
    fn a_full_table_takes_room_from_the_client_with_the_most_grants() {
        let mut table = GrantTable::default();
        let (modest, greedy) =
            (principal("token:a", Validity::Connection), principal("token:b", Validity::Connection));
        let first = issue(&mut table, 0, &modest).grant;
        let stop = CancellationToken::new();
        let oldest = table.issue(key(1), &greedy, &stop).grant;
        let used = issue(&mut table, 2, &greedy).grant;
        for number in 3..GRANTS_MAX as u32 {
            assert!(issue(&mut table, number, &greedy).ended.is_empty());
        }
        assert!(table.find(used).is_some());
        for number in 0..100 {
            let ended = issue(&mut table, 1_000_000 + number, &greedy).ended;
            assert_eq!((number == 0, ended.len()), (ended == [oldest], 1));
        }
        assert!(stop.is_cancelled() && table.find(oldest).is_none());
        assert!(table.find(first).is_some() && table.find(used).is_some());
        assert_eq!((table.grants.len(), table.by_credential.len()), (GRANTS_MAX, GRANTS_MAX));
    }
}
