//! Checks whether other Unix users can modify the configuration and policy, or read files with secrets.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_base::path_trust::{
    Fault, Permission, Strictness, TrustedOwners, UntrustedPath, account_name, check_path, is_unmapped,
    others_with,
};
use nix::unistd::{Uid, User, geteuid};

use super::error::ConfigError;

const OTHERS_READ: u32 = 0o004;
/// The maximum number of files of one directory whose permissions are checked.
const FILES_MAX: usize = 1_000;

/// A file with a secret that Unix users other than its owner can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadableSecret {
    pub path: PathBuf,
    pub readers: String,
    pub mode: u32,
}

impl ReadableSecret {
    /// Returns the shell command that corrects the file's permissions. It also makes an access control list void, since
    /// the mode of the group limits it.
    pub fn fix(&self) -> String {
        format!("chmod 600 {}", self.path.display())
    }
}

impl std::fmt::Display for ReadableSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, readers, mode } = self;
        write!(
            f,
            "{} holds a secret, and {readers} can read it (mode {mode:04o}): run `{}`",
            path.display(),
            self.fix()
        )
    }
}

/// Why an account is not trusted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum InvalidAccount {
    #[error("only a process of root can trust another account's files")]
    NotRoot,
    #[error("there is no such account")]
    Unknown,
}

/// Parses the account of `--trust-owner`: a name or a number. Only a process of root can trust a further account.
pub(super) fn trusted_account(text: &str) -> Result<u32, InvalidAccount> {
    if !geteuid().is_root() {
        return Err(InvalidAccount::NotRoot);
    }
    let found = User::from_name(text).ok().flatten().map(|user| user.uid.as_raw());
    found.or_else(|| text.parse().ok()).ok_or(InvalidAccount::Unknown)
}

/// Rejects a file if accounts other than `owners` could have written it, or can replace it: by its owner, its mode or its
/// access control list, or by those of a directory or link on its path. A missing file is accepted.
///
/// # Errors
/// [`ConfigError::Unusable`], which names the file or directory, who can change it, and the command that corrects that.
pub(super) fn refuse_untrusted(path: &Path, owners: &TrustedOwners) -> Result<(), ConfigError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&absolute).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let reason = "it is neither a regular file nor a directory".to_owned();
        return Err(ConfigError::Unusable { path: path.to_owned(), reason });
    }
    let Err(UntrustedPath { part, fault }) = check_path(&absolute, owners, Strictness::Usual) else {
        return Ok(());
    };
    let file = part.display();
    let command = match &fault {
        Fault::Owner(owner) => correct_owner(&part, *owner),
        Fault::Writable { .. } => format!("run `chmod go-w {file}`"),
        Fault::Listed { entry, .. } => format!("run `setfacl -x {entry} {file}`"),
        Fault::Link | Fault::Unknown(_) => "name another path".into(),
    };
    let reason = match &fault {
        Fault::Link | Fault::Unknown(_) => format!("{file} {fault}: {command}"),
        _ => format!("{file} {fault}, who could change what code may do: {command}"),
    };
    Err(ConfigError::Unusable { path: path.to_owned(), reason })
}

/// Says how to correct the owner of a file, or to accept it.
fn correct_owner(part: &Path, owner: u32) -> String {
    let own = geteuid();
    if is_unmapped(owner) {
        return format!(
            "mount {} read-only in this user namespace, as `bwrap --ro-bind` does",
            part.display()
        );
    }
    let (own_name, owner, file) = (account_name(own.as_raw()), account_name(owner), part.display());
    match own.is_root() {
        true => format!(
            "run `chown root {file}`, run Lockhouse as {owner}, or name the account with `--trust-owner {owner}`, if it may decide that"
        ),
        false => format!("run `sudo chown {own_name} {file}`"),
    }
}

/// Returns those of the given files that Unix users other than the owner can read. A file of another user that only its
/// group, or its access control list, lets others read is not returned: a service reads files of root in this manner.
/// Skips directories and missing files.
pub fn readable_secrets(files: impl Iterator<Item = PathBuf>) -> Vec<ReadableSecret> {
    let owners = TrustedOwners::root_and_own();
    let readable = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        let readers = others_with(&path, &metadata, Permission::Read, &owners, Strictness::Usual).ok()??.who;
        // A service reads files of root through its group.
        let is_for_service =
            metadata.mode() & OTHERS_READ == 0 && metadata.uid() != Uid::effective().as_raw();
        (!is_for_service).then(|| ReadableSecret { path, readers, mode: metadata.mode() & 0o7777 })
    };
    files.filter_map(readable).collect()
}

/// Returns the paths of the first [`FILES_MAX`] entries of a directory. Returns none if the directory cannot be read.
pub(super) fn files_in(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).take(FILES_MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_file_is_refused_if_others_can_write_it_or_a_directory_on_its_way() {
        let root = tempfile::tempdir().expect("a directory");
        let (directory, elsewhere) = (root.path().join("a"), root.path().join("b"));
        for path in [&directory, &elsewhere] {
            std::fs::create_dir(path).expect("a directory");
        }
        let (file, link) = (directory.join("policy.toml"), elsewhere.join("policy.toml"));
        std::fs::write(&file, "").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let refused = |path: &Path| {
            refuse_untrusted(path, &TrustedOwners::root_and_own()).err().map(|error| error.to_string())
        };
        assert_eq!((refused(&file), refused(&link)), (None, None), "control");
        set(&file, 0o646);
        let message = refused(&file).expect("refused");
        assert!(
            message.contains("everybody") && message.contains(&format!("chmod go-w {}", file.display())),
            "{message}"
        );
        set(&file, 0o644);
        set(&directory, 0o777);
        assert!(refused(&file).is_some() && refused(&link).is_some());
        set(&directory, 0o1777);
        assert_eq!(refused(&file), None, "a sticky directory");
        set(&directory, 0o700);
        set(&elsewhere, 0o777);
        assert!(refused(&link).is_some(), "the link can be changed");
        assert_eq!(refused(&file), None);
        assert_eq!(refused(&directory.join("none")), None);
    }

    #[test]
    fn a_secret_that_others_can_read_is_reported_with_the_fix() {
        let directory = tempfile::tempdir().expect("a directory");
        let (open, closed) = (directory.path().join("open"), directory.path().join("closed"));
        for (path, mode) in [(&open, 0o604), (&closed, 0o600)] {
            std::fs::write(path, "").expect("a file");
            set(path, mode);
        }
        let found = readable_secrets(files_in(directory.path()));
        assert_eq!(found.iter().map(|found| &found.path).collect::<Vec<_>>(), [&open]);
        let message = found[0].to_string();
        assert!(message.contains("mode 0604") && message.contains("chmod 600"), "{message}");
    }
}
