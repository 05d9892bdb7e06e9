//! The file itself: whole or as it was, for its owner alone.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::error::Unspecified;
use lockhouse_base::files;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Issued, TokenName, seconds};
use crate::access::token::Token;

const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const TOKENS_MAX: usize = 1_000;
const VERSION: u32 = 1;
/// How long it is known of a token that it was revoked, or has expired.
const REMEMBERED: Duration = Duration::from_secs(90 * 86_400);

/// Why tokens cannot be read or kept.
#[derive(Debug, Error)]
pub enum TokenFileError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is damaged; restore it, or remove it and make new tokens")]
    Damaged { path: PathBuf },
    #[error("{path} is of version {version}, which this Lockhouse does not know")]
    Version { path: PathBuf, version: u32 },
    #[error("{path} belongs to user {owner}, who could let anybody in; change its owner")]
    Foreign { path: PathBuf, owner: u32 },
    #[error("others than its owner may write to {path}; take that away with chmod go-w")]
    Writable { path: PathBuf },
    #[error("there is a token of the name {0} already; revoke it first: lockhouse token revoke {0}", .name.as_str())]
    Taken { name: TokenName },
    #[error("there are {TOKENS_MAX} tokens, and there can be no more: revoke some")]
    Full,
    #[error("the system gives no randomness")]
    Randomness(#[from] Unspecified),
}

/// Where tokens are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

/// One state of the file: a file that was replaced is another one.
pub(super) type Stamp = (u64, u64, u64, i64, i64, i64, i64);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    tokens: Vec<Issued>,
}

impl TokenFile {
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// None while there is no file.
    pub(super) fn stamp(&self) -> Result<Option<Stamp>, TokenFileError> {
        match std::fs::symlink_metadata(&self.0) {
            Ok(of) => {
                let (written, changed) = ((of.mtime(), of.mtime_nsec()), (of.ctime(), of.ctime_nsec()));
                Ok(Some((of.dev(), of.ino(), of.size(), written.0, written.1, changed.0, changed.1)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Every token that is known.
    pub fn read(&self) -> Result<Vec<Issued>, TokenFileError> {
        let file = match files::open_to_read(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.error(error)),
        };
        self.trust(&file.metadata().map_err(|error| self.error(error))?)?;
        let mut content = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(|error| self.error(error))?;
        // What is wrong with it may have what is in it.
        let content = serde_json::from_slice::<Content>(&content);
        let content = content.map_err(|_| TokenFileError::Damaged { path: self.0.clone() })?;
        match content.version {
            VERSION => Ok(content.tokens),
            version => Err(TokenFileError::Version { path: self.0.clone(), version }),
        }
    }

    /// Makes a token for somebody. `record` is called once it is sure that it can be made and before it is written; without a
    /// record there is no token.
    ///
    /// # Errors
    /// That they have one, that it cannot be recorded, or that it cannot be written.
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
        forget(&mut tokens, now);
        if tokens.len() >= TOKENS_MAX {
            return Err(TokenFileError::Full.into());
        }
        let token = Token::new().map_err(TokenFileError::from)?;
        let (sha256, created, expires) = (token.digest(), seconds(now), expires.map(seconds));
        tokens.push(Issued { name: name.clone(), sha256, created, expires, revoked: None, only });
        record()?;
        self.write(tokens)?;
        Ok(token)
    }

    /// Takes back what somebody was given. Whether there was anything.
    pub fn revoke(&self, name: &TokenName) -> Result<bool, TokenFileError> {
        let _lock = self.lock()?;
        let (mut tokens, now) = (self.read()?, SystemTime::now());
        let mut found = false;
        for issued in tokens.iter_mut().filter(|issued| issued.name == *name && issued.revoked.is_none()) {
            issued.revoked = Some(seconds(now));
            found = true;
        }
        if found {
            forget(&mut tokens, now);
            self.write(tokens)?;
        }
        Ok(found)
    }

    fn write(&self, tokens: Vec<Issued>) -> Result<(), TokenFileError> {
        let content = Content { version: VERSION, tokens };
        let text = serde_json::to_vec_pretty(&content).map_err(|error| self.error(error.into()))?;
        files::replace_for_service(&self.0, &text).map_err(|error| self.error(error))
    }

    /// Alone among all who write.
    fn lock(&self) -> Result<Flock<File>, TokenFileError> {
        let path = self.0.with_extension("lock");
        let directory = path.parent().unwrap_or(Path::new("/"));
        let opened = files::private_directory(directory).and_then(|()| files::open_to_append(&path));
        let file = opened.map_err(|source| TokenFileError::Io { path, source })?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| self.error(error.into()))
    }

    /// That nobody else can have written it.
    fn trust(&self, metadata: &Metadata) -> Result<(), TokenFileError> {
        let owner = metadata.uid();
        if owner != geteuid().as_raw() && owner != 0 {
            return Err(TokenFileError::Foreign { path: self.0.clone(), owner });
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(TokenFileError::Writable { path: self.0.clone() });
        }
        Ok(())
    }

    fn error(&self, source: io::Error) -> TokenFileError {
        TokenFileError::Io { path: self.0.clone(), source }
    }
}

/// Those that have counted for nothing for long.
fn forget(tokens: &mut Vec<Issued>, now: SystemTime) {
    let oldest = seconds(now).saturating_sub(REMEMBERED.as_secs());
    let ended = |issued: &Issued| issued.revoked.or(issued.expires);
    tokens.retain(|issued| ended(issued).is_none_or(|ended| ended >= oldest));
}

/// A hash as text.
pub(super) mod hex {
    use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::access::token::Digest;

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
