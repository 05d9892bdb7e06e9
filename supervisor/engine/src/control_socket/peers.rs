//! Who connects to a control socket, as the kernel reports it, and how many connections each may have.

use std::collections::HashMap;
use std::sync::Arc;

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::StreamCommon;
use lockhouse_access::principal_of_user;
use lockhouse_audit::LocalUser;
use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_messages::Presence;
use nix::unistd::{Uid, geteuid};
use parking_lot::Mutex;

use crate::front_connection::OperatorPeer;

/// Maximum number of connections to a control socket of root, the account of this process, and the person whose engine this is.
/// Bound: approvals and questions.
const OWNERS_MAX: usize = 16;
/// Maximum number of connections of one other account to the socket for people.
/// Bound: approvals and questions.
const ACCOUNT_MAX: usize = 4;
/// Maximum number of connections of all other accounts to the socket for people.
/// Bound: approvals and questions.
const ACCOUNTS_MAX: usize = 256;

/// Whom a socket serves besides root and the account of this process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Served {
    Owners,
    /// The person whose engine this is.
    Person(Uid),
    /// Everybody to whom the policy gives roles.
    PeopleWithRoles,
}

/// The peer of a connection.
pub(super) enum Peer {
    Operator(OperatorPeer),
    /// A user whose groups are not known yet.
    User(LocalUser),
}

impl Peer {
    /// Looks up the groups of a user, for which a directory service may be asked.
    pub(super) async fn resolve(self) -> Option<OperatorPeer> {
        match self {
            Self::Operator(operator) => Some(operator),
            Self::User(user) => {
                let principal = tokio::task::spawn_blocking(move || principal_of_user(user.uid)).await;
                principal.ok().map(|principal| OperatorPeer::with_roles(user, principal))
            }
        }
    }
}

/// Returns who operates the engine from the other end of the connection, as the kernel reports it. `None` if that process is
/// not served: it belongs neither to this process's user or root nor to those whom the socket serves, or is a sandboxed
/// upstream server.
pub(super) fn operator(stream: &Stream, served: Served, presence: Presence) -> Option<Peer> {
    let peer = stream.peer_creds().ok()?;
    let user = LocalUser::of_peer(peer.euid()?, peer.pid());
    let operator = match (Uid::from_raw(user.uid), served) {
        (uid, _) if uid.is_root() || uid == geteuid() => Peer::Operator(OperatorPeer::owner(Some(user))),
        (uid, Served::Person(person)) if person == uid => {
            Peer::Operator(OperatorPeer::person(user, presence))
        }
        (_, Served::PeopleWithRoles) => Peer::User(user),
        _ => return None,
    };
    (!refuses_peer(peer.pid().and_then(|id| u32::try_from(id).ok()))).then_some(operator)
}

/// The connections to one socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<Option<u32>, usize>>>);

/// The place of an open connection. Dropping it makes room for another one.
pub(super) struct Place {
    places: Places,
    account: Option<u32>,
}

impl Places {
    /// Returns a place for a connection. `None` if too many are open, of which those of one account take none from others.
    pub(super) fn take(&self, peer: &Peer) -> Option<Place> {
        let account = match peer {
            Peer::Operator(_) => None,
            Peer::User(user) => Some(user.uid),
        };
        let mut open = self.0.lock();
        let of_accounts: usize = open.iter().filter(|(of, _)| of.is_some()).map(|(_, count)| count).sum();
        let count = open.entry(account).or_default();
        let has_room = match account {
            None => *count < OWNERS_MAX,
            Some(_) => *count < ACCOUNT_MAX && of_accounts < ACCOUNTS_MAX,
        };
        *count += usize::from(has_room);
        has_room.then(|| Place { places: self.clone(), account })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.0.lock();
        if let Some(count) = open.get_mut(&self.account) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_takes_no_place_of_others() {
        let places = Places::default();
        let user = |uid| Peer::User(LocalUser { uid, pid: None, login_uid: None });
        let taken: Vec<_> = (0..9).map(|_| places.take(&user(1))).collect();
        assert_eq!(taken.iter().flatten().count(), ACCOUNT_MAX);
        assert!(places.take(&user(2)).is_some(), "another account");
        assert!(places.take(&Peer::Operator(OperatorPeer::owner(None))).is_some(), "root");
        drop(taken);
        assert!(places.take(&user(1)).is_some(), "after the end of the others");
        let all: Vec<_> = (0..500).map(|uid| places.take(&user(uid))).collect();
        assert_eq!(all.iter().flatten().count(), ACCOUNTS_MAX);
        assert!(places.take(&Peer::Operator(OperatorPeer::owner(None))).is_some(), "root");
    }
}
