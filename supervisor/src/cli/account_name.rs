//! Names of the accounts of this machine.

use nix::unistd::{Uid, User};

/// Returns the name of an account, or its number if it has none.
pub(super) fn account_name(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}
