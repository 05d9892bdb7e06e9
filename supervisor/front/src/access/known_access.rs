//! The access of credentials that the engine verified a short time ago.
//!
//! With it, a front sends a request to the engine together with its credential, instead of after the engine's response about the
//! credential. The engine verifies the credential first all the same: what is known here decides nothing.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use lockhouse_base::expiring_map::ExpiringMap;
use lockhouse_link::GrantedAccess;
use lockhouse_messages::{ConnectionId, Credential};
use parking_lot::Mutex;

/// Maximum number of credentials whose access a front remembers. The oldest one makes room.
/// Bound: AI clients.
const KNOWN_MAX: usize = 1_024;
/// Time for which a front remembers the access of a credential.
const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Identifies a credential, without containing a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum KnownCredential {
    Token([u8; 32]),
    UnixConnection(ConnectionId),
    None,
}

impl KnownCredential {
    /// Returns `None` for a credential that is valid for one request.
    pub(super) fn of(credential: &Credential) -> Option<Self> {
        match credential {
            Credential::Bearer(token) => {
                digest(&SHA256, token.as_bytes()).as_ref().try_into().ok().map(Self::Token)
            }
            Credential::UnixConnection(id) => Some(Self::UnixConnection(*id)),
            Credential::None => Some(Self::None),
            // A certificate may be revoked, and its proof is long.
            Credential::BoundToken { .. }
            | Credential::CertificateToken { .. }
            | Credential::Certificate(_)
            | Credential::Connection => None,
        }
    }
}

/// The access of credentials that the engine verified a short time ago.
#[derive(Debug)]
pub(super) struct KnownAccess(Mutex<ExpiringMap<KnownCredential, GrantedAccess>>);

impl Default for KnownAccess {
    fn default() -> Self {
        Self(Mutex::new(ExpiringMap::new(KNOWN_MAX, KNOWN_FOR)))
    }
}

impl KnownAccess {
    pub(super) fn add(&self, credential: KnownCredential, access: &GrantedAccess) {
        self.0.lock().insert(credential, access.for_another_request());
    }

    /// Returns the access of a credential, for one request. `None` if it is not known or has ended.
    pub(super) fn find(&self, credential: KnownCredential) -> Option<GrantedAccess> {
        let known = self.0.lock();
        known.get(&credential).filter(|access| !access.has_ended()).map(GrantedAccess::for_another_request)
    }

    pub(super) fn remove(&self, credential: KnownCredential) {
        self.0.lock().remove(&credential);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockhouse_messages::{Access, GrantId, Owner, Roles};
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn access(expires_in: Option<Duration>) -> (GrantedAccess, Arc<CancellationToken>) {
        let (grant, end) = (GrantId::new_random(), Arc::new(CancellationToken::new()));
        let (name, client, only, roles) = (None, None, None, Roles::default());
        let access = Access { grant, owner: Owner::LOCAL, name, client, only, roles, expires_in };
        (GrantedAccess::new(access, end.clone()), end)
    }

    fn bearer(token: &str) -> KnownCredential {
        KnownCredential::of(&Credential::Bearer(token.into())).expect("it is valid for more than one request")
    }

    #[tokio::test]
    async fn the_access_of_a_credential_is_known_until_it_ends() {
        let known = KnownAccess::default();
        let [(first, end), (second, _), (expired, _)] = [None, None, Some(Duration::ZERO)].map(access);
        known.add(bearer("first"), &first);
        known.add(bearer("second"), &second);
        known.add(bearer("expired"), &expired);
        let grant = |token| known.find(bearer(token)).map(|access| access.grant());
        assert_eq!(grant("first"), Some(first.grant()));
        assert_eq!((grant("expired"), grant("third")), (None, None));
        end.cancel();
        assert_eq!((grant("first"), grant("second")), (None, Some(second.grant())));
        known.remove(bearer("second"));
        assert_eq!(grant("second"), None);
    }

    #[test]
    fn a_credential_with_a_proof_is_never_known() {
        let (token, proof, method) = ("first".to_owned(), "p".into(), "POST".into());
        assert_eq!(KnownCredential::of(&Credential::BoundToken { token, proof, method }), None);
        assert_eq!(KnownCredential::of(&Credential::Connection), None);
        let [one, other] =
            [1, 2].map(|id| KnownCredential::of(&Credential::UnixConnection(ConnectionId(id))));
        assert!(one.is_some() && one != other && bearer("first") != bearer("second"));
    }
}
