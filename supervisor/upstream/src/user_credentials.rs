//! The credentials of users for servers with `auth = "per_user"`: the tokens of a login, or a secret. They are stored encrypted, in a
//! directory for each user.

use std::path::{Path, PathBuf};

use lockhouse_base::files;
use lockhouse_base::sealing_key::SealingKey;
use lockhouse_messages::{Logout, Owner};
use lockhouse_protocol::ServerName;
use url::Url;

use super::auth::ExchangeSettings;
use super::auth::secret_file::{SecretFile, SecretFileError};
use super::auth::token_file::TokenFile;
use super::definition::{Endpoint, HttpEndpoint, ServerDefinition, UserCredential};
use super::login::{Login, LoginError, log_out_of};
use super::server_identity::file_name;
use super::shared_files::USERS;

/// Maximum length of the secret of a user, in bytes.
/// Bound: upstream servers.
const SECRET_BYTES_MAX: usize = 16 * 1024;

/// The store of the credentials of all users.
#[derive(Clone, Debug)]
pub struct UserCredentials {
    directory: PathBuf,
    key: SealingKey,
    /// The URL under which browsers reach the service. `None` if users do not log in on a page.
    service: Option<Url>,
    /// Where tokens of users are exchanged. `None` if they are not.
    exchange: Option<ExchangeSettings>,
}

/// Why a secret of a user is not stored.
#[derive(Debug, thiserror::Error)]
pub enum UserSecretError {
    #[error("a secret is one line without control characters, of at most 16 KiB")]
    Unusable,
    #[error(transparent)]
    File(#[from] SecretFileError),
}

impl UserCredentials {
    /// Creates the store in a directory of Lockhouse's own. `service` is the URL under which browsers reach the service.
    pub fn new(state: &Path, key: SealingKey, service: Option<Url>) -> Self {
        Self { directory: state.join(USERS), key, service, exchange: None }
    }

    /// Lets tokens of users be exchanged at this identity provider.
    #[must_use]
    pub fn with_exchange(self, exchange: Option<ExchangeSettings>) -> Self {
        Self { exchange, ..self }
    }

    /// Returns where tokens of users are exchanged.
    pub fn exchange(&self) -> Option<&ExchangeSettings> {
        self.exchange.as_ref()
    }

    /// Returns the address to which browsers return from a login. `None` if users do not log in on a page.
    pub fn login_redirect(&self) -> Option<String> {
        Some(self.service.as_ref()?.join("login").ok()?.into())
    }

    /// Returns the page on which users log in to a server. `None` if there is none.
    pub(super) fn login_page(&self, server: &ServerName) -> Option<Url> {
        self.service.as_ref()?.join(&format!("login/{server}")).ok()
    }

    /// Returns the file with what a user has for one server. A server at another URL has another file.
    pub(super) fn file(&self, user: Owner, name: &ServerName, definition: &ServerDefinition) -> SecretFile {
        let directory = self.directory.join(user.user().to_hex());
        SecretFile::encrypted(directory.join(file_name(name, definition)), self.key.clone())
    }

    /// Removes what is left of a user in the store, also for servers that are no longer configured. Returns whether there was
    /// anything.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget(&self, user: Owner) -> std::io::Result<bool> {
        files::remove_directory(&self.directory.join(user.user().to_hex()))
    }

    /// Returns what a user does to log in to a server.
    pub(super) fn advice(&self, name: &ServerName) -> String {
        match self.login_page(name) {
            Some(page) => format!("log in at {page}"),
            None => format!("run `lockhouse server login {name}`"),
        }
    }
}

/// The account of a user at a server whose calls use credentials of each user.
#[derive(Clone, Debug)]
pub struct UserAccount {
    credential: UserCredential,
    /// `None` for a server that is no HTTP server, which has a secret.
    endpoint: Option<HttpEndpoint>,
    file: SecretFile,
}

impl UserAccount {
    /// Returns the account of a user. `None` if calls of the server use no stored credentials of users.
    pub fn of(
        user: Owner,
        server: &ServerName,
        definition: &ServerDefinition,
        users: Option<&UserCredentials>,
    ) -> Option<Self> {
        let credential = definition.user_credential.clone().filter(|credential| {
            // Nothing is stored of it.
            !matches!(credential, UserCredential::Exchange(_))
        })?;
        let endpoint = match &definition.endpoint {
            Endpoint::Http(endpoint) => Some(endpoint.clone()),
            Endpoint::Stdio(_) | Endpoint::Socket(_) => None,
        };
        let file = users?.file(user, server, definition);
        Some(Self { credential, endpoint, file })
    }

    /// Whether the account needs a secret, rather than a login.
    pub fn needs_secret(&self) -> bool {
        matches!(self.credential, UserCredential::Secret(_))
    }

    /// Whether the user has anything for the server.
    pub fn is_present(&self) -> bool {
        self.file.version().is_some()
    }

    /// Stores the secret of the user.
    ///
    /// # Errors
    /// The secret cannot be sent in a header or set as a variable, or cannot be stored.
    pub fn set_secret(&self, secret: &str) -> Result<(), UserSecretError> {
        let is_usable =
            (1..=SECRET_BYTES_MAX).contains(&secret.len()) && !secret.chars().any(char::is_control);
        if !is_usable {
            return Err(UserSecretError::Unusable);
        }
        Ok(self.file.write(secret)?)
    }

    /// Begins a login, as [`Login::begin`] does for the service.
    ///
    /// # Errors
    /// The server or its authorization server does not permit it.
    pub async fn begin_login(&self, redirect: &str, scopes: &[String]) -> Result<Login, LoginError> {
        let Some(endpoint) = &self.endpoint else { return Err(LoginError::NotAsked) };
        Login::begin_with(TokenFile::of_user(self.file.clone()), endpoint, redirect, scopes).await
    }

    /// Deletes what the user has for the server, and revokes tokens.
    ///
    /// # Errors
    /// It cannot be deleted.
    pub async fn log_out(&self) -> Result<Logout, LoginError> {
        match &self.endpoint {
            Some(endpoint) if !self.needs_secret() => {
                log_out_of(&TokenFile::of_user(self.file.clone()), endpoint).await
            }
            _ => Ok(if self.file.delete()? { Logout::Complete } else { Logout::Nothing }),
        }
    }
}
