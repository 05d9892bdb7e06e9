//! Opens the connection of a user: the setup of the server has the user's credential instead of that of the service.

use lockhouse_base::files::FileVersion;
use lockhouse_messages::Owner;
use lockhouse_protocol::{Failure, FailureCode};

use super::auth::LoginSource;
use super::auth::exchange::UserExchange;
use super::auth::secret_file::SecretFile;
use super::connection_setup::ConnectionSetup;
use super::definition::{Endpoint, ServerDefinition, UserCredential};

/// What a user has for one server at present.
pub(super) struct PresentCredential {
    kind: CredentialKind,
    /// What a connection that was opened with it must still find. Tokens change while a connection uses them, so they have none.
    pub(super) version: Option<FileVersion>,
}

enum CredentialKind {
    /// What is stored of the user.
    Stored(SecretFile),
    /// The token with which the user authenticates to the service.
    Exchange(Box<UserExchange>),
}

impl ConnectionSetup {
    /// Returns what a user has for the server.
    ///
    /// # Errors
    /// The user has no credential.
    pub(super) fn present_credential(&self, user: Owner) -> Result<PresentCredential, Failure> {
        let users = self.paths.users.as_ref().ok_or_else(|| self.login_required())?;
        if let Some(UserCredential::Exchange(exchange)) = &self.definition.user_credential {
            let settings = users.exchange().cloned().ok_or_else(|| self.login_required())?;
            let (exchange, subjects) = (exchange.clone(), self.subjects.clone());
            subjects.get(user).ok_or_else(|| self.login_required())?;
            let kind =
                CredentialKind::Exchange(Box::new(UserExchange { settings, exchange, subjects, user }));
            return Ok(PresentCredential { kind, version: None });
        }
        let file = users.file(user, &self.name, &self.definition);
        let version = file.version().ok_or_else(|| self.login_required())?;
        let is_secret = matches!(self.definition.user_credential, Some(UserCredential::Secret(_)));
        Ok(PresentCredential { kind: CredentialKind::Stored(file), version: is_secret.then_some(version) })
    }

    /// Returns what the connection of a user is opened with, whose credential replaces that of the service.
    ///
    /// # Errors
    /// The credential cannot be read.
    pub(super) fn with_credential(&self, present: PresentCredential) -> Result<Self, Failure> {
        let mut setup = self.clone();
        // What a server lists for one user is stored for no other.
        setup.paths.cache_dir = None;
        let (advice, sharing) = (self.user_advice(), self.login.sharing.clone());
        let file = match present.kind {
            CredentialKind::Stored(file) => file,
            CredentialKind::Exchange(exchange) => {
                setup.login = LoginSource { user_file: None, exchange: Some(*exchange), advice, sharing };
                return Ok(setup);
            }
        };
        if let Some(UserCredential::Secret(place)) = &self.definition.user_credential {
            let secret = file.read().unwrap_or_else(|error| {
                tracing::warn!("server {}: {error}", self.name);
                None
            });
            setup.definition.set_user_secret(place, secret.ok_or_else(|| self.login_required())?);
        } else {
            setup.login = LoginSource { user_file: Some(file), exchange: None, advice, sharing };
        }
        Ok(setup)
    }

    /// Returns what a user does to log in to the server.
    fn user_advice(&self) -> String {
        match &self.paths.users {
            _ if matches!(self.definition.user_credential, Some(UserCredential::Exchange(_))) => {
                "the AI client must authenticate to Lockhouse with an OAuth token that is valid now"
                    .to_owned()
            }
            Some(users) => users.advice(&self.name),
            None => "nothing encrypts the credentials of users here".to_owned(),
        }
    }

    /// Returns the error for a call of a user without a credential.
    fn login_required(&self) -> Failure {
        let name = &self.name;
        let advice = self.user_advice();
        let message = format!(
            "server {name} is called with credentials of each user, and this user has none: {advice}"
        );
        Failure { server: Some(name.to_string()), ..Failure::new(FailureCode::LoginRequired, message) }
    }
}

impl ServerDefinition {
    fn set_user_secret(&mut self, place: &str, secret: String) {
        match &mut self.endpoint {
            Endpoint::Stdio(command) => _ = command.environment.insert(place.to_owned(), secret),
            Endpoint::Http(endpoint) => {
                endpoint.headers.retain(|name, _| !name.eq_ignore_ascii_case(place));
                endpoint.headers.insert(place.to_owned(), secret);
            }
            // The configuration refuses this.
            Endpoint::Socket(_) => {}
        }
    }
}
