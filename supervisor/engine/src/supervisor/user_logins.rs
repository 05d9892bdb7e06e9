//! Credentials of users for upstream servers with `auth = "per_user"`: a user of the service logs in, or stores a secret, on the
//! front's page.

use lockhouse_audit::{AuditError, LoginStep};
use lockhouse_base::expiring_map::ExpiringMap;
use lockhouse_base::principal::Principal;
use lockhouse_messages::{Access, Owner, Response, SecretValue, UserLoginRequest};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{LOGIN_REQUESTS_TIMEOUT, LOGIN_TIMEOUT, Login, LoginError, UserAccount};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::Supervisor;

/// Maximum number of logins of users that wait for a browser. A further one ends the oldest.
/// Bound: AI clients.
const PENDING_MAX: usize = 256;
/// Maximum length of the addresses in a login, in bytes.
/// Bound: AI clients.
const ADDRESS_BYTES_MAX: usize = 16 * 1024;

/// The logins of users that wait until the browser returns.
pub(super) struct UserLogins(Mutex<ExpiringMap<(Owner, ServerName), Login>>);

impl Default for UserLogins {
    fn default() -> Self {
        Self(Mutex::new(ExpiringMap::new(PENDING_MAX, LOGIN_TIMEOUT)))
    }
}

/// Prints nothing of the logins, which have secrets.
impl std::fmt::Debug for UserLogins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserLogins")
    }
}

/// Why a user has no credentials after a request for them.
#[derive(Debug, thiserror::Error)]
enum UserLoginError {
    #[error("this server asks for a secret of yours: enter it")]
    SecretMissing,
    #[error("this server takes no secret: leave the field empty, and log in to it")]
    SecretUnexpected,
    #[error("an address has more than {ADDRESS_BYTES_MAX} bytes")]
    TooLong,
    #[error("no login to this server waits for its browser: begin again")]
    NotBegun,
    #[error("no answer within {} s; try again", LOGIN_REQUESTS_TIMEOUT.as_secs())]
    Late,
    #[error("it is not recorded, so it was not done: {0}")]
    Unrecorded(#[from] AuditError),
    #[error(transparent)]
    Secret(#[from] lockhouse_upstream::UserSecretError),
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl Supervisor {
    /// Remembers the OAuth token with which a user has authenticated, for servers that take tokens of users in exchange for it.
    /// Tokens of Lockhouse's own have no time, and no other server knows them.
    pub(crate) fn note_token(&self, access: &Access, token: &str) {
        let upstreams = self.gate().upstreams().clone();
        if let Some(expires_in) = access.expires_in.filter(|_| upstreams.uses_exchange()) {
            upstreams.subjects().note(access.owner, token, expires_in);
        }
    }

    /// Carries out what a user asks about their credentials for a server that they may use.
    pub(crate) async fn user_login(&self, user: &Principal, request: UserLoginRequest) -> Response {
        let (UserLoginRequest::Begin { server, .. }
        | UserLoginRequest::Finish { server, .. }
        | UserLoginRequest::LogOut { server }) = &request;
        let server = server.clone();
        let Some(account) = self.gate().user_account(user, &server) else { return Response::NotFound };
        let done = match request {
            UserLoginRequest::Begin { secret, redirect, .. } => {
                self.begin_user_login(user, &server, &account, secret, &redirect).await
            }
            UserLoginRequest::Finish { returned_to, .. } => {
                self.finish_user_login(user, &server, &returned_to).await.map(|()| None)
            }
            UserLoginRequest::LogOut { .. } => {
                self.log_user_out(user, &server, &account).await.map(|()| None)
            }
        };
        self.gate().upstreams().sharing().publish().await;
        match done {
            Ok(address) => Response::Text(address),
            Err(error) => Response::Invalid(error.to_string()),
        }
    }

    async fn begin_user_login(
        &self,
        user: &Principal,
        server: &ServerName,
        account: &UserAccount,
        secret: Option<SecretValue>,
        redirect: &str,
    ) -> Result<Option<String>, UserLoginError> {
        if redirect.len() > ADDRESS_BYTES_MAX {
            return Err(UserLoginError::TooLong);
        }
        match secret {
            Some(_) if !account.needs_secret() => Err(UserLoginError::SecretUnexpected),
            None if account.needs_secret() => Err(UserLoginError::SecretMissing),
            Some(secret) => {
                self.record_user_login(user, server, LoginStep::Granted)?;
                account.set_secret(secret.expose())?;
                Ok(None)
            }
            None => {
                let login = account.begin_login(redirect, &[]);
                let login =
                    timeout(LOGIN_REQUESTS_TIMEOUT, login).await.map_err(|_| UserLoginError::Late)??;
                let address = login.address.to_string();
                self.user_logins.0.lock().insert((user.owner(), server.clone()), login);
                Ok(Some(address))
            }
        }
    }

    async fn finish_user_login(
        &self,
        user: &Principal,
        server: &ServerName,
        returned_to: &str,
    ) -> Result<(), UserLoginError> {
        if returned_to.len() > ADDRESS_BYTES_MAX {
            return Err(UserLoginError::TooLong);
        }
        let login = self.user_logins.0.lock().remove(&(user.owner(), server.clone()));
        let login = login.ok_or(UserLoginError::NotBegun)?;
        self.record_user_login(user, server, LoginStep::Answered)?;
        let finished = timeout(LOGIN_REQUESTS_TIMEOUT, login.finish(returned_to)).await;
        let finished = finished.map_err(|_| UserLoginError::Late).and_then(|finished| Ok(finished?));
        let step = if finished.is_ok() { LoginStep::Granted } else { LoginStep::Failed };
        // The tokens are stored already, so a missing record does not fail the login.
        let _ = self.record_user_login(user, server, step).inspect_err(|error| tracing::error!("{error}"));
        finished.map(drop)
    }

    async fn log_user_out(
        &self,
        user: &Principal,
        server: &ServerName,
        account: &UserAccount,
    ) -> Result<(), UserLoginError> {
        self.user_logins.0.lock().remove(&(user.owner(), server.clone()));
        if account.log_out().await?.had_token() {
            // It only takes a permission away.
            let recorded = self.record_user_login(user, server, LoginStep::LoggedOut);
            let _ = recorded.inspect_err(|error| tracing::error!("{error}"));
        }
        Ok(())
    }

    fn record_user_login(
        &self,
        user: &Principal,
        server: &ServerName,
        step: LoginStep,
    ) -> Result<(), AuditError> {
        self.gate().audit().user_login(server, step, user.client())
    }
}
