//! Who may use the page: one-time links, the browser that this process opens, access tokens of a service, and the
//! sessions that they begin.
//!
//! A session has two secrets. The cookie is sent by the browser itself, and no script can read it. The key is kept by the
//! page's script, and sent as the header `X-Lockhouse-Page`. Both are required with each request. The cookie alone would
//! not be enough: browsers send cookies to every port of a host, so a server of another user of this machine could
//! receive it. The key alone would be enough, but is readable for a script that gets into the page.

mod browser_login;
mod login_links;
mod page_sessions;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use futures_util::future::BoxFuture;
use lockhouse_base::browser_opening::BrowserOpening;
use lockhouse_base::tcp_connection::TcpConnection;
use tokio::sync::mpsc;

use super::error::{ActionError, ErrorCode};
use super::viewer::Viewer;
use login_links::LoginLinks;
use page_sessions::{PageSessions, SessionSecrets};

pub use browser_login::BrowserLogin;
use browser_login::{BROWSER_COOKIE, new_browser};
pub use login_links::LoginLink;

/// The header with the key of a session.
pub(super) const KEY_HEADER: &str = "x-lockhouse-page";
/// The value of [`KEY_HEADER`] in a login, which has no key yet.
pub(super) const LOGIN_KEY: &str = "login";
/// Where browsers come back to from an authorization server.
pub(super) const RETURN_PATH: &str = "/oauth/return";
/// How long a session of the page lasts.
/// Bound: the live page.
pub(super) const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Returns who logs in with an access token of a service; `None` if the token is not valid.
pub type TokenCheck = Box<dyn Fn(String) -> BoxFuture<'static, Option<TokenLogin>> + Send + Sync>;
/// Returns whether the authentication that began a session is still valid.
pub type ValidityCheck = Box<dyn Fn() -> bool + Send + Sync>;

/// A person who logs in with an access token of a service.
pub struct TokenLogin {
    pub viewer: Viewer,
    /// The session ends when this returns false, for example because the token was revoked.
    pub is_valid: ValidityCheck,
}

/// Decides who may use the page.
pub struct Access {
    cookie_name: String,
    links: LoginLinks,
    opening: BrowserOpening<Viewer>,
    sessions: PageSessions,
    /// Checks access tokens of a service; `None` if only one-time links are accepted.
    token_check: Option<TokenCheck>,
    /// Logs people in at an authorization server; `None` if they log in with tokens only.
    browser_login: Option<Arc<dyn BrowserLogin>>,
    /// Receives each login: who has logged in, or `None` for one that was refused.
    logins: Option<mpsc::Sender<Option<String>>>,
}

/// Maximum number of logins that wait for their records. Further ones have none.
/// Bound: the live page.
const LOGINS_WAITING_MAX: usize = 64;

