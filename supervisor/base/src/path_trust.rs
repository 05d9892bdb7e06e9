//! Finds out whether accounts that are not trusted can change what a path leads to: its file, or a directory or symbolic
//! link on the way to it.
//!
//! As with StrictModes of OpenSSH, a file counts as writable by others if they can write to any directory on its path.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{Gid, Group, Uid, User, geteuid};

use crate::access_list::{Grantee, grantees};

const OTHERS_WRITE: u32 = 0o002;
const OTHERS_READ: u32 = 0o004;
/// The sticky bit of a directory's mode: accounts cannot replace files of others in such a directory.
const STICKY: u32 = 0o1000;
/// Maximum number of symbolic links in a path, as in Linux.
const LINKS_MAX: usize = 40;
/// Maximum number of lines of `/proc/self/uid_map`, as in Linux.
const MAPPINGS_MAX: usize = 340;

/// The accounts that may own a file and what is on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedOwners(Vec<u32>);

/// A permission of accounts on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    Read,
    Write,
}

/// The account of `--trust-owner`, which a process of root trusts with the files that it writes.
static TRUSTED_BY_ROOT: OnceLock<u32> = OnceLock::new();

/// Lets this process of root write files in directories that this account can change.
pub fn trust_with_writing(account: u32) {
    // Set once, when the command line is parsed.
    let _ = TRUSTED_BY_ROOT.set(account);
}

/// What else than the accounts themselves is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Symbolic links that trusted accounts made, and the owner's private group.
    Usual,
    /// Nothing: neither symbolic links nor groups.
    Strict,
}

/// A part of a path that accounts can change that are not trusted.
#[derive(Debug, thiserror::Error)]
#[error("{} {fault}", .part.display())]
pub struct UntrustedPath {
    pub part: PathBuf,
    pub fault: Fault,
}

/// How an account that is not trusted can change a part of a path.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An account that is not trusted owns it.
    #[error("belongs to {}", account_name(*.0))]
    Owner(u32),
    /// Others than its owner can write it, by its mode.
    #[error("can be written by others ({writers}, mode {mode:04o})")]
    Writable { writers: String, mode: u32 },
    /// Another account or group can write it, by its access control list. `entry` is the entry as setfacl(1) names it.
    #[error("can be written by others ({writers}, by its access control list)")]
    Listed { writers: String, entry: String },
    #[error("is a symbolic link")]
    Link,
    #[error("cannot be examined: {0}")]
    Unknown(io::Error),
}

impl TrustedOwners {
    /// Only root.
    pub fn root() -> Self {
        Self(vec![0])
    }

    /// Root, and the account that it trusts with the files that it writes.
    pub fn of_written_files() -> Self {
        TRUSTED_BY_ROOT
            .get()
            .map(|account| Uid::from_raw(*account))
            .into_iter()
            .fold(Self::root(), Self::with)
    }

    /// Root, and the account of this process.
    pub fn root_and_own() -> Self {
        Self::root().with(geteuid())
    }

    /// Adds an account.
    #[must_use]
    pub fn with(mut self, account: Uid) -> Self {
        self.0.push(account.as_raw());
        self
    }

    fn has(&self, account: u32) -> bool {
        self.0.contains(&account)
    }
}

/// Root, and the account of this process.
impl Default for TrustedOwners {
    fn default() -> Self {
        Self::root_and_own()
    }
}

impl Permission {
    fn of_others(self) -> u32 {
        match self {
            Self::Read => OTHERS_READ,
            Self::Write => OTHERS_WRITE,
        }
    }
}

/// Checks that only trusted accounts can change what an absolute path leads to. A path of which the last parts do not
/// exist is trusted if nobody else can create them.
///
/// # Errors
/// The first part of the path that another account can change, or that cannot be examined.
pub fn check_path(path: &Path, owners: &TrustedOwners, strictness: Strictness) -> Result<(), UntrustedPath> {
    let mut waiting: VecDeque<OsString> = parts(path).collect();
    let mut part = PathBuf::from("/");
    check_part(&part, owners, strictness)?;
    let mut links_left = LINKS_MAX;
    while let Some(name) = waiting.pop_front() {
        if name == ".." {
            part.pop();
            continue;
        }
        part.push(name);
        let untrusted = |fault| UntrustedPath { part: part.clone(), fault };
        let found = match std::fs::symlink_metadata(&part) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(untrusted(Fault::Unknown(error))),
        };
        if !found.is_symlink() {
            check_part(&part, owners, strictness)?;
            continue;
        }
        if strictness == Strictness::Strict || links_left == 0 {
            return Err(untrusted(Fault::Link));
        }
        // The mode of a link means nothing.
        check_owner(&part, &found, owners)?;
        let target = std::fs::read_link(&part).map_err(|error| untrusted(Fault::Unknown(error)))?;
        links_left -= 1;
        match target.is_absolute() {
            true => part = PathBuf::from("/"),
            false => drop(part.pop()),
        }
        parts(&target).rev().for_each(|name| waiting.push_front(name));
    }
    Ok(())
}

/// Returns the names in a path, with `..`.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Checks a file or directory, which is no link.
fn check_part(part: &Path, owners: &TrustedOwners, strictness: Strictness) -> Result<(), UntrustedPath> {
    let untrusted = |fault| UntrustedPath { part: part.to_owned(), fault };
    let found = std::fs::metadata(part).map_err(|error| untrusted(Fault::Unknown(error)))?;
    check_owner(part, &found, owners)?;
    if found.is_dir() && found.mode() & STICKY != 0 {
        return Ok(());
    }
    match others_with(part, &found, Permission::Write, owners, strictness) {
        Ok(None) => Ok(()),
        Ok(Some(Others { who: writers, entry: Some(entry) })) => {
            Err(untrusted(Fault::Listed { writers, entry }))
        }
        Ok(Some(Others { who: writers, entry: None })) => {
            Err(untrusted(Fault::Writable { writers, mode: found.mode() & 0o7777 }))
        }
        Err(error) => Err(untrusted(Fault::Unknown(error))),
    }
}

