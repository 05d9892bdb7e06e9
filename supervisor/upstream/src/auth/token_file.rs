//! Stores the OAuth tokens of one upstream server: those of the service, or of one user.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use lockhouse_protocol::ServerName;
use nix::fcntl::Flock;
use rmcp::transport::auth::{OAuthClientConfig, StoredCredentials};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::secret_file::{SecretFile, SecretFileError};
use crate::shared_files::TOKENS;

/// Number of hexadecimal digits of the URL's hash in the name of a token file. They suffice to distinguish the servers
/// of one user.
const HASH_DIGITS: usize = 16;
/// Maximum number of scopes that are stored because requests required them, in addition to the granted ones.
const WANTED_SCOPES_MAX: usize = 64;
/// An access token that expires within this time is renewed before it is sent, since it might expire before the server
/// checks it.
const MARGIN: Duration = Duration::from_secs(30);

/// The file with the OAuth tokens of one upstream server at one URL: those of the service, or of one user.
#[derive(Clone)]
pub(crate) struct TokenFile(SecretFile);

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
    refresh_token: Option<String>,
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

    /// Returns the tokens that can be revoked, each with its kind in RFC 7009: the refresh token first.
    pub(crate) fn revocable_tokens(&self) -> Vec<(&'static str, String)> {
        let answer = self.credentials.as_ref().and_then(TokenResponse::from_credentials);
        answer.map_or_else(Vec::new, |TokenResponse { access_token, refresh_token, .. }| {
            let refresh = refresh_token.map(|token| ("refresh_token", token));
            refresh.into_iter().chain([("access_token", access_token)]).collect()
        })
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
    /// Returns the file with the tokens of the service for the upstream server with this name and URL. A server at another URL
    /// has another file, so that it does not get these tokens.
    pub(crate) fn new(name: &ServerName, url: &url::Url) -> Result<Self, SecretFileError> {
        let directory = lockhouse_base::directories::state().ok_or(SecretFileError::NoPlace)?.join(TOKENS);
        let hash = HEXLOWER.encode(&Sha256::digest(url.as_str()));
        Ok(Self(SecretFile::plain(directory.join(format!("{name}-{}.json", &hash[..HASH_DIGITS])))))
    }

    /// Returns the file with the tokens of one user.
    pub(crate) fn of_user(file: SecretFile) -> Self {
        Self(file)
    }

    pub(crate) fn load(&self) -> Result<Option<StoredLogin>, SecretFileError> {
        let Some(text) = self.0.read()? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|_| self.0.damaged())
    }

    /// Replaces the tokens atomically.
    pub(crate) fn save(&self, stored: &StoredLogin) -> Result<(), SecretFileError> {
        self.0.write(&serde_json::to_string(stored).map_err(|error| self.0.failed(error.into()))?)
    }

    /// Deletes the token file. Returns whether there was one.
    pub(crate) fn delete(&self) -> Result<bool, SecretFileError> {
        self.0.delete()
    }

    /// Acquires the exclusive lock for the token file. The lock is held until the returned value is dropped.
    pub(crate) async fn lock(&self) -> Result<Flock<File>, SecretFileError> {
        self.0.lock().await
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Stores the scopes that a request required, so that the next login asks for these scopes. Does nothing if no
    /// tokens are stored.
    pub(crate) async fn remember_wanted_scopes(&self, scopes: &str) -> Result<(), SecretFileError> {
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
}
