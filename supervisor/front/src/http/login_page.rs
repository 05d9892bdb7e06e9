//! The page `/login/SERVER`, on which a user of the service gets credentials of their own for an upstream server: with a secret, or
//! with an OAuth login, after which the browser returns to `/login`.
//!
//! The page authenticates the user by the same token as `/mcp`, so a link to it gives nothing to the person who sends it. A cookie
//! binds the return of the browser to the browser that began.

mod html;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use lockhouse_base::expiring_map::ExpiringMap;
use lockhouse_link::{EngineClient, GrantedAccess};
use lockhouse_messages::{Request as Ask, Response as Answer, SecretValue, UserLoginRequest};
use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use tokio::time::timeout;
use url::form_urlencoded;

use crate::access::{Peer, RequestAuthenticator};
use crate::runs::new_handle;
use html::{escaped, message, page};

/// Maximum size of the form, in bytes.
/// Bound: AI clients.
const FORM_BYTES_MAX: usize = 64 * 1024;
/// Maximum time for the body of the form.
/// Bound: AI clients.
const FORM_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of browsers that a front waits for.
/// Bound: AI clients.
const BROWSERS_MAX: usize = 256;
/// Time after which a browser that has not returned begins again.
/// Bound: AI clients.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(300);
/// The cookie of the browser that began a login.
const COOKIE_NAME: &str = "lockhouse-login";
/// The state of the page.
pub(super) struct LoginPage {
    engine: EngineClient,
    authenticator: Arc<RequestAuthenticator>,
    /// The address to which browsers return.
    redirect: String,
    /// The browsers by the `state` of their logins.
    browsers: Mutex<ExpiringMap<String, Browser>>,
}

/// A browser that was sent to an authorization server.
struct Browser {
    access: GrantedAccess,
    server: ServerName,
    /// The value of its cookie.
    cookie: String,
}

/// Returns the routes of the page, if the service has an address for browsers.
pub(super) fn routes(
    engine: &EngineClient,
    authenticator: &Arc<RequestAuthenticator>,
    redirect: Option<&str>,
) -> Router {
    let Some(redirect) = redirect else { return Router::new() };
    let (engine, authenticator) = (engine.clone(), authenticator.clone());
    let page = Arc::new(LoginPage {
        engine,
        authenticator,
        redirect: redirect.to_owned(),
        browsers: Mutex::new(ExpiringMap::new(BROWSERS_MAX, BROWSER_TIMEOUT)),
    });
    Router::new()
        .route("/login", get(returned))
        .route("/login/{server}", get(form).post(submitted))
        .with_state(page)
}

async fn form(State(page): State<Arc<LoginPage>>, Path(server): Path<String>) -> Response {
    match ServerName::new(&server) {
        Ok(server) => page.form(StatusCode::OK, &server, ""),
        Err(_) => message(StatusCode::NOT_FOUND, "There is no such server."),
    }
}

async fn submitted(
    State(page): State<Arc<LoginPage>>,
    Path(server): Path<String>,
    request: Request,
) -> Response {
    let Ok(server) = ServerName::new(&server) else {
        return message(StatusCode::NOT_FOUND, "There is no such server.");
    };
    let peer = request.extensions().get::<Peer>().copied();
    let body = timeout(FORM_TIMEOUT, to_bytes(request.into_body(), FORM_BYTES_MAX)).await;
    let Ok(Ok(body)) = body else { return message(StatusCode::BAD_REQUEST, "The form did not arrive.") };
    let fields: HashMap<_, _> = form_urlencoded::parse(&body).into_owned().collect();
    let field = |name: &str| fields.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let access = match page.authenticator.authenticate_token(field("token"), peer).await {
        Ok(access) => access,
        Err(rejection) => {
            let status = rejection.into_response().status();
            let fault = match status {
                StatusCode::UNAUTHORIZED => "The token is not accepted.",
                _ => "The token cannot be checked now. Try again in a minute.",
            };
            return page.form(status, &server, fault);
        }
    };
    let request =
        match (field("action"), field("secret").map(|secret| SecretValue::try_from(secret.to_owned()))) {
            (Some("logout"), _) => UserLoginRequest::LogOut { server: server.clone() },
            (_, Some(Err(error))) => return page.form(StatusCode::BAD_REQUEST, &server, &error.to_string()),
            (_, secret) => UserLoginRequest::Begin {
                server: server.clone(),
                secret: secret.and_then(Result::ok),
                redirect: page.redirect.clone(),
            },
        };
    let is_logout = matches!(request, UserLoginRequest::LogOut { .. });
    match page.engine.ask(&access, None, Ask::UserLogin(request)).await {
        Answer::Text(Some(address)) => page.send_away(access, server, &address),
        Answer::Text(None) if is_logout => {
            message(StatusCode::OK, &format!("You have no credentials for {server} here any more."))
        }
        Answer::Text(None) => message(StatusCode::OK, &format!("Your secret for {server} is stored.")),
        Answer::NotFound => {
            page.form(StatusCode::NOT_FOUND, &server, "You have no such server to log in to.")
        }
        Answer::Invalid(reason) => page.form(StatusCode::UNPROCESSABLE_ENTITY, &server, &reason),
        _ => message(StatusCode::SERVICE_UNAVAILABLE, "The service cannot do this now. Try again."),
    }
}

