//! Logs people of a service in at the issuer of their access tokens.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lockhouse_access::{BegunLogin, CodeLogin};
use lockhouse_base::expiring_map::ExpiringMap;
use lockhouse_page::{ActionError, BrowserLogin, ErrorCode};
use parking_lot::Mutex;

/// Maximum number of browsers that are at the issuer.
/// Bound: the live page.
const BROWSERS_MAX: usize = 256;
/// Time after which a browser that has not returned begins again.
/// Bound: the live page.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(300);

/// The logins whose browsers are at the issuer, by what they bring back.
pub(super) struct CodeLogins {
    login: CodeLogin,
    begun: Mutex<ExpiringMap<String, (String, BegunLogin)>>,
}

impl CodeLogins {
    pub(super) fn new(login: CodeLogin) -> Self {
        Self { login, begun: Mutex::new(ExpiringMap::new(BROWSERS_MAX, BROWSER_TIMEOUT)) }
    }
}

impl BrowserLogin for CodeLogins {
    fn begin(&self, browser: String, redirect: String) -> BoxFuture<'_, Result<String, ActionError>> {
        async move {
            let begun = self.login.begin(&redirect).await.map_err(|error| failed(&error))?;
            let (state, address) = (begun.state.clone(), begun.address.to_string());
            self.begun.lock().insert(state, (browser, begun));
            Ok(address)
        }
        .boxed()
    }

    fn finish(
        &self,
        browser: String,
        query: HashMap<String, String>,
    ) -> BoxFuture<'_, Result<String, ActionError>> {
        async move {
            let begin_again =
                || ActionError::new(ErrorCode::Forbidden, "this login did not begin here: begin again");
            let field = |name: &str| query.get(name).map(String::as_str);
            let begun = field("state").and_then(|state| self.begun.lock().remove(&state.to_owned()));
            let (of_browser, begun) = begun.ok_or_else(begin_again)?;
            if of_browser != browser {
                return Err(begin_again());
            }
            let code = field("code").ok_or_else(|| {
                let message = "the issuer logged nobody in: begin again, or ask who administers it";
                ActionError::new(ErrorCode::Forbidden, message)
            })?;
            self.login.finish(begun, code, field("iss")).await.map_err(|error| failed(&error))
        }
        .boxed()
    }
}

fn failed(error: &lockhouse_access::CodeLoginError) -> ActionError {
    tracing::warn!("a login at the page failed: {error}");
    ActionError::new(ErrorCode::Failed, error.to_string())
}
