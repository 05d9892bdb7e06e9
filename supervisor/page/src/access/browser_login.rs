//! Logins at an authorization server: the browser goes there and comes back with a code.

use std::collections::HashMap;

use futures_util::future::BoxFuture;

use super::random_secret;
use crate::error::{ActionError, ErrorCode};

/// The cookie of a browser that is at the authorization server. It binds the return to the browser that began.
pub(super) const BROWSER_COOKIE: &str = "lockhouse_page_login";

/// Logs people in at an authorization server.
pub trait BrowserLogin: Send + Sync {
    /// Begins the login of a browser that has the cookie `browser`, and returns where it goes. It comes back to `redirect`.
    fn begin(&self, browser: String, redirect: String) -> BoxFuture<'_, Result<String, ActionError>>;

    /// Returns the access token of the person, from the query with which the browser came back.
    fn finish(
        &self,
        browser: String,
        query: HashMap<String, String>,
    ) -> BoxFuture<'_, Result<String, ActionError>>;
}

/// Returns the value of the cookie of a browser that begins.
pub(super) fn new_browser() -> Result<String, ActionError> {
    random_secret().map_err(|error| ActionError::new(ErrorCode::Failed, error.to_string()))
}
