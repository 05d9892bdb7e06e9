//! The users of this host who are authenticated by their user id at the other end of a Unix domain socket.

use lockhouse_base::principal::{Principal, Validity};
use nix::errno::Errno;
use nix::unistd::{Uid, User, geteuid};
use serde::Deserialize;
use thiserror::Error;

use crate::memberships::memberships_of_user;

/// A user of this host that the configuration names, by id or by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ConfiguredUser {
    Id(u32),
    Name(String),
}

/// Users of this host who are authenticated by their user id, with their names if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedUsers(Vec<AllowedUser>);

/// A user with the groups as they are when the configuration is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AllowedUser {
    uid: u32,
    /// The name; `None` if the user has none.
    name: Option<String>,
    memberships: Vec<String>,
}

/// Why a user that the configuration names cannot be looked up.
#[derive(Debug, Error)]
pub enum UserLookupError {
    #[error("users of [http]: there is no user {0:?} on this machine")]
    NoUser(String),
    #[error("users of [http]: {name:?} cannot be looked up: {source}")]
    LookUp { name: String, source: Errno },
}

impl AllowedUsers {
    /// Looks up the users that the configuration names. Without this setting (`None`), allows the user who runs this
    /// process, and root, who has every right on the host anyway.
    pub fn resolve(configured: Option<&[ConfiguredUser]>) -> Result<Self, UserLookupError> {
        let Some(configured) = configured else {
            let mut own = vec![geteuid().as_raw()];
            if !geteuid().is_root() {
                own.push(0);
            }
            return Ok(Self(own.into_iter().map(|id| AllowedUser::new(id, user_name(id))).collect()));
        };
        let looked_up = configured.iter().map(|user| match user {
            ConfiguredUser::Id(id) => Ok(AllowedUser::new(*id, user_name(*id))),
            ConfiguredUser::Name(name) => match User::from_name(name) {
                Ok(Some(user)) => Ok(AllowedUser::new(user.uid.as_raw(), Some(user.name))),
                Ok(None) => Err(UserLookupError::NoUser(name.clone())),
                Err(source) => Err(UserLookupError::LookUp { name: name.clone(), source }),
            },
        });
        looked_up.collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Returns the principal (client identity) of a user id, or `None` if the user is not allowed.
    pub(super) fn principal(&self, uid: u32) -> Option<Principal> {
        let AllowedUser { name, memberships, .. } = self.0.iter().find(|user| user.uid == uid)?;
        Some(principal(uid, name.as_deref(), memberships.clone()))
    }
}

impl AllowedUser {
    fn new(uid: u32, name: Option<String>) -> Self {
        Self { uid, name, memberships: memberships_of_user(uid) }
    }
}

/// Returns the principal (client identity) of a user of this host, with the groups as they are now. It may ask a directory
/// service.
pub fn principal_of_user(uid: u32) -> Principal {
    principal(uid, user_name(uid).as_deref(), memberships_of_user(uid))
}

fn principal(uid: u32, name: Option<&str>, memberships: Vec<String>) -> Principal {
    let client = client_name(uid, name);
    let principal = Principal::authenticated(&format!("user:{uid}"), &client, None, Validity::Connection);
    principal.member_of(memberships)
}

/// Returns the name in the policy and the audit log of a user of this host.
pub fn client_name_of_user(uid: u32) -> String {
    client_name(uid, user_name(uid).as_deref())
}

fn client_name(uid: u32, name: Option<&str>) -> String {
    // A name with invisible characters, or of digits alone, could be taken for another user. Then the id is the name.
    let is_exact = |name: &&str| {
        name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.bytes().all(|byte| byte.is_ascii_digit())
    };
    name.filter(is_exact).map_or_else(|| format!("user:{uid}"), |name| format!("user:{name}"))
}

fn user_name(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_resolved_by_name_and_id() {
        let users =
            AllowedUsers::resolve(Some(&[ConfiguredUser::Name("root".into()), ConfiguredUser::Id(12_345)]))
                .expect("users");
        let client = |uid| Some(users.principal(uid)?.client()?.as_str().to_owned());
        assert_eq!(client(0).as_deref(), Some("user:root"));
        assert_eq!(client(12_345).as_deref(), Some("user:12345"));
        assert_eq!(client(12_346), None);
        let absent = AllowedUsers::resolve(Some(&[ConfiguredUser::Name("no such user".into())]))
            .expect_err("nobody")
            .to_string();
        assert!(absent.contains("there is no user \"no such user\""), "{absent}");
        assert!(AllowedUsers::resolve(None).expect("users").principal(geteuid().as_raw()).is_some());
    }
}
