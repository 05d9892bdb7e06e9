//! Reads and writes the file of bearer tokens. The file is replaced atomically, and is readable by its owner only.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lockhouse_base::files::{self, FileVersion};
use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{TokenName, TokenRecord, seconds};
use crate::token_format::Token;

const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum number of tokens of AI clients.
/// Bound: AI clients.
const TOKENS_MAX: usize = 1_000;
const VERSION: u32 = 1;
/// How long revoked and expired tokens stay in the token file, so that `lockhouse token list` can show them.
const RETENTION: Duration = Duration::from_secs(90 * 86_400);

/// Why the token file cannot be read or written.
#[derive(Debug, Error)]
pub enum TokenFileError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is damaged; restore it, or remove it and make new tokens")]
    Damaged { path: PathBuf },
    #[error("{path} has version {version}, which this Lockhouse does not support")]
    Version { path: PathBuf, version: u32 },
    #[error(
        "{source}, who could add tokens to {path}: change that, or run this command as the account of the service"
    )]
    Untrusted { path: PathBuf, source: UntrustedPath },
    #[error("users other than its owner may write to {path}; prevent that with chmod go-w")]
    Writable { path: PathBuf },
    #[error("a token of the name {0} exists already; revoke it first: lockhouse token revoke {0}", .name.as_str())]
    Taken { name: TokenName },
    #[error("the limit of {TOKENS_MAX} tokens is reached: revoke some")]
    Full,
    #[error("the system provides no random numbers")]
    Randomness(#[from] getrandom::Error),
}

/// The file of bearer tokens, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    tokens: Vec<TokenRecord>,
}

impl TokenFile {
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file with which processes lock the token file.
    pub fn lock_path(&self) -> PathBuf {
        self.0.with_extension("lock")
    }

    /// Returns the current version of the token file, or `None` if there is no file.
    pub(super) fn file_version(&self) -> Result<Option<FileVersion>, TokenFileError> {
        FileVersion::try_of(&self.0).map_err(|error| self.error(error))
    }

