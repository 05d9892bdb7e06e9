//! Stores the OAuth tokens of one upstream server in a file that only its owner can read.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockhouse_base::files;
use lockhouse_protocol::ServerName;
use nix::fcntl::{Flock, FlockArg};
use rmcp::transport::auth::{OAuthClientConfig, StoredCredentials};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use data_encoding::HEXLOWER;

/// Maximum size of a token file, in bytes.
/// Bound: upstream servers.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// How long to wait for the lock of a token file, which another process may hold while it renews a token.
/// Bound: upstream servers.
const LOCK_TIMEOUT: Duration = Duration::from_secs(45);
/// Interval at which this process tries to lock a token file that another process has locked.
const LOCK_EVERY: Duration = Duration::from_millis(50);
/// Number of hexadecimal digits of the URL's hash in the name of a token file. They suffice to distinguish the servers
/// of one user.
const HASH_DIGITS: usize = 16;
/// Maximum number of scopes that are stored because requests required them, in addition to the granted ones.
const WANTED_SCOPES_MAX: usize = 64;
/// An access token that expires within this time is renewed before it is sent, since it might expire before the server
/// checks it.
const MARGIN: Duration = Duration::from_secs(30);

/// Why the OAuth tokens of an upstream server cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("no place to keep tokens: set HOME, XDG_STATE_HOME or STATE_DIRECTORY")]
    NoPlace,
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} holds tokens and is not used: {reason}; {advice}")]
    Exposed { path: PathBuf, reason: &'static str, advice: &'static str },
    #[error("{path} is damaged; log in again")]
    Damaged { path: PathBuf },
    #[error("another process has held {path} for too long")]
    Locked { path: PathBuf },
}

/// The path of the file with the OAuth tokens of one upstream server at one URL.
#[derive(Clone)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

/// The content of a token file. Contains secrets, so it has no `Debug`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredLogin {
    /// The URL of the upstream server that the tokens are for.
    pub(crate) url: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<String>,
    pub(crate) redirect_uri: String,
    pub(crate) credentials: Option<StoredCredentials>,
    /// Scopes that a request required and that the token did not have. The next login asks for these scopes.
    #[serde(default)]
    pub(crate) wanted_scopes: Vec<String>,
}

/// An OAuth access token and the time when it expires. A token without this time is assumed to be valid.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AccessToken {
    pub(crate) secret: String,
    pub(crate) expires: Option<SystemTime>,
}

impl AccessToken {
    pub(crate) fn from_credentials(credentials: &StoredCredentials) -> Option<Self> {
        let answer = TokenResponse::from_credentials(credentials)?;
        let is_valid_for = credentials.token_received_at.zip(answer.expires_in);
        let until = is_valid_for.and_then(|(received, is_valid_for)| received.checked_add(is_valid_for));
        let expires = until.and_then(|until| UNIX_EPOCH.checked_add(Duration::from_secs(until)));
        Some(Self { secret: answer.access_token, expires })
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.is_valid_for(MARGIN)
    }

    pub(crate) fn is_valid_for(&self, time: Duration) -> bool {
        self.expires.is_none_or(|expires| expires > SystemTime::now() + time)
    }
}

/// The fields of an authorization server's token response (RFC 6749) that Lockhouse uses.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    refresh_token: Option<IgnoredAny>,
    expires_in: Option<u64>,
}

impl TokenResponse {
    fn from_credentials(credentials: &StoredCredentials) -> Option<Self> {
        let answer = serde_json::to_value(credentials.token_response.as_ref()?).ok()?;
        serde_json::from_value(answer).ok()
    }
}

impl StoredLogin {
    pub(crate) fn is_renewable(&self) -> bool {
        let answer = self.credentials.as_ref().and_then(TokenResponse::from_credentials);
        answer.is_some_and(|answer| answer.refresh_token.is_some())
    }

    pub(crate) fn token(&self) -> Option<AccessToken> {
        AccessToken::from_credentials(self.credentials.as_ref()?)
    }

    pub(crate) fn client(&self) -> OAuthClientConfig {
        let client = OAuthClientConfig::new(&self.client_id, &self.redirect_uri);
        match &self.client_secret {
            Some(secret) => client.with_client_secret(secret),
            None => client,
        }
    }

