//! Logins to upstream servers that the engine of the system conducts for its person: the engine has the listener for the
//! browser, the secrets of the exchange and the token, and the person's side only opens an address.

use std::collections::HashMap;
use std::time::UNIX_EPOCH;

use lockhouse_approvals::{ApprovalSubject, PresenceError};
use lockhouse_audit::{AuditError, LocalUser, LoginStep};
use lockhouse_messages::{LoginProgress, Logout, PresenceProof};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{
    Authorization, Callback, HttpEndpoint, LOGIN_REQUESTS_TIMEOUT, LOGIN_TIMEOUT, Login, LoginError, log_out,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::Supervisor;

/// Maximum number of scopes that a login requests in addition to the configured ones, and maximum length of each in bytes.
/// Bound: upstream servers.
const SCOPES_MAX: usize = 64;
const SCOPE_BYTES_MAX: usize = 512;
/// Maximum length of a redirect address that a person pastes, in bytes.
/// Bound: upstream servers.
const REDIRECT_BYTES_MAX: usize = 16 * 1024;

/// Why a login is not begun or continued.
#[derive(Debug, thiserror::Error)]
pub enum ServerLoginError {
    #[error("only the engine of the system logs in for a person")]
    NotOfSystem,
    #[error("there is no server {0} over HTTP in the configuration of the engine")]
    NoServer(ServerName),
    #[error("a login has at most {SCOPES_MAX} scopes of {SCOPE_BYTES_MAX} bytes")]
    Scopes,
    #[error("no login to {0} is in progress")]
    NotBegun(ServerName),
    #[error("the address has more than {REDIRECT_BYTES_MAX} bytes")]
    TooLong,
    #[error("the login does not begin: {0}")]
    NotProven(#[from] PresenceError),
    #[error(transparent)]
    Token(#[from] LoginError),
}

/// The logins in progress, and the results of the last ones: one for each server.
#[derive(Debug, Default)]
pub(super) struct ServerLogins(Mutex<HashMap<ServerName, ServerLogin>>);

#[derive(Debug)]
struct ServerLogin {
    progress: watch::Receiver<LoginProgress>,
    pasted: mpsc::Sender<String>,
    task: AbortHandle,
}

impl Drop for ServerLogin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Supervisor {
    /// Begins the login of the person to a server, if `proof` is what the requirements ask of the person, or root begins it. A
    /// login to this server that is in progress ends.
    ///
    /// # Errors
    /// There is no such server over HTTP, the proof is not valid, or this process is not the engine of the system.
    pub fn begin_login(
        &self,
        server: &ServerName,
        scopes: Vec<String>,
        proof: Option<&PresenceProof>,
        by: Option<LocalUser>,
    ) -> Result<LoginProgress, ServerLoginError> {
        if self.settings.proposal.is_none() {
            return Err(ServerLoginError::NotOfSystem);
        }
        if scopes.len() > SCOPES_MAX || scopes.iter().any(|scope| scope.len() > SCOPE_BYTES_MAX) {
            return Err(ServerLoginError::Scopes);
        }
        let gate = self.gate();
        let endpoint = gate.upstreams().http_endpoint(server);
        let endpoint = endpoint.ok_or_else(|| ServerLoginError::NoServer(server.clone()))?.clone();
        let (subject, presence) =
            (ApprovalSubject::Login { server: server.to_string() }, self.approvers().presence());
        let proven = match presence.verify_acceptance(&subject, proof, by) {
            Err(PresenceError::PasswordRequired | PresenceError::KeyRequired) if proof.is_none() => {
                return Ok(LoginProgress::Unproven(presence.level()));
            }
            proven => proven?,
        };
        let (sender, progress) = watch::channel(LoginProgress::Starting);
        let (pasted, pastes) = mpsc::channel(1);
        let (audit, name, by) = (gate.audit(), server.clone(), by.unwrap_or_else(LocalUser::current));
        let task = tokio::spawn(async move {
            let record = |step| audit.login(&name, step, Some(&proven), by);
            let conducted = conduct(&name, &endpoint, &scopes, &sender, pastes, record).await;
            sender.send_replace(conducted.unwrap_or_else(LoginProgress::Failed));
        });
        let login = ServerLogin { progress, pasted, task: task.abort_handle() };
        self.logins.0.lock().insert(server.clone(), login);
        Ok(LoginProgress::Starting)
    }

    /// Returns how far the last login to a server is. `redirect` is the address to which the browser was redirected, if the
    /// person pasted it.
    ///
    /// # Errors
    /// No login was begun.
    pub fn continue_login(
        &self,
        server: &ServerName,
        redirect: Option<String>,
    ) -> Result<LoginProgress, ServerLoginError> {
        let logins = self.logins.0.lock();
        let login = logins.get(server).ok_or_else(|| ServerLoginError::NotBegun(server.clone()))?;
        if let Some(redirect) = redirect {
            if redirect.len() > REDIRECT_BYTES_MAX {
                return Err(ServerLoginError::TooLong);
            }
            // The login that has an address already takes no other.
            let _ = login.pasted.try_send(redirect);
        }
        Ok(login.progress.borrow().clone())
    }

    /// Deletes the stored token of a server, and ends a login in progress.
    ///
    /// # Errors
    /// There is no such server over HTTP, or the token cannot be deleted.
    pub async fn log_out(
        &self,
        server: &ServerName,
        by: Option<LocalUser>,
    ) -> Result<Logout, ServerLoginError> {
        if self.settings.proposal.is_none() {
            return Err(ServerLoginError::NotOfSystem);
        }
        self.logins.0.lock().remove(server);
        let gate = self.gate();
        let endpoint = gate.upstreams().http_endpoint(server);
        let logout =
            log_out(server, endpoint.ok_or_else(|| ServerLoginError::NoServer(server.clone()))?).await?;
        if logout.had_token() {
            let recorded =
                gate.audit().login(server, LoginStep::LoggedOut, None, by.unwrap_or_else(LocalUser::current));
            // It only takes a permission away.
            let _ = recorded.inspect_err(|error| tracing::error!("{error}"));
        }
        Ok(logout)
    }
}

/// Conducts a login to its end, and records it.
///
/// # Errors
/// The reason, for the person.
async fn conduct(
    name: &ServerName,
    endpoint: &HttpEndpoint,
    scopes: &[String],
    progress: &watch::Sender<LoginProgress>,
    mut pastes: mpsc::Receiver<String>,
    record: impl Fn(LoginStep) -> Result<(), AuditError>,
) -> Result<LoginProgress, String> {
    let port = match &endpoint.authorization {
        Authorization::OAuth(client) => client.callback_port.unwrap_or(0),
        _ => 0,
    };
    let callback = Callback::listen(port).await;
    let callback =
        callback.map_err(|error| format!("cannot listen at localhost:{port} for the browser: {error}"))?;
    let login = in_time(Login::begin(name, endpoint, callback.address(), scopes)).await?;
    progress.send_replace(LoginProgress::Waiting { address: login.address.to_string() });
    let redirect = async {
        tokio::select! {
            address = callback.wait_for_redirect(&login.state) => address,
            Some(address) = pastes.recv() => address,
        }
    };
    let redirect = timeout(LOGIN_TIMEOUT, redirect).await.map_err(|_| {
        format!("the login was not completed within {} minutes", LOGIN_TIMEOUT.as_secs() / 60)
    })?;
    record(LoginStep::Answered).map_err(|error| error.to_string())?;
    let finished = in_time(login.finish(&redirect)).await;
    let step = if finished.is_ok() { LoginStep::Granted } else { LoginStep::Failed };
    if let Err(error) = record(step) {
        tracing::error!("{error}");
    }
    let granted = finished?;
    let seconds = granted.expires.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(LoginProgress::Granted {
        expires: seconds.map(|time| time.as_secs()),
        is_renewable: granted.is_renewable,
    })
}

async fn in_time<T>(step: impl Future<Output = Result<T, LoginError>>) -> Result<T, String> {
    match timeout(LOGIN_REQUESTS_TIMEOUT, step).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LOGIN_REQUESTS_TIMEOUT.as_secs())),
    }
}