/// Serves the return of a browser from an authorization server.
async fn returned(State(page): State<Arc<LoginPage>>, uri: Uri, headers: HeaderMap) -> Response {
    let query = uri.query().unwrap_or_default();
    let state = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "state");
    let browser = state.and_then(|(_, state)| page.take_browser(&state, &headers));
    let Some(Browser { access, server, .. }) = browser else {
        return message(
            StatusCode::BAD_REQUEST,
            "This browser has not begun this login here, or too long ago. Begin again on the page of the server.",
        );
    };
    let returned_to = format!("{}?{query}", page.redirect);
    let request = UserLoginRequest::Finish { server: server.clone(), returned_to };
    match page.engine.ask(&access, None, Ask::UserLogin(request)).await {
        Answer::Text(_) => {
            message(StatusCode::OK, &format!("You are logged in to {server}. Close this page."))
        }
        Answer::Invalid(reason) => {
            message(StatusCode::BAD_GATEWAY, &format!("Not logged in to {server}: {reason}"))
        }
        _ => message(StatusCode::SERVICE_UNAVAILABLE, "The service cannot do this now. Begin again."),
    }
}

impl LoginPage {
    /// Shows where the browser goes next, and remembers the browser.
    fn send_away(&self, access: GrantedAccess, server: ServerName, address: &str) -> Response {
        let parsed = url::Url::parse(address).ok();
        let state = parsed.as_ref().and_then(|url| url.query_pairs().find(|(name, _)| name == "state"));
        let (Some(host), Some((_, state))) = (parsed.as_ref().and_then(url::Url::host_str), state) else {
            return message(StatusCode::BAD_GATEWAY, "The authorization server has no usable address.");
        };
        let Some(cookie) = new_handle(None) else {
            return message(StatusCode::SERVICE_UNAVAILABLE, "The service cannot do this now. Try again.");
        };
        let secure = if self.redirect.starts_with("https:") { "; Secure" } else { "" };
        // `Lax`, because the authorization server sends the browser back.
        let set = format!(
            "{COOKIE_NAME}={cookie}; HttpOnly; SameSite=Lax; Path=/; Max-Age={}{secure}",
            BROWSER_TIMEOUT.as_secs()
        );
        let mut content =
            format!("<p>{} asks you to log in with your own account.</p>", escaped(server.as_str()));
        let _ = write!(content, "<p><a href=\"{}\">Continue to {}</a></p>", escaped(address), escaped(host));
        self.browsers.lock().insert(state.into_owned(), Browser { access, server, cookie });
        ([(SET_COOKIE, set)], page(StatusCode::OK, &content)).into_response()
    }

    /// Returns the browser that began the login with this `state`, if the request comes from it.
    fn take_browser(&self, state: &str, headers: &HeaderMap) -> Option<Browser> {
        let (mut browsers, state) = (self.browsers.lock(), state.to_owned());
        let browser = browsers.get(&state)?;
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let is_it = cookies.any(|(name, value)| {
            name == COOKIE_NAME
                && verify_slices_are_equal(value.as_bytes(), browser.cookie.as_bytes()).is_ok()
        });
        if is_it { browsers.remove(&state) } else { None }
    }

    fn form(&self, status: StatusCode, server: &ServerName, fault: &str) -> Response {
        let mut content = format!("<h1>Log in to {}</h1>", escaped(server.as_str()));
        if !fault.is_empty() {
            let _ = write!(content, "<p role=\"alert\"><strong>{}</strong></p>", escaped(fault));
        }
        content.push_str("<form method=\"post\">");
        if self.engine.requires_authentication() {
            content.push_str(
                "<label for=\"token\">Your token of Lockhouse, with which your AI client is configured</label>\
                 <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"off\" required>",
            );
        }
        content.push_str(
            "<label for=\"secret\">Your secret for the server, if it has no login of its own</label>\
             <input id=\"secret\" name=\"secret\" type=\"password\" autocomplete=\"off\">\
             <button name=\"action\" value=\"login\">Continue</button>\
             <button name=\"action\" value=\"logout\">Log out</button></form>",
        );
        page(status, &content)
    }
}
