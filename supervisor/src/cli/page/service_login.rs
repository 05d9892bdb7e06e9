//! How people log in to the page of a service: with the access token with which their AI client connects over HTTP.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use lockhouse_access::{Authenticator, CodeLogin, Evidence};
use lockhouse_base::http_checks::host_check::HostName;
use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_base::principal::Principal;
use lockhouse_page::{BrowserLogin, PageAddress, PageRights, TokenCheck, TokenLogin, Viewer, ViewerToken};
use lockhouse_policies::{Policy, Rate, RoleKind};
use parking_lot::Mutex;

use super::code_login::CodeLogins;
use crate::cli::{UNAVAILABLE, USAGE, print_config_error, print_error};
use lockhouse_config::{self as config, Files, PageSettings};

/// How long the page uses a policy until it reads the files again.
const POLICY_LIFETIME: Duration = Duration::from_secs(2);

/// The page of a service, from the table `[page]`.
pub(super) struct ServicePage {
    pub(super) listen: PageAddress,
    pub(super) hosts: Vec<HostName>,
    pub(super) token_check: TokenCheck,
    /// Logs people in at the issuer of their tokens; `None` if the configuration names no client.
    pub(super) browser_login: Option<Arc<dyn BrowserLogin>>,
}

/// Loads the settings of a service's page. Prints an error if the configuration does not enable the page.
pub(super) fn load(files: &Files) -> Result<ServicePage, ExitCode> {
    let settings = config::load_page_settings(files).map_err(|error| print_config_error(&error))?;
    let PageSettings { listen, hosts, administrators, auth, logins, client } = settings;
    let Some(listen) = listen.and_then(|address| address.to_string().parse().ok()) else {
        eprintln!("lockhouse: the page of a service is off: set listen of [page] in the configuration");
        return Err(ExitCode::from(USAGE));
    };
    if auth.mode.is_none() {
        eprintln!("lockhouse: the page of a service needs authentication, and auth of [http] is \"none\"");
        return Err(ExitCode::from(USAGE));
    }
    let login =
        auth.oauth.as_ref().zip(client).map(|(oauth, client)| CodeLogin::new(oauth, client)).transpose();
    let login = login.map_err(|error| print_error(&error, UNAVAILABLE))?;
    let browser_login = login.map(|login| Arc::new(CodeLogins::new(login)) as Arc<dyn BrowserLogin>);
    let authenticator = Authenticator::new(auth).map_err(|error| print_error(&error, UNAVAILABLE))?;
    let token_check = token_check(authenticator, logins, administrators, RolesInForce::new(files));
    Ok(ServicePage { listen, hosts, browser_login, token_check })
}

/// Returns the check of access tokens, as the HTTP server for AI clients makes it.
fn token_check(
    authenticator: Arc<Authenticator>,
    rate: Rate,
    administrators: Vec<String>,
    roles: RolesInForce,
) -> TokenCheck {
    let (administrators, roles) = (Arc::new(administrators), Arc::new(roles));
    let logins = Arc::new(KeyedLimiter::default());
    Box::new(move |token| {
        let (authenticator, administrators, roles) =
            (authenticator.clone(), administrators.clone(), roles.clone());
        let logins = logins.clone();
        async move {
            let principal = authenticator.authenticate(Evidence::Token(&token)).await.ok()?;
            let (owner, now) = (principal.owner(), Instant::now());
            if owner.is_limited() {
                logins.bucket(owner, rate, now).reserve(Duration::ZERO, now).ok()?;
            }
            // Without a name that is authenticated, nobody knows whose runs the person may see.
            principal.name()?;
            let policy = roles.policy()?;
            let viewer = viewer(&principal, &token, &administrators, &policy)?;
            let begun = viewer.clone();
            // Other roles need another login.
            let is_valid = move || {
                let policy = roles.policy().filter(|_| !principal.has_expired());
                let now =
                    policy.and_then(|policy| self::viewer(&principal, &token, &administrators, &policy));
                now.as_ref() == Some(&begun)
            };
            Some(TokenLogin { viewer, is_valid: Box::new(is_valid) })
        }
        .boxed()
    })
}

/// Returns what a person may see and do. The roles of the policy decide, if it has any, and otherwise `administrators`.
fn viewer(principal: &Principal, token: &str, administrators: &[String], policy: &Policy) -> Option<Viewer> {
    let client = principal.authenticated_client()?;
    if !policy.has_roles() {
        let is_administrator = administrators.iter().any(|name| name == client.as_str());
        let viewer = if is_administrator { Viewer::administrator } else { Viewer::person };
        return Some(viewer(client.as_str()));
    }
    let has = |kind| policy.has_role(client, kind);
    let rights = PageRights {
        approve: has(RoleKind::Approve),
        policy: has(RoleKind::Policy),
        audit: has(RoleKind::Audit),
        operate: has(RoleKind::Operate),
    };
    let may_look = rights != PageRights::default() || has(RoleKind::Run);
    may_look.then(|| {
        Viewer::member(client.as_str(), rights, policy.roles_of(client), ViewerToken(token.to_owned()))
    })
}

/// The roles of the policy, which is read again when some time has passed.
struct RolesInForce {
    files: Files,
    read: Mutex<Option<(Instant, Option<Arc<Policy>>)>>,
}

impl RolesInForce {
    fn new(files: &Files) -> Self {
        Self { files: files.clone(), read: Mutex::default() }
    }

    /// Returns the policy. `None` if it cannot be used: nobody has a role then.
    fn policy(&self) -> Option<Arc<Policy>> {
        let mut read = self.read.lock();
        if let Some((at, policy)) = &*read
            && at.elapsed() < POLICY_LIFETIME
        {
            return policy.clone();
        }
        let policy = config::load_policy(&self.files).inspect_err(|error| {
            tracing::error!("nobody uses the page, because the policy cannot be used: {error}");
        });
        let policy = policy.ok().map(Arc::new);
        *read = Some((Instant::now(), policy.clone()));
        policy
    }
}
