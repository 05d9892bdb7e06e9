//! How people log in to the page of a service: with the access token with which their AI client connects over HTTP.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use lockhouse_access::{Authenticator, Evidence};
use lockhouse_base::http_checks::host_check::HostName;
use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_page::{PageAddress, TokenCheck, TokenLogin, Viewer};
use lockhouse_policies::Rate;

use crate::cli::{UNAVAILABLE, USAGE, print_config_error, print_error};
use lockhouse_config::{self as config, Files, PageSettings};

/// The page of a service, from the table `[page]`.
pub(super) struct ServicePage {
    pub(super) listen: PageAddress,
    pub(super) hosts: Vec<HostName>,
    pub(super) token_check: TokenCheck,
}

/// Loads the settings of a service's page. Prints an error if the configuration does not enable the page.
pub(super) fn load(files: &Files) -> Result<ServicePage, ExitCode> {
    let settings = config::load_page_settings(files).map_err(|error| print_config_error(&error))?;
    let PageSettings { listen, hosts, administrators, auth, logins } = settings;
    let Some(listen) = listen.and_then(|address| address.to_string().parse().ok()) else {
        eprintln!("lockhouse: the page of a service is off: set listen of [page] in the configuration");
        return Err(ExitCode::from(USAGE));
    };
    if auth.mode.is_none() {
        eprintln!("lockhouse: the page of a service needs authentication, and auth of [http] is \"none\"");
        return Err(ExitCode::from(USAGE));
    }
    let authenticator = Authenticator::new(auth).map_err(|error| print_error(&error, UNAVAILABLE))?;
    Ok(ServicePage { listen, hosts, token_check: token_check(authenticator, logins, administrators) })
}

/// Returns the check of access tokens, as the HTTP server for AI clients makes it.
fn token_check(authenticator: Arc<Authenticator>, rate: Rate, administrators: Vec<String>) -> TokenCheck {
    let administrators = Arc::new(administrators);
    let logins = Arc::new(KeyedLimiter::default());
    Box::new(move |token| {
        let (authenticator, administrators) = (authenticator.clone(), administrators.clone());
        let (logins, token) = (logins.clone(), token.to_owned());
        async move {
            let principal = authenticator.authenticate(Evidence::Token(&token)).await.ok()?;
            let (owner, now) = (principal.owner(), Instant::now());
            if owner.is_limited() {
                logins.bucket(owner, rate, now).reserve(Duration::ZERO, now).ok()?;
            }
            // Without a name that is authenticated, nobody knows whose runs the person may see.
            principal.name()?;
            let client = principal.authenticated_client()?.as_str().to_owned();
            let viewer = match administrators.contains(&client) {
                true => Viewer::Administrator { name: client },
                false => Viewer::Person { client },
            };
            Some(TokenLogin { viewer, is_valid: Box::new(move || !principal.has_expired()) })
        }
        .boxed()
    })
}
