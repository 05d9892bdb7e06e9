//! Who is at the other end of a connection, as the kernel says it.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, SocketAddr};

use lockhouse_base::principal::{Principal, Standing};
use nix::errno::Errno;
use nix::unistd::{Uid, User, geteuid};
use serde::Deserialize;
use thiserror::Error;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// Of whom a trusted proxy passed a request on.
    Forwarded(IpAddr),
    /// As the kernel noted it when the connection was made (SO_PEERCRED).
    Unix {
        uid: u32,
        gid: u32,
        /// None where the kernel does not say.
        pid: Option<i32>,
    },
}

impl Display for Peer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Forwarded(address) => write!(f, "{address}, through a trusted proxy,"),
            Self::Unix { uid, gid, pid: Some(pid) } => write!(f, "user {uid} (group {gid}, process {pid})"),
            Self::Unix { uid, gid, pid: None } => write!(f, "user {uid} (group {gid})"),
        }
    }
}

/// A user as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum NamedUser {
    Id(u32),
    Name(String),
}

/// Users of this machine who are admitted for who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users(Vec<(u32, Option<String>)>);

/// A user who is configured is not known.
#[derive(Debug, Error)]
pub enum UsersError {
    #[error("users of [http]: there is no user {0:?} on this machine")]
    NoUser(String),
    #[error("users of [http]: {name:?} cannot be looked up: {source}")]
    LookUp { name: String, source: Errno },
}

impl Users {
    /// Those that are configured, looked up once; without any the one who runs this process, and root, who may do everything
    /// anyway.
    pub fn of(configured: Option<&[NamedUser]>) -> Result<Self, UsersError> {
        let Some(configured) = configured else {
            let mut own = vec![geteuid().as_raw()];
            if !geteuid().is_root() {
                own.push(0);
            }
            return Ok(Self(own.into_iter().map(|id| (id, name_of(id))).collect()));
        };
        let looked_up = configured.iter().map(|user| match user {
            NamedUser::Id(id) => Ok((*id, name_of(*id))),
            NamedUser::Name(name) => match User::from_name(name) {
                Ok(Some(user)) => Ok((user.uid.as_raw(), Some(user.name))),
                Ok(None) => Err(UsersError::NoUser(name.clone())),
                Err(source) => Err(UsersError::LookUp { name: name.clone(), source }),
            },
        });
        looked_up.collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Who has this number, if they are among them.
    pub(super) fn principal(&self, uid: u32) -> Option<Principal> {
        let (_, name) = self.0.iter().find(|(id, _)| *id == uid)?;
        // The policy replaces what cannot be seen, and a name of digits would be another user's number: two users would be one.
        let is_exact = |name: &&String| {
            name.bytes().all(|byte| byte.is_ascii_graphic())
                && !name.bytes().all(|byte| byte.is_ascii_digit())
        };
        let name = name.as_ref().filter(is_exact);
        let client = name.map_or_else(|| format!("user:{uid}"), |name| format!("user:{name}"));
        Some(Principal::proven(&format!("user:{uid}"), &client, None, Standing::Lasting))
    }
}

fn name_of(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_name_and_by_number() {
        let users = Users::of(Some(&[NamedUser::Name("root".into()), NamedUser::Id(12_345)])).expect("users");
        let client = |uid| Some(users.principal(uid)?.client(None)?.as_str().to_owned());
        assert_eq!(client(0).as_deref(), Some("user:root"));
        assert_eq!(client(12_345).as_deref(), Some("user:12345"));
        assert_eq!(client(12_346), None);
        let absent =
            Users::of(Some(&[NamedUser::Name("no such user".into())])).expect_err("nobody").to_string();
        assert!(absent.contains("there is no user \"no such user\""), "{absent}");
        assert!(Users::of(None).expect("users").principal(geteuid().as_raw()).is_some());
    }
}