    /// Returns the scopes for the next login: those that were granted, and those that a request required and the token
    /// did not have.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let granted = self.credentials.iter().flat_map(|credentials| &credentials.granted_scopes);
        granted.chain(&self.wanted_scopes).cloned().collect()
    }
}

impl TokenFile {
    /// Returns the token file for the upstream server with this name and URL. A server at another URL has another file,
    /// so that it does not get these tokens.
    pub(crate) fn new(name: &ServerName, url: &url::Url) -> Result<Self, TokenFileError> {
        let directory = lockhouse_base::directories::state().ok_or(TokenFileError::NoPlace)?.join("tokens");
        let hash = HEXLOWER.encode(&Sha256::digest(url.as_str()));
        Ok(Self { path: directory.join(format!("{name}-{}.json", &hash[..HASH_DIGITS])) })
    }

    pub(crate) fn load(&self) -> Result<Option<StoredLogin>, TokenFileError> {
        let file = match files::open_to_read(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        self.check(&self.path, &file.metadata().map_err(|error| self.failed(error))?)?;
        let mut text = String::new();
        let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| self.failed(error))?;
        let damaged = |_| TokenFileError::Damaged { path: self.path.clone() };
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Replaces the token file atomically.
    pub(crate) fn save(&self, stored: &StoredLogin) -> Result<(), TokenFileError> {
        self.make_directory()?;
        let text = serde_json::to_string(stored).map_err(|error| self.failed(error.into()))?;
        files::replace_durably(&self.path, text.as_bytes()).map_err(|error| self.failed(error))
    }

    /// Deletes the token file. Returns whether there was one.
    pub(crate) fn delete(&self) -> Result<bool, TokenFileError> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Acquires the exclusive lock for the token file. The lock is held until the returned value is dropped. Waits at
    /// most `LOCK_TIMEOUT`.
    pub(crate) async fn lock(&self) -> Result<Flock<File>, TokenFileError> {
        self.make_directory()?;
        let path = self.path.with_extension("lock");
        let mut file = files::open_to_append(&path).map_err(|error| self.failed(error))?;
        let deadline = tokio::time::Instant::now() + LOCK_TIMEOUT;
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((file, nix::errno::Errno::EWOULDBLOCK)) => file,
                Err((_, error)) => return Err(self.failed(error.into())),
            };
            if tokio::time::Instant::now() >= deadline {
                return Err(TokenFileError::Locked { path });
            }
            tokio::time::sleep(LOCK_EVERY).await;
        }
    }

    /// Stores the scopes that a request required, so that the next login asks for these scopes. Does nothing if no
    /// tokens are stored.
    pub(crate) async fn remember_wanted_scopes(&self, scopes: &str) -> Result<(), TokenFileError> {
        let _lock = self.lock().await?;
        let Some(mut stored) = self.load()? else { return Ok(()) };
        let known = stored.scopes();
        let new = scopes.split_ascii_whitespace().filter(|scope| !known.iter().any(|known| known == scope));
        let room = WANTED_SCOPES_MAX.saturating_sub(stored.wanted_scopes.len());
        let new: Vec<String> = new.take(room).map(str::to_owned).collect();
        if new.is_empty() {
            return Ok(());
        }
        stored.wanted_scopes.extend(new);
        self.save(&stored)
    }

    fn make_directory(&self) -> Result<(), TokenFileError> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| self.failed(error))?;
        let metadata = std::fs::symlink_metadata(directory).map_err(|error| self.failed(error))?;
        self.check(directory, &metadata)
    }

    /// Checks that `path`, which is the token file or its directory, belongs to this user and is not accessible to
    /// other users.
    fn check(&self, path: &Path, metadata: &std::fs::Metadata) -> Result<(), TokenFileError> {
        let exposed = |reason, advice| Err(TokenFileError::Exposed { path: path.to_owned(), reason, advice });
        if metadata.uid() != nix::unistd::geteuid().as_raw() {
            return exposed("it belongs to another user", "remove it and log in again");
        }
        if metadata.mode() & 0o077 != 0 {
            return exposed("others than its owner have access to it", "take that away with chmod go=");
        }
        Ok(())
    }

    fn failed(&self, source: std::io::Error) -> TokenFileError {
        TokenFileError::Io { path: self.path.clone(), source }
    }
}