/// The kernel provides no random numbers, which secrets need.
#[derive(Debug, thiserror::Error)]
#[error("the kernel provides no random numbers: {0}")]
pub struct NoRandomNumbers(#[from] getrandom::Error);

/// The response to a login: the two secrets of the new session.
pub(super) struct LoggedIn {
    pub(super) cookie: HeaderValue,
    pub(super) key: String,
}

impl Access {
    /// `port` is part of the cookie's name, since the browser sends cookies to all ports of a host. `link_lifetime` is
    /// how long a one-time link can be used.
    #[must_use]
    pub fn new(port: Option<u16>, link_lifetime: Duration, token_check: Option<TokenCheck>) -> Self {
        let suffix = port.map_or_else(|| "unix".to_owned(), |port| port.to_string());
        Self {
            cookie_name: format!("lockhouse_page_{suffix}"),
            links: LoginLinks::new(link_lifetime),
            opening: BrowserOpening::default(),
            sessions: PageSessions::default(),
            token_check,
            browser_login: None,
            logins: None,
        }
    }

    /// Returns the logins from now on: who has logged in, or `None` for one that was refused.
    pub fn logins(&mut self) -> mpsc::Receiver<Option<String>> {
        let (sender, receiver) = mpsc::channel(LOGINS_WAITING_MAX);
        self.logins = Some(sender);
        receiver
    }

    /// Lets people also log in at an authorization server.
    #[must_use]
    pub fn with_browser_login(self, login: Option<Arc<dyn BrowserLogin>>) -> Self {
        Self { browser_login: login, ..self }
    }

    /// Whether people log in at an authorization server.
    pub(super) fn has_browser_login(&self) -> bool {
        self.browser_login.is_some()
    }

    /// Sends a browser to the authorization server. Returns its address, and a cookie. `origin` is that of the page.
    pub(super) async fn send_browser(
        &self,
        origin: &str,
        is_tls: bool,
    ) -> Result<(String, HeaderValue), ActionError> {
        let login = self.browser_login.as_ref().ok_or_else(no_browser_login)?;
        let browser = new_browser()?;
        let secure = if is_tls { "; Secure" } else { "" };
        let cookie = format!(
            "{BROWSER_COOKIE}={browser}; HttpOnly; SameSite=Lax; Path={RETURN_PATH}; Max-Age=300{secure}"
        );
        let address = login.begin(browser, format!("{origin}{RETURN_PATH}")).await?;
        let cookie = HeaderValue::from_str(&cookie)
            .map_err(|error| ActionError::new(ErrorCode::Failed, error.to_string()))?;
        Ok((address, cookie))
    }

    /// Returns a one-time link for the person whose browser came back from the authorization server.
    pub(super) async fn receive_browser(
        &self,
        headers: &HeaderMap,
        query: HashMap<String, String>,
    ) -> Result<LoginLink, ActionError> {
        let login = self.browser_login.as_ref().ok_or_else(no_browser_login)?;
        let browser = cookie_of(headers, BROWSER_COOKIE).unwrap_or_default().to_owned();
        let token = login.finish(browser, query).await?;
        let login = match &self.token_check {
            Some(check) => check(token).await,
            None => None,
        };
        let message = "the issuer's token is not accepted here: ask who administers this service";
        let login = login.ok_or_else(|| {
            self.announce_login(None);
            ActionError::new(ErrorCode::Forbidden, message)
        })?;
        self.links.create_login(login).map_err(|error| ActionError::new(ErrorCode::Failed, error.to_string()))
    }

    fn announce_login(&self, viewer: Option<&Viewer>) {
        if let Some(logins) = &self.logins {
            let _ = logins.try_send(viewer.map(|viewer| viewer.name().to_owned()));
        }
    }

    /// Creates a one-time link for this viewer. Links that were created before stay valid until they expire.
    ///
    /// # Errors
    /// If the kernel provides no random numbers.
    pub fn create_link(&self, viewer: Viewer) -> Result<LoginLink, NoRandomNumbers> {
        self.links.create(viewer)
    }

    /// Lets in one request of a browser on this host within 60 s, for this viewer.
    pub fn await_browser(&self, viewer: Viewer) {
        self.opening.begin(viewer);
    }

    /// Creates a one-time link for the browser that this process opens.
    pub(super) fn open(
        &self,
        connection: Option<TcpConnection>,
        headers: &HeaderMap,
    ) -> Result<LoginLink, ActionError> {
        let viewer = self.opening.admit(connection, headers).map_err(|refusal| {
            let message = format!("{refusal}: open the link that the terminal shows");
            ActionError::new(ErrorCode::Forbidden, message)
        })?;
        self.create_link(viewer).map_err(|error| ActionError::new(ErrorCode::Failed, error.to_string()))
    }

    /// Begins a session with the token of a one-time link, or with an access token of a service. `is_tls` says whether
    /// the browser uses TLS, and so may send the cookie over TLS only.
    pub(super) async fn log_in(&self, token: String, is_tls: bool) -> Result<LoggedIn, ActionError> {
        let login = match (self.links.redeem(&token), &self.token_check) {
            (Some(login), _) => Some(login),
            (None, Some(check)) => check(token).await,
            (None, None) => None,
        };
        let message = match self.token_check {
            None => "this link is not valid: it was used already, or it is too old. Open a new one",
            Some(_) => "this access token is not valid",
        };
        self.announce_login(login.as_ref().map(|login| &login.viewer));
        let login = login.ok_or_else(|| ActionError::new(ErrorCode::NoSession, message))?;
        let SessionSecrets { cookie, key } = self.sessions.begin(login).map_err(|error| {
            ActionError::new(ErrorCode::Failed, format!("no session can be created: {error}"))
        })?;
        let seconds = SESSION_LIFETIME.as_secs();
        let name = &self.cookie_name;
        let secure = if is_tls { "; Secure" } else { "" };
        let cookie = format!("{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
        let cookie = HeaderValue::from_str(&cookie)
            .map_err(|error| ActionError::new(ErrorCode::Failed, error.to_string()))?;
        Ok(LoggedIn { cookie, key })
    }

    /// Returns the viewer of a request.
    ///
    /// # Errors
    /// [`ErrorCode::NoSession`] if the request has no session.
    pub(super) fn viewer(&self, headers: &HeaderMap) -> Result<Viewer, ActionError> {
        let found = self.secrets(headers).and_then(|(cookie, key)| self.sessions.find(cookie, key));
        let message = "this page has no session any more. Open a new link: run `lockhouse page` again, or press \
                       Enter in its terminal";
        found.ok_or_else(|| ActionError::new(ErrorCode::NoSession, message))
    }

    /// Ends the session of a request.
    pub(super) fn log_out(&self, headers: &HeaderMap) {
        if let Some((cookie, _)) = self.secrets(headers) {
            self.sessions.end(cookie);
        }
    }

    fn secrets<'h>(&self, headers: &'h HeaderMap) -> Option<(&'h str, &'h str)> {
        let key = headers.get(KEY_HEADER)?.to_str().ok()?;
        Some((cookie_of(headers, &self.cookie_name)?, key))
    }
}

fn cookie_of<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    cookies.find(|(name, _)| *name == wanted).map(|(_, cookie)| cookie)
}

fn no_browser_login() -> ActionError {
    ActionError::new(ErrorCode::NotFound, "people log in with access tokens here")
}

/// Returns a secret of 256 random bits as 64 hexadecimal digits.
fn random_secret() -> Result<String, NoRandomNumbers> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(data_encoding::HEXLOWER.encode(&bits))
}

/// Returns the digest under which a secret is stored. Lookups by digest reveal nothing about secrets by their duration.
fn digest(secret: &str) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(secret.as_bytes()).into()
}
