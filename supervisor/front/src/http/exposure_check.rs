//! Refuses listen addresses that would expose the server to other hosts without authentication or TLS.

use lockhouse_base::listen::ListenAddress;
use thiserror::Error;

use super::HttpSettings;
use super::trusted_proxies::TrustedProxy;

/// Why a listen address is refused, and what to change.
#[derive(Debug, Error)]
pub enum ExposureError {
    #[error(
        "{key} makes the server reachable through the proxy, and auth = \"none\" requires no authentication: set another auth in [http]"
    )]
    OpenToProxy { key: &'static str },
    #[error(
        "{key} and auth = \"peer\": every client behind the proxy would be authenticated as the proxy's user; take \"peer\" out of auth in [http]"
    )]
    ProxyAsUser { key: &'static str },
    #[error(
        "{0} can be reached from other hosts, and auth = \"none\" is allowed for loopback addresses and Unix domain sockets only: set another auth in [http], or listen at 127.0.0.1"
    )]
    OpenToHosts(ListenAddress),
    #[error(
        "{0} can be reached from other hosts, and without TLS every token can be read on the network: set certificate and key in [http.tls], or behind_proxy = true if a proxy in front of it speaks TLS, or listen at 127.0.0.1"
    )]
    NoTls(ListenAddress),
}

/// Checks one listen address: other hosts may reach it only with authentication, and with TLS or behind a proxy.
pub(super) fn check_exposure(settings: &HttpSettings, at: &ListenAddress) -> Result<(), ExposureError> {
    let is_unauthenticated = !settings.requires_authentication;
    let proxies = &settings.trusted_proxies;
    let key = if settings.behind_proxy { "behind_proxy = true" } else { "trusted_proxies" };
    if is_unauthenticated && (settings.behind_proxy || !proxies.is_empty()) {
        return Err(ExposureError::OpenToProxy { key });
    }
    let has_proxy_user = settings.behind_proxy || proxies.contains(&TrustedProxy::Unix);
    if has_proxy_user && settings.accepts_users {
        return Err(ExposureError::ProxyAsUser { key });
    }
    if settings.behind_proxy && proxies.is_empty() {
        tracing::warn!(
            "behind_proxy = true without trusted_proxies: all clients behind the proxy have its address, and share the limits of one peer; \
             name the proxy in trusted_proxies of [http]"
        );
    }
    if at.is_local() {
        if is_unauthenticated {
            tracing::warn!("requests at {at} are accepted without authentication: auth = \"none\" of [http]");
        }
        return Ok(());
    }
    if is_unauthenticated {
        return Err(ExposureError::OpenToHosts(at.clone()));
    }
    if settings.tls.is_none() && !settings.behind_proxy {
        return Err(ExposureError::NoTls(at.clone()));
    }
    Ok(())
}