fn check_owner(part: &Path, found: &Metadata, owners: &TrustedOwners) -> Result<(), UntrustedPath> {
    let owner = found.uid();
    // In a user namespace, files of the host's root and of all other accounts outside have the same owner.
    let is_accepted = || is_unmapped(owner) && (part == Path::new("/") || is_read_only(part));
    match owners.has(owner) || is_accepted() {
        true => Ok(()),
        false => Err(UntrustedPath { part: part.to_owned(), fault: Fault::Owner(owner) }),
    }
}

fn is_read_only(part: &Path) -> bool {
    statvfs(part).is_ok_and(|mount| mount.flags().contains(FsFlags::ST_RDONLY))
}

/// Whether an account is the one that stands for all accounts without a number in this user namespace.
pub fn is_unmapped(account: u32) -> bool {
    let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid");
    let is_overflow = overflow.is_ok_and(|number| number.trim().parse() == Ok(account));
    is_overflow
        && own_mapping().is_some_and(|map| {
            map.iter().all(|(first, count)| !(*first..first.saturating_add(*count)).contains(&account))
        })
}

/// Whether this process is in a user namespace that does not have all accounts of the host.
pub fn is_in_user_namespace() -> bool {
    own_mapping().is_some_and(|map| map != [(0, u32::MAX)])
}

/// Returns the accounts that exist in the user namespace of this process: the first of each range, and their number.
/// `None` if the kernel does not tell.
fn own_mapping() -> Option<Vec<(u32, u32)>> {
    let text = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    let range = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse);
        Some((numbers.next()?.ok()?, numbers.nth(1)?.ok()?))
    };
    text.lines().take(MAPPINGS_MAX).map(range).collect()
}

/// Who besides the owner has a permission on a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Others {
    /// For users.
    pub who: String,
    /// The entry of the access control list that gives it; `None` if the mode does.
    entry: Option<String>,
}

/// Describes who besides the owner and trusted accounts has a permission on a file or directory, which is no link. `None`
/// if nobody has it.
///
/// # Errors
/// If the access control list cannot be read.
pub fn others_with(
    path: &Path,
    found: &Metadata,
    permission: Permission,
    owners: &TrustedOwners,
    strictness: Strictness,
) -> io::Result<Option<Others>> {
    let others = permission.of_others();
    if found.mode() & others != 0 {
        return Ok(Some(Others { who: "everybody on this machine".into(), entry: None }));
    }
    let is_accepted = |group: u32| strictness == Strictness::Usual && is_private(group, found.uid());
    let owning_group = |has_it: bool| {
        let group = Some(found.gid()).filter(|group| has_it && !is_accepted(*group));
        group.map(|group| Others { who: format!("group {}", group_name(group)), entry: None })
    };
    let Some(listed) = grantees(path, others as u16)? else {
        // The bits of the group have the same order.
        return Ok(owning_group(found.mode() & (others << 3) != 0));
    };
    let describe = |grantee: Grantee| match grantee {
        Grantee::OwningGroup => owning_group(true),
        Grantee::User(account) if account == found.uid() || owners.has(account) => None,
        Grantee::Group(group) if is_accepted(group) => None,
        Grantee::User(account) => {
            let name = account_name(account);
            Some(Others { entry: Some(format!("user:{name}")), who: name })
        }
        Grantee::Group(group) => {
            let name = format!("group {}", group_name(group));
            Some(Others { entry: Some(format!("group:{}", group_name(group))), who: name })
        }
    };
    Ok(listed.into_iter().find_map(describe))
}

/// Whether a group is the private group of the file's owner, as is usual with umask 002: it has the owner's
/// name and no other members. If neither the group nor the owner has a name, as in some containers, their ids
/// must be equal. The group of root is not private: containers run other accounts in it.
fn is_private(group: u32, owner: u32) -> bool {
    if owner == 0 || group == 0 {
        return false;
    }
    let (group_entry, user_entry) =
        (Group::from_gid(Gid::from_raw(group)), User::from_uid(Uid::from_raw(owner)));
    match (group_entry, user_entry) {
        (Ok(Some(group)), Ok(Some(owner))) => {
            let has_other_members = group.mem.iter().any(|member| *member != owner.name);
            group.name == owner.name && !has_other_members && !is_group_of_others(group.gid, &owner.name)
        }
        (Ok(None), Ok(None)) => group == owner,
        _ => false,
    }
}

/// Whether a local account other than `owner` is in a group from its login on, which the list of members does not show.
fn is_group_of_others(group: Gid, owner: &str) -> bool {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    accounts.lines().any(|line| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next(), fields.nth(2));
        name != Some(owner) && gid == Some(&*group.to_string())
    })
}

/// Returns the name of an account, or its number if it has no name.
pub fn account_name(account: u32) -> String {
    let entry = User::from_uid(Uid::from_raw(account)).ok().flatten();
    entry.map_or_else(|| account.to_string(), |entry| entry.name)
}

fn group_name(group: u32) -> String {
    let entry = Group::from_gid(Gid::from_raw(group)).ok().flatten();
    entry.map_or_else(|| group.to_string(), |entry| entry.name)
}

#[cfg(test)]
mod tests;