    /// Reads all tokens in the token file, including revoked and expired ones. Returns an empty list if there is no
    /// file.
    pub fn read(&self) -> Result<Vec<TokenRecord>, TokenFileError> {
        let file = match files::open_to_read(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.error(error)),
        };
        self.check_writers(&file.metadata().map_err(|error| self.error(error))?)?;
        let mut content = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(|error| self.error(error))?;
        // The parser's message could quote the file's content, so it is dropped.
        let content = serde_json::from_slice::<Content>(&content);
        let content = content.map_err(|_| TokenFileError::Damaged { path: self.0.clone() })?;
        match content.version {
            VERSION => Ok(content.tokens),
            version => Err(TokenFileError::Version { path: self.0.clone(), version }),
        }
    }

    /// Creates a token and adds it to the token file. Calls `record` after all checks and before the write; if `record`
    /// fails, no token is created.
    ///
    /// # Errors
    /// A valid token of this name exists, the file has the maximum number of tokens, or recording or writing fails.
    pub fn create<E: From<TokenFileError>>(
        &self,
        name: &TokenName,
        expires: Option<SystemTime>,
        only: Option<Vec<String>>,
        record: impl FnOnce() -> Result<(), E>,
    ) -> Result<Token, E> {
        let _lock = self.lock()?;
        let (mut tokens, now) = (self.read()?, SystemTime::now());
        if tokens.iter().any(|issued| issued.name == *name && issued.state(now) == "valid") {
            return Err(TokenFileError::Taken { name: name.clone() }.into());
        }
        remove_old(&mut tokens, now);
        if tokens.len() >= TOKENS_MAX {
            return Err(TokenFileError::Full.into());
        }
        let token = Token::new().map_err(TokenFileError::from)?;
        let (sha256, created, expires) = (token.digest(), seconds(now), expires.map(seconds));
        tokens.push(TokenRecord { name: name.clone(), sha256, created, expires, revoked: None, only });
        record()?;
        self.write(tokens)?;
        Ok(token)
    }

    /// Revokes the token of this name. Returns false if there is no such token, or if it was already revoked.
    pub fn revoke(&self, name: &TokenName) -> Result<bool, TokenFileError> {
        let _lock = self.lock()?;
        let (mut tokens, now) = (self.read()?, SystemTime::now());
        let mut found = false;
        for issued in tokens.iter_mut().filter(|issued| issued.name == *name && issued.revoked.is_none()) {
            issued.revoked = Some(seconds(now));
            found = true;
        }
        if found {
            remove_old(&mut tokens, now);
            self.write(tokens)?;
        }
        Ok(found)
    }

    /// Removes all tokens of this name from the file, also those that were revoked. Returns false if there is none.
    pub fn forget(&self, name: &TokenName) -> Result<bool, TokenFileError> {
        let _lock = self.lock()?;
        let mut tokens = self.read()?;
        let count = tokens.len();
        tokens.retain(|issued| issued.name != *name);
        let found = tokens.len() < count;
        if found {
            self.write(tokens)?;
        }
        Ok(found)
    }

    fn write(&self, tokens: Vec<TokenRecord>) -> Result<(), TokenFileError> {
        let content = Content { version: VERSION, tokens };
        let text = serde_json::to_vec_pretty(&content).map_err(|error| self.error(error.into()))?;
        files::replace_for_service(&self.0, &text).map_err(|error| self.error(error))
    }

    /// Locks the token file against other processes that write it, until the returned lock is dropped.
    fn lock(&self) -> Result<Flock<File>, TokenFileError> {
        let path = self.lock_path();
        let directory = path.parent().unwrap_or(Path::new("/"));
        let opened = files::create_private_directory(directory).and_then(|()| files::open_to_append(&path));
        let file = opened.map_err(|source| TokenFileError::Io { path, source })?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| self.error(error.into()))
    }

    /// Checks that only the user who runs this process, or root, can have written the token file or replaced it.
    fn check_writers(&self, metadata: &Metadata) -> Result<(), TokenFileError> {
        if metadata.mode() & 0o022 != 0 {
            return Err(TokenFileError::Writable { path: self.0.clone() });
        }
        let path = std::path::absolute(&self.0).map_err(|error| self.error(error))?;
        check_path(&path, &TrustedOwners::root_and_own(), Strictness::Usual)
            .map_err(|source| TokenFileError::Untrusted { path: self.0.clone(), source })
    }

    fn error(&self, source: io::Error) -> TokenFileError {
        TokenFileError::Io { path: self.0.clone(), source }
    }
}

/// Removes tokens that were revoked or expired more than 90 days ago.
fn remove_old(tokens: &mut Vec<TokenRecord>, now: SystemTime) {
    let oldest = seconds(now).saturating_sub(RETENTION.as_secs());
    let ended = |issued: &TokenRecord| issued.revoked.or(issued.expires);
    tokens.retain(|issued| ended(issued).is_none_or(|ended| ended >= oldest));
}

/// Serialises the hash of a token as hexadecimal text.
pub(super) mod hex {
    use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::token_format::Digest;

    pub(in super::super) fn serialize<S: Serializer>(
        digest: &Digest,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(digest))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Digest, D::Error> {
        let digits = String::deserialize(deserializer)?;
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok();
        let digest = bytes.and_then(|bytes| bytes.try_into().ok());
        digest.ok_or_else(|| de::Error::custom("a hash has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::lchown;

    use super::*;

    #[test]
    fn a_file_that_another_account_can_replace_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("folder");
        std::fs::create_dir(&folder).expect("a folder");
        let file = TokenFile::at(folder.join("tokens.json"));
        file.write(Vec::new()).expect("written");
        assert!(file.read().expect("control: readable").is_empty());
        for part in [&folder, &file.0] {
            lchown(part, Some(4_242), None).expect("an owner");
            let refused = file.read();
            assert!(
                matches!(refused, Err(TokenFileError::Untrusted { .. })),
                "{}: {refused:?}",
                part.display()
            );
            lchown(part, Some(0), None).expect("an owner");
        }
    }
}
